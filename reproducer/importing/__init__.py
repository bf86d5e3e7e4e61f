"""From a launch that exists to a manifest: a command line, a shell script, a compose service, a systemd unit.

Every reader gives a `Found`: an argument list, the environment and the folder, as the launch would have had them.
`command.py` takes what starts it away (env, numactl, docker run), `placing.py` gives everything in it a place in a
manifest or says why it has none, and `render.py` writes the file. Nothing here is passed to a shell but a script that
the person asked to have recorded, apart from the host (`recording.py`).
"""

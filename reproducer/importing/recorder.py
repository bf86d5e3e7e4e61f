"""Stands in for a program while a script is recorded; `recording.py` links it under many names, penny never imports it.

The server's programs write what they were given and end. Programs that change the machine do nothing and say so.
Programs that make files are tried, and the script goes on where they may not write. Any other Python is run.
"""

import json
import os
import sys
import time

SERVERS = frozenset({"sglang", "vllm"})
STARTERS = frozenset({"docker", "podman", "nerdctl", "numactl", "taskset", "uv", "uvx", "conda", "mamba", "micromamba"})
TRIED = frozenset({"mkdir", "touch", "chmod", "chown", "ln", "rm", "cp", "mv", "tee", "install"})
MODULES = ("sglang", "vllm", "sglang.launch_server", "sglang.cli.main", "vllm.entrypoints.cli.main")
SCRIPTS = ("launch_server.py", "api_server.py")
LARGEST = 4 << 20
LARGEST_MADE = 1 << 20
SHORTEST_SLEEP_S = 0.05
OWN = "_penny_"


def write_record(kind: str, argv: list[str]) -> None:
    """One file a call, whole or not at all."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
    content = json.dumps(
        {
            "kind": kind,
            "argv": argv,
            "cwd": os.getcwd(),  # noqa: PTH109  pathlib is slow
            "environment": environment,
            "made": made(argv),
            "at": os.environ.get(f"{OWN}at"),
        }
    )
    if len(content) > LARGEST:
        sys.exit("penny: what the server was given is too large to be recorded")
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[0]))), "records")  # noqa: PTH100, PTH118, PTH120
    name = f"{time.time_ns():020d}-{os.getpid()}"
    with open(os.path.join(folder, f".{name}"), "x", encoding="ascii") as file:  # noqa: PTH118, PTH123  pathlib is slow
        file.write(content)
    os.rename(os.path.join(folder, f".{name}"), os.path.join(folder, f"{name}.json"))  # noqa: PTH104, PTH118


def made(argv: list[str]) -> dict[str, str]:
    """What stands in the files that the words name and that lie in the private copy: the script may have made them."""
    tree = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[0]))), "tree", "")  # noqa: PTH100, PTH118, PTH120
    found: dict[str, str] = {}
    for word in argv:
        path = os.path.realpath(word.lstrip("@"))
        if path.startswith(tree) and os.path.isfile(path) and os.path.getsize(path) <= LARGEST_MADE:  # noqa: PTH113, PTH202
            try:
                with open(path, encoding="utf-8") as file:  # noqa: PTH123  pathlib is slow
                    found[path] = file.read(LARGEST_MADE)
            except (OSError, UnicodeDecodeError):
                continue
    return found


def real_program(name: str) -> str | None:
    """The program of that name behind the folder of shims."""
    own = os.path.dirname(os.path.abspath(sys.argv[0]))  # noqa: PTH100, PTH120
    for folder in os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin").split(":"):
        path = os.path.join(folder, name)  # noqa: PTH118
        if folder and os.path.realpath(folder) != os.path.realpath(own) and os.access(path, os.X_OK):
            return path
    return None


def serves(arguments: list[str]) -> bool:
    """Whether a Python is asked to start a server, rather than anything else."""
    for at, word in enumerate(arguments):
        if word == "-c":
            return False
        if word.startswith("-m"):
            module = word[2:] or "".join(arguments[at + 1 : at + 2])
            return module in MODULES or module.startswith("vllm.entrypoints.")
        if not word.startswith("-"):
            return os.path.basename(word) in SCRIPTS or os.path.basename(word) in SERVERS  # noqa: PTH119
    return False


def run(path: str | None, arguments: list[str]) -> None:
    """Become another program."""
    if path is None:
        sys.exit(127)
    os.execv(path, [path, *arguments])  # noqa: S606  an argument list is the point


def without_options(words: list[str]) -> list[str]:
    """The command behind `sudo` and its options."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in ("-u", "-g", "-h", "-p", "-C", "-D") else 1
    return words[at:]


def main() -> None:
    """What this program does under the name it was started by."""
    name, arguments = os.path.basename(sys.argv[0]), sys.argv[1:]  # noqa: PTH119
    if name.startswith("python"):
        if serves(arguments):
            write_record("launch", [name, *arguments])
        else:
            run(real_program(name) or real_program("python3") or sys.executable, arguments)
    elif name in SERVERS or (name in STARTERS and arguments[:1] not in (["pip"], ["venv"], ["rm"], ["stop"], ["pull"])):
        write_record("launch", [name, *arguments])
    elif name in TRIED:
        path = real_program(name)
        if path is not None:
            os.waitpid(os.spawnv(os.P_NOWAIT, path, [path, *arguments]), 0)  # noqa: S606
    elif name == "sleep":
        time.sleep(SHORTEST_SLEEP_S)
    elif name == "sudo":
        rest = without_options(arguments)
        if rest:
            os.execvp(rest[0], rest)  # noqa: S606
    else:
        write_record("skipped", [name, *arguments])


if __name__ == "__main__":
    main()

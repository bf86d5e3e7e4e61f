"""A command as a person sees it: in a terminal of its own."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path


def seen(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str], columns: int = 80
) -> tuple[int, list[str]]:
    """Exit code and the lines of what is written into a pseudo-terminal, without the spaces at their ends."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    variables = {name: value for name, value in environment.items() if name not in {"COLUMNS", "LINES"}}
    with subprocess.Popen(
        command,
        cwd=folder,
        env=variables | {"NO_COLOR": "1", "TERM": "dumb"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        said = b""
        try:
            while block := os.read(ours, 1 << 16):
                said += block
        except OSError:  # the other end is closed
            pass
        finally:
            os.close(ours)
    return process.returncode, [line.rstrip() for line in said.decode().splitlines()]

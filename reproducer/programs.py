"""What another program of this machine says of itself: bounded in time and size, its processes ended, read as text."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

_LARGEST = 64 << 10
_PATIENCE_S = 30.0
_SECONDS_TO_DIE = 5


class Answer(NamedTuple):
    """What was said, and why it counts for nothing; `fault` is empty where the program ended well."""

    text: str
    fault: str


def ask(command: Sequence[str], *, patience_s: float = _PATIENCE_S) -> Answer:
    """Run a program without input in a process group of its own, and read at most 64 KiB of what it says.

    Args:
        command: the program by its path, and its arguments.
        patience_s: how long it may take.
    """
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        return Answer("", error.strerror or "it cannot be started")
    deadline = time.monotonic() + patience_s
    data, fault = b"", ""
    try:
        data, fault = _listen(process, deadline, patience_s)
        if not fault:
            process.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        fault = f"no end within {patience_s:g} seconds"
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_SECONDS_TO_DIE)
        if process.stdout is not None:
            process.stdout.close()
    if not fault and process.returncode != 0:
        fault = f"exit code {process.returncode}"
    return Answer(data[:_LARGEST].decode("utf-8", "replace"), fault)


def _listen(process: "subprocess.Popen[bytes]", deadline: float, patience_s: float) -> tuple[bytes, str]:
    """Everything until its output ends, and what is wrong with it."""
    stream, data = process.stdout, b""
    if stream is None:
        return data, ""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while len(data) <= _LARGEST:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return data, f"no answer within {patience_s:g} seconds"
            piece = os.read(stream.fileno(), _LARGEST)
            if not piece:
                return data, ""
            data += piece
    return data, f"more than {_LARGEST} bytes"

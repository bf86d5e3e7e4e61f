"""What is left of a launch is known by its marks, and nothing else is touched."""

import os
import subprocess
import sys
from pathlib import Path

from reproducer.launch.processes import log_header, sweep

WAIT = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]


def start(log: Path | None = None, flags: int = 0, **environment: str) -> "subprocess.Popen[bytes]":
    """A process that waits, its standard error in a log or nowhere."""
    handle = os.open(log, flags) if log is not None else os.open(os.devnull, os.O_WRONLY)
    process = subprocess.Popen(
        WAIT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=handle, env={"PATH": "/usr/bin", **environment}
    )
    os.close(handle)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_marks(tmp_path: Path) -> None:
    """Killed: who carries the token, and who writes to the log. Not: another token, a reader or a writer of its own."""
    log = tmp_path / "log"
    log.write_bytes(log_header("a" * 32))
    ours = [start(PENNY_LAUNCH="a" * 32), start(log, os.O_WRONLY | os.O_APPEND)]
    others = [start(PENNY_LAUNCH="a" * 31), start(OTHER="a" * 32), start(log, os.O_RDONLY), start(log, os.O_WRONLY)]
    try:
        assert sweep("a" * 32, log) == 2
        assert [process.wait(5) for process in ours] == [-9, -9]
        assert [process.poll() for process in others] == [None] * 4
    finally:
        for process in (*ours, *others):
            process.kill()
            process.communicate()


def test_log_of_a_successor(tmp_path: Path) -> None:
    """A log that another launch has put in the same place marks nobody."""
    log = tmp_path / "log"
    log.write_bytes(log_header("c" * 32))
    successor = start(log, os.O_WRONLY | os.O_APPEND)
    try:
        assert sweep("a" * 32, log) == 0
        assert successor.poll() is None
    finally:
        successor.kill()
        successor.communicate()


def test_nothing_to_sweep(tmp_path: Path) -> None:
    """A launch that left nothing, not even its log."""
    assert sweep("b" * 32, tmp_path / "gone") == 0

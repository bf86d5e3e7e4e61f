"""What a process and all below it hold, read from the running system."""

import os
import subprocess
import sys

from reproducer.qualify.holdings import reading

HOLDER = """
import sys
kept = bytearray(b"x" * (64 << 20))
files = [open("/dev/null") for _ in range(40)]
print("ready", flush=True)
sys.stdin.read()
"""


def test_children_count_and_what_they_hold_shows() -> None:
    """A child that takes 64 MiB and 40 files adds at least that to what its parent is said to hold."""
    before = reading(os.getpid(), 1)
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        during = reading(os.getpid(), 2)
        child.communicate(b"")
    assert (before.at_ns, during.at_ns) == (1, 2)
    assert before.resident_bytes is not None
    assert during.resident_bytes is not None
    assert during.resident_bytes - before.resident_bytes > 64 << 20
    assert before.open_files is not None
    assert during.open_files is not None
    assert during.open_files - before.open_files >= 40


def test_a_process_that_is_gone_or_hidden_is_no_zero() -> None:
    """What cannot be read is unknown."""
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    gone = reading(child.pid, 0)
    assert (gone.resident_bytes, gone.open_files) == (None, None)
    assert reading(None, 0).resident_bytes is None

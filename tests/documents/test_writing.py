"""Writing a file: whole or not at all, and nothing is left behind for long."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reproducer.documents.toml import write_atomically
from reproducer.errors import NotCheckedError

KILLED = """
import os, signal, sys
from pathlib import Path
from reproducer.documents import toml
os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
toml.write_atomically(Path(sys.argv[1]), b"new")
"""


def test_killed_writer_leaves_the_old_file_and_is_swept(tmp_path: Path) -> None:
    """A kill while writing leaves the old bytes; the next write removes what was left once it is old."""
    path = tmp_path / "penny.lock.toml"
    path.write_bytes(b"old")
    ran = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert ran.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    (left,) = (each for each in tmp_path.iterdir() if each != path)
    write_atomically(path, b"newer")
    assert left.exists()
    os.utime(left, (time.time() - 60, time.time() - 60))
    write_atomically(path, b"newest")
    assert [each.name for each in tmp_path.iterdir()] == ["penny.lock.toml"]
    assert path.read_bytes() == b"newest"


def test_full_disk_keeps_the_old_file() -> None:
    """A device that takes nothing is a NotCheckedError."""
    with pytest.raises(NotCheckedError, match="cannot be written"):
        write_atomically(Path("/proc/penny.lock.toml"), b"new")

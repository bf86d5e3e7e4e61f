"""Locks that the kernel drops."""

import fcntl
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reproducer.errors import NotCheckedError, PennyError
from reproducer.progress import Silent
from reproducer.store.exclusive import exclusive, release, sweep_locks, take

Start = Callable[..., Any]


class Noting(Silent):
    """Keeps every note."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, message: str) -> None:
        """Keep it."""
        self.notes.append(message)


HOLD = """
import sys, time
from pathlib import Path
from reproducer.progress import Silent
from reproducer.store.exclusive import exclusive
with exclusive(Path(sys.argv[1]), reporter=Silent(), what="it works"):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""
COUNT = """
import sys
from pathlib import Path
from reproducer.progress import Silent
from reproducer.store.exclusive import exclusive
number = Path(sys.argv[2])
for _ in range(60):
    with exclusive(Path(sys.argv[1]), reporter=Silent(), what="it counts"):
        value = int(number.read_text())
        number.write_text(str(value + 1))
"""


def test_two_processes_never_hold_it_together(tmp_path: Path, start: Start) -> None:
    """Read, add one, write, by four processes at once: no addition is lost, though the file is unlinked each time."""
    number = tmp_path / "number"
    number.write_text("0")
    processes = [start(COUNT, tmp_path / "x.lock", number) for _ in range(4)]
    for process in processes:
        assert process.wait(60) == 0, process.communicate()
    assert number.read_text() == "240"
    assert not (tmp_path / "x.lock").exists()


def test_the_file_is_gone_after_release(tmp_path: Path) -> None:
    """No lock file stays behind, after an error neither."""
    path = tmp_path / "x.lock"

    def fail() -> None:
        with exclusive(path, reporter=Silent(), what="x"):
            assert path.exists()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not path.exists()


def test_waiting_is_announced(tmp_path: Path, start: Start) -> None:
    """Who waits says for what; who gets it at once says nothing."""
    path = tmp_path / "x.lock"
    process = start(HOLD, path, 1.0)
    assert process.stdout.readline() == "held\n"
    reporter = Noting()
    with exclusive(path, reporter=reporter, what="it builds the runtime"):
        assert reporter.notes == ["waiting for another penny: it builds the runtime"]
    assert process.wait(10) == 0


def test_a_killed_holder_holds_nothing(tmp_path: Path, start: Start) -> None:
    """After kill -9 the file is still there; the next one takes it over, and it is gone after that."""
    path = tmp_path / "x.lock"
    process = start(HOLD, path, 60)
    assert process.stdout.readline() == "held\n"
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    assert path.exists()
    with exclusive(path, reporter=Silent(), what="x"):
        pass
    assert not path.exists()


def test_sweeping_removes_dead_locks_only(tmp_path: Path, start: Start) -> None:
    """The lock file of a living process stays, those of dead ones go."""
    alive, dead = tmp_path / "alive.lock", tmp_path / "dead.lock"
    process = start(HOLD, alive, 60)
    assert process.stdout.readline() == "held\n"
    dead.touch()
    sweep_locks(tmp_path)
    assert alive.exists()
    assert not dead.exists()


def test_waiting_can_be_given_up(tmp_path: Path) -> None:
    """A stop event ends the wait of another thread."""
    path, stop, seen = tmp_path / "x.lock", threading.Event(), []

    def wait() -> None:
        try:
            with exclusive(path, reporter=Silent(), what="x", stop=stop):
                seen.append("held")
        except PennyError as error:
            seen.append(type(error).__name__)

    with exclusive(path, reporter=Silent(), what="x"):
        thread = threading.Thread(target=wait)
        thread.start()
        stop.set()
        thread.join(10)
    assert seen == [NotCheckedError.__name__]


def test_a_lock_file_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """A link in place of the lock file is not followed."""
    (tmp_path / "x.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PennyError):
        take(tmp_path / "x.lock")
    assert not (tmp_path / "elsewhere").exists()


def test_a_lock_on_a_file_that_is_gone_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the last holder unlinks the file between our open and our flock, the file that is there now is taken."""
    path, real = tmp_path / "x.lock", fcntl.flock
    locked: list[int] = []

    def late(handle: int, operation: int) -> None:
        if not locked:
            path.unlink()
        locked.append(handle)
        real(handle, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    handle = take(path)
    assert handle is not None
    assert os.fstat(handle).st_ino == path.stat().st_ino
    assert len(locked) == 2
    release(path, handle)

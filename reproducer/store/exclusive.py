"""One process at a time, by a lock that the kernel drops when its holder dies."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event

from reproducer.errors import NotCheckedError
from reproducer.progress import Reporter
from reproducer.store.faults import writing

_QUIET_SECONDS = 0.3
_FIRST_PAUSE = 0.005
_LONGEST_PAUSE = 0.2


@contextmanager
def exclusive(path: Path, *, reporter: Reporter, what: str, stop: Event | None = None) -> Iterator[int]:
    """Hold `path` alone while the context is open; the file is gone afterwards.

    The lock is a flock on the open file, not the file: a holder that was killed holds nothing, and the file it left is
    taken over by the next one. Threads of one process exclude each other too; it is not re-entrant.

    Args:
        path: the lock file; its folder exists or is made.
        reporter: is told when another process has to be waited for.
        what: what is held, for that note.
        stop: once set, waiting ends.

    Yields:
        The open handle; a child that inherits it goes on holding the lock where this process is killed.

    Raises:
        NotCheckedError: the file cannot be made, or `stop` was set while waiting.
    """
    handle = take(path)
    begun = time.monotonic()
    pause, announced = _FIRST_PAUSE, False
    while handle is None:
        if stop is not None and stop.is_set():
            raise NotCheckedError("waiting was given up", where=str(path), why=what)
        if not announced and time.monotonic() - begun > _QUIET_SECONDS:
            reporter.note(f"waiting for another penny: {what}")
            announced = True
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)
        handle = take(path)
    try:
        yield handle
    finally:
        release(path, handle)


def take(path: Path, *, create: bool = True) -> int | None:
    """Try once to take the lock.

    Returns:
        The open handle that holds it; None where another holds it, or where there is no file and `create` is off.
    """
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if create else 0)
    with writing(path.parent, what=f"the lock file {path.name}"):
        if create:
            path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            try:
                handle = os.open(path, flags, 0o600)
            except FileNotFoundError:
                if create:
                    raise
                return None
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                return None
            except BaseException:
                os.close(handle)
                raise
            if _is_still_there(path, handle):
                return handle
            os.close(handle)  # its last holder unlinked it between our open and our flock


def release(path: Path, handle: int) -> None:
    """Remove the file while it is held, then let go."""
    with suppress(OSError):
        path.unlink()
    os.close(handle)


def sweep_locks(folder: Path) -> None:
    """Remove the lock files in `folder` whose holders are dead."""
    for path in sorted(folder.glob("*.lock")):
        handle = take(path, create=False)
        if handle is not None:
            release(path, handle)


def _is_still_there(path: Path, handle: int) -> bool:
    """Whether the path still names the file that the handle holds."""
    try:
        there = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    held = os.fstat(handle)
    return (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)

"""One measurement at a time on a machine: two at once would measure each other."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reproducer.errors import NotCheckedError
from reproducer.progress import Reporter
from reproducer.store.exclusive import exclusive
from reproducer.store.faults import writing


@contextmanager
def measuring_alone(reporter: Reporter) -> Iterator[None]:
    """Hold the machine for measuring while the context is open, against every other penny of this user.

    Raises:
        NotCheckedError: the private folder for the lock file is not ours.
    """
    path = _private_folder() / "measuring.lock"
    with exclusive(path, reporter=reporter, what=f"{_holder(path)} is measuring on this machine"):
        with writing(path.parent, what="the lock file"):
            path.write_text(str(os.getpid()), encoding="ascii")
        yield


def _holder(path: Path) -> str:
    """Who wrote the lock file last, for the note that it is waited for."""
    try:
        text = path.read_text(encoding="ascii")[:20]
    except (OSError, ValueError):
        text = ""
    return f"process {text}" if text.isdigit() else "it"


def _private_folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"penny-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.stat(follow_symlinks=False)
    except OSError as error:
        raise NotCheckedError("no folder to take turns in", where=str(folder), why=str(error)) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise NotCheckedError(
            "the folder to take turns in is not private", where=str(folder), todo="remove it, or set TMPDIR"
        )
    return folder

"""What the operating system says about a disk, as one clear error."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reproducer.errors import NotCheckedError, PennyError, UsageError

ELSEWHERE = "name a folder on another disk with --store or PENNY_STORE"
_FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "a file reached the size limit",
}
_REFUSED = {
    errno.EROFS: "is on a read-only file system",
    errno.EACCES: "cannot be written: no permission",
    errno.EPERM: "cannot be written: not permitted",
}
# Where less is free, a program that failed had no room.
_NO_ROOM = 256 << 10
_SHAPE = {errno.ENOTDIR, errno.EEXIST, errno.EISDIR}


def disk_fault(error: OSError, folder: Path, *, what: str, needed: int | None = None) -> PennyError:
    """The error that an OSError means for work in `folder`.

    Args:
        error: what the operating system said.
        folder: where it was said; the error names it.
        what: what was being written.
        needed: bytes that `what` takes in all, where known.
    """
    if error.errno in _FULL:
        return full(folder, what=what, needed=needed, problem=_FULL[error.errno])
    if error.errno in _REFUSED:
        return NotCheckedError(_REFUSED[error.errno], where=str(folder), why=f"writing {what}", todo=ELSEWHERE)
    if error.errno in _SHAPE:
        place = error.filename if isinstance(error.filename, str) else str(folder)
        return UsageError("something that is not a folder is in the way", where=place, why=f"writing {what}")
    return NotCheckedError(f"{what} cannot be written", where=str(folder), why=error.strerror or str(error))


def full(
    folder: Path, *, what: str, needed: int | None, spare: int = 0, problem: str = "the disk is full"
) -> NotCheckedError:
    """No room left: names the folder, the bytes that are needed and are to be left over, and those that are free."""
    free = free_bytes(folder)
    need = f"{what} needs {needed} bytes" if needed is not None else f"writing {what}"
    need += f" and {spare} to spare" if spare else ""
    left = f", {free} are free" if free is not None else ""
    return NotCheckedError(problem, where=str(folder), why=need + left, todo=f"make room, or {ELSEWHERE}")


def full_for_another(said: str, folder: Path, *, what: str) -> NotCheckedError | None:
    """The same where another program failed for want of room; None where it failed for something else.

    Args:
        said: what it complained about; a program that could not write its complaints says nothing.
        folder: where it wrote.
        what: what was being written.
    """
    for number, problem in _FULL.items():
        if os.strerror(number) in said:
            return full(folder, what=what, needed=None, problem=problem)
    free = free_bytes(folder)
    return full(folder, what=what, needed=None) if free is not None and free < _NO_ROOM else None


def free_bytes(folder: Path) -> int | None:
    """Bytes that are free for this user where `folder` lies, None where nobody can tell."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


@contextmanager
def writing(folder: Path, *, what: str, needed: int | None = None) -> Iterator[None]:
    """Turn every OSError inside into the error that `disk_fault` describes."""
    try:
        yield
    except OSError as error:
        raise disk_fault(error, folder, what=what, needed=needed) from error

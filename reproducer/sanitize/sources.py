"""What is to be sanitised: regular files as they are found, and what is left out with the reason."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from reproducer.errors import NotCheckedError, UsageError

LONGEST_LINE = 16 << 20
BLOCK = 1 << 18
_LOOKED_AT = 1 << 16
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstandard",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
}


@dataclass(frozen=True)
class Source:
    """One file that is sanitised.

    Attributes:
        path: where it lies.
        name: its path in the output, from the name of the file or folder that was asked for on.
    """

    path: Path
    name: str


@dataclass(frozen=True)
class LeftOut:
    """What lies in a folder and was not sanitised, nor written."""

    path: str
    reason: str


def sources(asked: Iterable[Path]) -> tuple[tuple[Source, ...], tuple[LeftOut, ...]]:
    """The files that were asked for and those of the folders that were, in a stable order.

    Raises:
        UsageError: something that was asked for is not there, is no file, or two have one name.
    """
    found: list[Source] = []
    left: list[LeftOut] = []
    for path in asked:
        if path.is_dir():
            _folder(path, found, left)
        elif not path.exists():
            raise UsageError("there is no such file", where=str(path), todo="name a file or a folder")
        elif reason := _unfit(path):
            raise UsageError(reason, where=str(path), todo="name a text file")
        else:
            found.append(Source(path, path.name))
    names = [each.name for each in found]
    if double := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"two files would be written as {double}", todo="sanitise them one after the other")
    return tuple(found), tuple(left)


def lines(file: TextIO, *, where: str) -> Iterator[str]:
    """The lines of a text with their ends.

    Raises:
        NotCheckedError: a line is too long to be held.
    """
    while line := file.readline(LONGEST_LINE):
        if len(line) >= LONGEST_LINE and not line.endswith("\n"):
            raise NotCheckedError(f"a line is longer than {LONGEST_LINE} characters", where=where)
        yield line


def blocks(found: Iterable[str]) -> Iterator[str]:
    """Whole lines, as many at once as are quick to search."""
    held: list[str] = []
    size = 0
    for line in found:
        held.append(line)
        size += len(line)
        if size >= BLOCK:
            yield "".join(held)
            held, size = [], 0
    if held:
        yield "".join(held)


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """A regular file as text whose bytes come back as they were, also those that are not UTF-8.

    Raises:
        NotCheckedError: it cannot be read, or became something else.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, encoding="utf-8", errors="surrogateescape", newline="") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise NotCheckedError("is no regular file any more", where=str(path))
            yield file
    except OSError as error:
        raise NotCheckedError("cannot be read", where=str(path), why=error.strerror or str(error)) from error


def _folder(folder: Path, found: list[Source], left: list[LeftOut]) -> None:
    """Every regular file below a folder; links are not followed."""

    def fault(error: OSError) -> None:
        left.append(LeftOut(str(error.filename), error.strerror or "cannot be read"))

    base = folder.resolve()
    for parent, folders, files in os.walk(base, onerror=fault):
        folders.sort()
        for name in list(folders):
            if Path(parent, name).is_symlink():
                left.append(LeftOut(str(Path(parent, name)), "is a link"))
                folders.remove(name)
        for name in sorted(files):
            path = Path(parent, name)
            if reason := "is a link" if path.is_symlink() else _unfit(path):
                left.append(LeftOut(str(path), reason))
            else:
                found.append(Source(path, str(Path(base.name) / path.relative_to(base))))


def _unfit(path: Path) -> str:
    """Why a file cannot be sanitised; empty where it can."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return "is no regular file"
        start = file.read(_LOOKED_AT)
    for mark, name in _PACKED.items():
        if start.startswith(mark):
            return f"is packed ({name}): unpack it first"
    return "is no text" if b"\0" in start else ""

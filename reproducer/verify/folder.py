"""A folder from a stranger, read once into memory within limits; nothing in it is followed anywhere."""

import os
import stat
from pathlib import Path

from reproducer.errors import NotCheckedError, UnsafeInputError, UsageError

MOST_FILES = 4096
LARGEST_FILE = 16 << 20
LARGEST_FOLDER = 64 << 20
DEEPEST = 16


def read_folder(folder: Path) -> dict[str, bytes]:
    """Every file below `folder` by its relative POSIX path.

    Raises:
        UsageError: no such folder.
        UnsafeInputError: a link, a device, too many, too large or too deeply nested files, a name that is not UTF-8.
        NotCheckedError: something cannot be read.
    """
    if not folder.is_dir():
        raise UsageError("there is no bundle here", where=str(folder), todo="name the folder of a bundle")
    found = _listed(folder)
    files: dict[str, bytes] = {}
    for name in sorted(found):
        files[name] = read_plain(folder / name)
    return files


def _listed(folder: Path) -> list[str]:
    """The names of all files, judged by what they are and how large they are before one is opened."""
    found: list[str] = []
    total = entries_seen = 0
    waiting = [("", 0)]
    while waiting:
        below, depth = waiting.pop()
        try:
            with os.scandir(folder / below if below else folder) as entries:
                for entry in entries:
                    name = f"{below}/{entry.name}" if below else entry.name
                    _plain_name(folder, name)
                    entries_seen += 1
                    if entries_seen > MOST_FILES:
                        raise _unsafe(folder, name, f"is one file too many: more than {MOST_FILES}")
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode):
                        if depth + 1 >= DEEPEST:
                            raise _unsafe(folder, name, f"lies more than {DEEPEST} folders deep")
                        waiting.append((name, depth + 1))
                    elif stat.S_ISREG(status.st_mode):
                        total += status.st_size
                        found.append(name)
                        if status.st_size > LARGEST_FILE:
                            raise _unsafe(folder, name, f"is larger than {LARGEST_FILE} bytes")
                    else:
                        raise _unsafe(folder, name, "is neither a file nor a folder: no links, no devices")
                    if total > LARGEST_FOLDER:
                        raise _unsafe(folder, name, f"makes the folder larger than {LARGEST_FOLDER} bytes")
        except OSError as error:
            where = str(folder / below)
            raise NotCheckedError("cannot be read", where=where, why=error.strerror or str(error)) from error
    return found


def _plain_name(folder: Path, name: str) -> None:
    if "\\" in name or not name.isprintable():
        raise _unsafe(folder, repr(name), "has a name that is not plain text")


def read_plain(path: Path) -> bytes:
    """The bytes of a file that is still a plain file of bounded size when it is opened.

    Raises:
        UnsafeInputError: it is a link, a device or too large.
        NotCheckedError: it cannot be read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _unsafe(path.parent, path.name, "is not a plain file")
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise NotCheckedError("cannot be read", where=str(path), why=error.strerror or str(error)) from error
    if len(data) > LARGEST_FILE:
        raise _unsafe(path.parent, path.name, f"is larger than {LARGEST_FILE} bytes")
    return data


def _unsafe(folder: Path, name: str, what: str) -> UnsafeInputError:
    return UnsafeInputError(f"{name} {what}", where=str(folder), todo="a bundle that penny wrote holds none")

"""What lies in a folder from a stranger: bundles, loose documents, and what is left out, with the reason."""

import os
import stat
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from reproducer.attest.bundle import STATEMENTS
from reproducer.attest.statements import INDEX
from reproducer.errors import UnsafeInputError, UsageError

MOST_ENTRIES = 20_000
MOST_BUNDLES = 1_000
DEEPEST = 8


@dataclass(frozen=True)
class Found:
    """Places below the folder, in the order of their names; `.` is the folder itself.

    Attributes:
        bundles: folders that hold an index or statements, whole or broken.
        documents: JSON files that lie in no bundle.
        left_out: what is not read, and why.
    """

    bundles: list[str] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)


def look(folder: Path, *, beside: Path | None = None) -> Found:
    """Look through a folder; nothing is opened but folders, and no link is followed.

    Args:
        folder: the folder.
        beside: a folder in it that is passed over: the site that an earlier run wrote.

    Raises:
        UsageError: no such folder, or no bundle in it.
        UnsafeInputError: it holds more than a folder of bundles does.
    """
    if not folder.is_dir():
        raise UsageError("there is no folder of bundles here", where=str(folder), todo="name one, such as `evidence`")
    found = Found()
    skipped = None if beside is None else beside.resolve()
    waiting = [(".", 0)]
    seen = 0
    while waiting:
        place, depth = waiting.pop()
        here = _entries(folder, place, found)
        seen += len(here)
        if seen > MOST_ENTRIES:
            raise UnsafeInputError(f"holds more than {MOST_ENTRIES} files and folders", where=str(folder))
        if any(each.name in (INDEX, STATEMENTS) for each in here):
            found.bundles.append(place)
        else:
            below = [each for each in here if skipped is None or Path(each.path).resolve() != skipped]
            waiting += reversed(_sorted_out(below, place, depth, found))
        if len(found.bundles) > MOST_BUNDLES:
            raise UnsafeInputError(f"holds more than {MOST_BUNDLES} bundles", where=str(folder))
    if not found.bundles:
        raise UsageError("there is no bundle in this folder", where=str(folder), todo="`penny attest` writes bundles")
    found.bundles.sort(key=os.fsencode)
    found.documents.sort(key=os.fsencode)
    found.left_out.sort(key=lambda each: os.fsencode(each[0]))
    return found


def _entries(folder: Path, place: str, found: Found) -> "list[os.DirEntry[str]]":
    """What lies at a place, as far as it may be listed; one too many is enough to know that there are too many."""
    try:
        with os.scandir(folder / place) as entries:
            return sorted(islice(entries, MOST_ENTRIES + 1), key=lambda each: os.fsencode(each.name))
    except OSError as error:
        found.left_out.append((place, error.strerror or "cannot be read"))
        return []


def _sorted_out(here: "list[os.DirEntry[str]]", place: str, depth: int, found: Found) -> list[tuple[str, int]]:
    """The folders below, in order; documents and what is left out are noted."""
    below = []
    for each in here:
        inner = each.name if place == "." else f"{place}/{each.name}"
        why = _why_not(each, depth)
        if why:
            found.left_out.append((inner, why))
        elif each.is_dir(follow_symlinks=False):
            below.append((inner, depth + 1))
        elif each.name.endswith(".json"):
            found.documents.append(inner)
    return below


def told(place: str) -> str:
    """A place as text: bytes of a name that are not UTF-8 stand escaped."""
    return os.fsencode(place).decode("utf-8", "backslashreplace")


def _why_not(entry: "os.DirEntry[str]", depth: int) -> str:
    """Why an entry is left out; empty where it is not."""
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError as error:
        return error.strerror or "cannot be read"
    if stat.S_ISLNK(mode):
        return "is a link, and none is followed"
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        return "is neither a file nor a folder"
    if entry.name.startswith("."):
        return "begins with a dot, as unfinished and hidden files do"
    if stat.S_ISDIR(mode) and depth + 1 >= DEEPEST:
        return f"lies more than {DEEPEST} folders deep"
    return ""

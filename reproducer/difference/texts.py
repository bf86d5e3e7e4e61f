"""How a text file beside the lock changed, line by line: patches, and the scripts that convert checkpoints.

A patch that changed is a diff of diffs. The text is a stranger's: it is kept whole here; whoever shows it escapes it.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reproducer.documents.base import FileReference
from reproducer.documents.lock import Lock
from reproducer.documents.opened import OpenedLock
from reproducer.documents.sources import GitSource
from reproducer.errors import PennyError
from reproducer.identity.factors import Path

_CONTEXT = 3
# Beyond this many pairs of lines the middle is told as taken out and put in whole: finding what moved would take long.
_MOST_PAIRS = 4_000_000


def text_details(
    a: Lock | OpenedLock, b: Lock | OpenedLock, changed: Mapping[Path, Any]
) -> tuple[dict[Path, str], tuple[str, ...]]:
    """How each changed text file differs, by the path of the change of its digest.

    Args:
        a: the lock before; only an opened one has files beside it.
        b: the lock after.
        changed: the changes by path.

    Returns:
        The differences, and what could not be compared, with the reason.
    """
    found: dict[Path, str] = {}
    reasons: list[str] = []
    before, after = (dict(_texts(each.lock if isinstance(each, OpenedLock) else each)) for each in (a, b))
    for path in sorted(before.keys() & after.keys() & changed.keys()):
        what, old = before[path]
        new = after[path][1]
        if not (isinstance(a, OpenedLock) and isinstance(b, OpenedLock)):
            reasons.append(f"{what}: only the locks were given, not the files beside them")
            continue
        try:
            found[path] = unified(a.read(old), b.read(new), old.path, new.path)
        except PennyError as error:
            reasons.append(f"{what}: {error}")
    return found, tuple(reasons)


def unified(before: bytes, after: bytes, old: str, new: str) -> str:
    """A unified diff of two files; bytes that are no UTF-8 are escaped.

    Args:
        before: the bytes of the first.
        after: the bytes of the second.
        old: the path of the first.
        new: the path of the second.
    """
    one, two = _lines(before), _lines(after)
    head, tail = _shared(one, two)
    inner = len(one) - head - tail, len(two) - head - tail
    if inner[0] * inner[1] <= _MOST_PAIRS:
        return "\n".join(difflib.unified_diff(one, two, f"a/{old}", f"b/{new}", n=_CONTEXT, lineterm=""))
    first, last = max(0, head - _CONTEXT), min(tail, _CONTEXT)
    shape = [f"{first + 1},{length + head - first + last}" for length in inner]
    return "\n".join(
        [
            f"--- a/{old}",
            f"+++ b/{new}",
            f"@@ -{shape[0]} +{shape[1]} @@",
            *(f" {line}" for line in one[first:head]),
            *(f"-{line}" for line in one[head : len(one) - tail]),
            *(f"+{line}" for line in two[head : len(two) - tail]),
            *(f" {line}" for line in one[len(one) - tail : len(one) - tail + last]),
        ]
    )


def _texts(lock: Lock) -> Iterator[tuple[Path, tuple[str, FileReference]]]:
    """Every text file whose lines are worth reading: the path of its digest, what it is, and where it lies."""
    for component in lock.components:
        if isinstance(component.source, GitSource) and (changes := component.source.changes) is not None:
            path = ("components", component.name, "source", "changes", "sha256")
            yield path, (f"changes beside the commit of component {component.name}", changes)
        for patch in component.patches:
            path = ("components", component.name, "patches", patch.path, "sha256")
            yield path, (f"patch {patch.path} of component {component.name}", patch)
    for checkpoint in lock.checkpoints:
        if checkpoint.conversion is not None:
            path = ("checkpoints", checkpoint.role, "conversion", "script", "sha256")
            yield path, (f"conversion script of checkpoint {checkpoint.role}", checkpoint.conversion.script)


def _lines(data: bytes) -> list[str]:
    """Lines without their ends; a missing last newline is told, as git does."""
    text = data.decode("utf-8", "backslashreplace")
    if not text:
        return []
    if text.endswith("\n"):
        return text[:-1].split("\n")
    lines = text.split("\n")
    return [*lines[:-1], f"{lines[-1]}\n\\ No newline at end of file"]


def _shared(one: Sequence[str], two: Sequence[str]) -> tuple[int, int]:
    """How many lines the two begin with in common, and how many of the rest they end with."""
    shortest = min(len(one), len(two))
    head = next((index for index in range(shortest) if one[index] != two[index]), shortest)
    rest = shortest - head
    tail = next((index for index in range(rest) if one[-1 - index] != two[-1 - index]), rest)
    return head, tail

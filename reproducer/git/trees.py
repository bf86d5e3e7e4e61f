"""The files of a tree, walked object by object; names that could become more than files in a folder are refused."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from reproducer.archives.tree_writer import DEFAULT_LIMITS, Limits, member_path
from reproducer.documents.base import shown
from reproducer.errors import UnsafeInputError
from reproducer.git.objects import Entry, Objects

FOLDER, LINK, SUBMODULE = 0o040000, 0o120000, 0o160000
FILE, KIND = 0o100000, 0o170000
_EXECUTABLE = 0o100
_DEEPEST = 64
# Code points that HFS+ leaves out of names.
_IGNORED = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])
_RESERVED = frozenset({".git", "git~1"})


@dataclass(frozen=True)
class Leaf:
    """One file, link or submodule of a tree."""

    path: PurePosixPath
    kind: int
    oid: str
    executable: bool = False

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return self.kind == FILE


def leaves(objects: Objects, tree: str, *, where: str, limits: Limits = DEFAULT_LIMITS) -> Iterator[Leaf]:
    """Everything in a tree but its folders, in the order of git.

    Raises:
        UnsafeInputError: a name or kind that no source tree has, or more of it than `limits` allows: a few small
            objects can name each other so often that a tree has no end.
        DriftError: an object is missing or damaged.
    """
    pending: list[tuple[PurePosixPath, Iterator[Entry]]] = [(PurePosixPath(), iter(objects.entries(tree)))]
    seen = 0
    while pending:
        above, entries = pending[-1]
        entry = next(entries, None)
        if entry is None:
            pending.pop()
            continue
        seen += 1
        if seen > limits.members:
            raise UnsafeInputError(f"has more than {limits.members} entries", where=where)
        _check_name(entry, where)
        path = above / member_path(entry.name, where=where)
        member_path(str(path), where=where)
        kind = entry.mode & KIND
        if kind == FOLDER:
            if len(pending) >= _DEEPEST:
                raise UnsafeInputError(f"has folders deeper than {_DEEPEST}", where=where)
            pending.append((path, iter(objects.entries(entry.oid))))
        elif kind in (FILE, LINK, SUBMODULE):
            yield Leaf(path, kind, entry.oid, executable=bool(entry.mode & _EXECUTABLE))
        else:
            raise UnsafeInputError(f"{shown(str(path))} has the mode {entry.mode:o}, which no file has", where=where)


def _check_name(entry: Entry, where: str) -> None:
    """What git itself would read as part of a repository never becomes a file."""
    plain = entry.name.translate(_IGNORED).casefold().split(":")[0].rstrip(". ")
    if entry.name in ("", ".", "..") or "/" in entry.name:
        raise UnsafeInputError(f"the name {shown(entry.name)} leaves its folder", where=where)
    if plain in _RESERVED:
        raise UnsafeInputError(f"the name {shown(entry.name)} is that of a repository's own folder", where=where)
    if plain == ".gitmodules" and entry.mode & KIND == LINK:
        raise UnsafeInputError(f"{shown(entry.name)} is a link", where=where)

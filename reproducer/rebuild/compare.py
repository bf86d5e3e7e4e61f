"""The level between two builds of one artefact, and every difference by name.

`bytes-identical`: the same file; of folders the same paths, bytes, link targets and modes. `content-identical`: the
same members apart from when and where they were built. `device-code-identical`: every member that differs holds
device code, and that is the same. What the level does not count is listed too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from reproducer.binaries.device_code import normal_hash
from reproducer.binaries.volatile import Volatile
from reproducer.documents.base import shown
from reproducer.documents.built import Difference, Level
from reproducer.errors import UsageError
from reproducer.rebuild.explain import explain
from reproducer.rebuild.tree import Member, Tree, read_tree

_MOST_EXPLAINED = 200
_NOTHING = Volatile(names=False)
_RECORD = ".dist-info/RECORD"


@dataclass(frozen=True)
class Comparison:
    """Two builds held against each other.

    Attributes:
        level: what they agree in.
        differences: what they do not agree in, worst first.
    """

    level: Level
    differences: tuple[Difference, ...]


def compare_artefacts(first: Path, second: Path, *, build_paths: Sequence[Path] = ()) -> Comparison:
    """Compare two builds of a wheel, archive, folder or file.

    Args:
        first: the one before.
        second: the one after.
        build_paths: the folders that they were built in.

    Raises:
        UsageError: one is a folder or archive and the other is not.
        UnsafeInputError, NotCheckedError: as `read_tree`.
    """
    one, two = (read_tree(each, build_paths=build_paths) for each in (first, second))
    if one.kind != two.kind:
        raise UsageError(f"a {one.kind} cannot be compared with a {two.kind}", where=f"{first} and {second}")
    if one.sha256 is not None and one.sha256 == two.sha256:
        return Comparison("bytes-identical", ())
    counted, whole = _counted(one, two, build_paths)
    apart = tuple(_apart(one, two, build_paths))
    if counted:
        return Comparison("inputs-identical" if whole else "device-code-identical", (*counted, *apart))
    if one.kind == "folder" and not apart:
        return Comparison("bytes-identical", ())
    return Comparison("content-identical", apart or (_packing(one, two),))


def _counted(one: Tree, two: Tree, build_paths: Sequence[Path]) -> tuple[list[Difference], bool]:
    """Differences in content, and whether any is one that the same device code does not make good."""
    found: list[Difference] = []
    after: list[Difference] = []
    whole = False
    for path in sorted({*one.members, *two.members}):
        before, now = one.members.get(path), two.members.get(path)
        if before is None or now is None:
            whole = True
            reason = "an extra member" if before is None else "a missing member"
            found.append(Difference(where=path, reason=reason))
        elif before.content_sha256 != now.content_sha256:
            code = before.device_code_sha256
            same = code is not None and code == now.device_code_sha256
            whole = whole or not same
            told = _told(one, two, path, build_paths)
            if same:
                name = path or "the file"
                after.append(Difference(where=name, reason="the same device code; code for the host differs"))
            (after if same else found).extend(told)
    return [*found, *after], whole


def _told(one: Tree, two: Tree, path: str, build_paths: Sequence[Path]) -> tuple[Difference, ...]:
    before, now = one.members[path], two.members[path]
    if before.link is not None or now.link is not None:
        sides = (None if each.link is None else shown(each.link) for each in (before, now))
        expected, got = sides
        return (Difference(where=path, expected=expected, got=got, reason="a symbolic link to another place"),)
    with one.open(path) as first, two.open(path) as second:
        return explain(path, first, second, build_paths=build_paths)


def _apart(one: Tree, two: Tree, build_paths: Sequence[Path]) -> Iterator[Difference]:
    """What does not count: times, modes, order, and bytes of members that hold the same."""
    explained = 0
    for path in sorted({*one.members} & {*two.members}):
        before, now = one.members[path], two.members[path]
        if before.mode != now.mode:
            yield Difference(where=path or "the file", expected=f"{before.mode:o}", got=f"{now.mode:o}", reason="mode")
        if before.time != now.time:
            yield Difference(where=path or "the file", expected=before.time, got=now.time, reason="time")
        link = before.link is not None or now.link is not None
        if link or before.content_sha256 != now.content_sha256 or explained >= _MOST_EXPLAINED:
            continue
        if _other_bytes(one, two, path, before, now):
            explained += 1
            yield from _same_content(one, two, path, build_paths)


def _other_bytes(one: Tree, two: Tree, path: str, before: Member, now: Member) -> bool:
    if before.raw_sha256 is not None and now.raw_sha256 is not None:
        return before.raw_sha256 != now.raw_sha256
    with one.open(path) as first, two.open(path) as second:
        return normal_hash(first, _NOTHING) != normal_hash(second, _NOTHING)


def _same_content(one: Tree, two: Tree, path: str, build_paths: Sequence[Path]) -> Iterator[Difference]:
    with one.open(path) as first, two.open(path) as second:
        if path.endswith(_RECORD):
            # Other digests in it follow from members that differ, and those are named.
            if sorted(first.read(0, first.size).splitlines()) == sorted(second.read(0, second.size).splitlines()):
                yield Difference(where=path, reason="the same rows in another order")
            return
        yield from explain(path, first, second, build_paths=build_paths)


def _packing(one: Tree, two: Tree) -> Difference:
    why = "same members, modes and times; order or compression differ"
    return Difference(where="the archive", expected=one.sha256, got=two.sha256, reason=why)

"""Applying a series of unified-diff patches exactly: no fuzz, no search, all or nothing.

`git apply` and `patch` look for a hunk elsewhere when its line has moved. An input that is pinned by digest has no
reason to move, so here a hunk applies at the line it names, shifted only by the hunks before it, or not at all.
Everything is done in memory first, so a patch that fails leaves the tree as it was.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from reproducer.build.patch_files import FilePatch, Hunk, parse_patch
from reproducer.documents.base import shown
from reproducer.errors import DriftError, UnsafeInputError


@dataclass(frozen=True)
class Changed:
    """One file after a series: its bytes (None where it is deleted) and whether it is a new executable file."""

    data: bytes | None
    executable: bool = False


def _apply(patch: FilePatch, before: bytes | None, *, where: str) -> bytes | None:
    """The bytes of one file after its hunks; None where the patch deletes it."""
    if patch.creates and before is not None:
        raise DriftError(f"{patch.path}: creates a file that is there already", where=where)
    # `diff -N` names a missing file like any other: an empty old side at line 0 creates it.
    if before is None and not patch.creates and any(hunk.old_count or hunk.old_start for hunk in patch.hunks):
        raise DriftError(f"{patch.path}: changes a file that is not there", where=where)
    old = _lines(before or b"")
    result: list[bytes] = []
    position = 0
    for hunk in patch.hunks:
        position = _apply_hunk(hunk, old, result, position, where=f"{where}: {patch.path}, hunk {hunk.number}")
    result += old[position:]
    if any(not line.endswith(b"\n") for line in result[:-1]):
        raise DriftError(f"{patch.path}: leaves a line without its newline inside the file", where=where)
    if patch.deletes and result:
        raise DriftError(f"{patch.path}: deletes a file but leaves {len(result)} of its lines", where=where)
    return None if patch.deletes else b"".join(result)


def _apply_hunk(hunk: Hunk, old: list[bytes], result: list[bytes], position: int, *, where: str) -> int:
    """Append to `result` what is between `position` and the hunk, and the hunk; the position after it."""
    start = hunk.old_start - 1 if hunk.old_count else hunk.old_start
    if start < position:
        raise DriftError("begins before the hunk above it ends", where=where)
    if start > len(old):
        raise DriftError(f"begins at line {start + 1}", where=where, why=f"the file has {len(old)} lines")
    result += old[position:start]
    new_start = hunk.new_start - 1 if hunk.new_count else hunk.new_start
    if new_start != len(result):
        landed = len(result) + (1 if hunk.new_count else 0)
        raise DriftError(
            f"says it lands on line {hunk.new_start}", where=where, why=f"after the hunks above it that is {landed}"
        )
    position = start
    for sign, content in hunk.lines:
        if sign != b"+":
            found = old[position] if position < len(old) else None
            if found != content:
                got = "the end of the file" if found is None else shown(found.decode("utf-8", "backslashreplace"))
                raise DriftError(
                    f"does not apply at line {position + 1}",
                    where=where,
                    why=f"expected {shown(content.decode('utf-8', 'backslashreplace'))}, found {got}",
                    todo="the patch belongs to another version of the source",
                )
            position += 1
        if sign != b"-":
            result.append(content)
    return position


def _lines(data: bytes) -> list[bytes]:
    """Lines as diff counts them: they end at a newline and nowhere else."""
    pieces = data.split(b"\n")
    return [piece + b"\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def _target(tree: Path, path: str, *, where: str) -> Path:
    """The file below the tree; nothing on the way to it may be a link."""
    current = tree
    for part in PurePosixPath(path).parts:
        current = current / part
        if current.is_symlink():
            raise UnsafeInputError(f"{path} lies behind a symbolic link", where=where)
    if current.exists() and not current.is_file():
        raise UnsafeInputError(f"{path} is not a file", where=where)
    return current


def changes(tree: Path, series: Iterable[tuple[str, bytes]]) -> Mapping[str, Changed]:
    """What a series of patches makes of a tree, without touching it.

    Args:
        tree: the source tree.
        series: (name, bytes) of each patch file, in order.

    Returns:
        Every file that changes, by path.

    Raises:
        DriftError: names patch file, target file, hunk, line, what was expected and what was found.
        UnsafeInputError: a patch that does what a patch must not.
    """
    after: dict[str, Changed] = {}
    for name, data in series:
        for patch in parse_patch(data, where=name):
            target = _target(tree, patch.path, where=name)
            known = after.get(patch.path)
            before = known.data if known else (target.read_bytes() if target.is_file() else None)
            new = before is None
            executable = patch.executable if new else bool(known and known.executable)
            after[patch.path] = Changed(_apply(patch, before, where=name), executable)
    return after


def apply_series(tree: Path, series: Iterable[tuple[str, bytes]]) -> tuple[str, ...]:
    """Apply a series of patches to a tree, all of it or nothing; raises as `changes` does.

    Returns:
        The paths that changed, sorted.
    """
    after = changes(tree, series)
    for path, changed in sorted(after.items()):
        target = tree / path
        if changed.data is None:
            target.unlink(missing_ok=True)
            continue
        fresh = not target.exists()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(changed.data)
        if fresh:
            target.chmod(0o755 if changed.executable else 0o644)
    return tuple(sorted(after))

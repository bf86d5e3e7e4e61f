"""The files of one commit as a hub lists them: names that a document and a disk can carry, and their digests."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from pydantic import TypeAdapter, ValidationError

from reproducer.documents.base import RelativePath, Sha256, Size, shown
from reproducer.documents.sources import GitObject
from reproducer.errors import UnsafeInputError
from reproducer.hub.asking import Hub

_MOST_FILES = 100_000
_PATH: TypeAdapter[str] = TypeAdapter(RelativePath)
_SIZE: TypeAdapter[int] = TypeAdapter(Size)
_SHA256: TypeAdapter[str] = TypeAdapter(Sha256)
_BLOB: TypeAdapter[str] = TypeAdapter(GitObject)


@dataclass(frozen=True)
class HubFile:
    """One file of a commit.

    Attributes:
        blob: its git object name, where the bytes lie in git itself; None for a file in LFS.
        sha256: digest of its bytes, where they lie in LFS; None for a file in git itself.
    """

    path: str
    size: int
    blob: str | None
    sha256: str | None

    @property
    def entity(self) -> str:
        """The name of its bytes in the hub's cache."""
        return self.blob or self.sha256 or ""


def listing(hub: Hub, repository: str, commit: str, *, ignore: Sequence[str] = ()) -> tuple[HubFile, ...]:
    """Every file of a commit that no pattern leaves out, by path.

    Args:
        hub: who is asked.
        repository: its name.
        commit: the full commit.
        ignore: shell patterns; one that ends with `/` names a whole folder.

    Raises:
        UnsafeInputError: a path that leaves its folder, carries control characters, stands twice, differs from another
            one in upper and lower case only, or is file and folder at once; a size or digest that is none.
        DriftError, NotCheckedError: as `Hub.tree`.
    """
    where = f"{repository} at {commit[:12]}"
    files = sorted(_files(hub.tree(repository, commit), ignore, where=where), key=lambda file: file.path)
    if len(files) > _MOST_FILES:
        raise UnsafeInputError(f"holds more than {_MOST_FILES} files", where=where)
    check_names((file.path for file in files), where=where)
    return tuple(files)


def ignored(path: str, patterns: Iterable[str]) -> bool:
    """Whether a pattern leaves a file out; `*` crosses folders, as the hub's client has it."""
    return any(fnmatchcase(path, f"{each}*" if each.endswith("/") else each) for each in patterns)


def check_names(paths: Iterable[str], *, where: str) -> None:
    """Refuse paths that cannot lie in one folder on every disk; raises UnsafeInputError."""
    seen: dict[str, str] = {}
    folders: dict[str, str] = {}
    for path in paths:
        folded = path.casefold()
        if folded in seen:
            how = "stands twice" if seen[folded] == path else f"and {shown(seen[folded])} differ in case only"
            raise UnsafeInputError(f"{shown(path)} {how}", where=where)
        seen[folded] = path
        parts = path.split("/")
        for end in range(1, len(parts)):
            folder = "/".join(parts[:end])
            other = folders.setdefault(folder.casefold(), folder)
            if other != folder:
                raise UnsafeInputError(f"{shown(folder)} and {shown(other)} differ in case only", where=where)
    for folded, folder in folders.items():
        if folded in seen:
            raise UnsafeInputError(f"{shown(folder)} is a file and a folder", where=where)


def _files(entries: Iterable[Any], ignore: Sequence[str], *, where: str) -> Iterator[HubFile]:
    for entry in entries:
        kind = entry.get("type") if isinstance(entry, dict) else None
        if kind == "directory":
            continue
        path = entry.get("path") if kind == "file" else None
        if not isinstance(path, str):
            raise UnsafeInputError("the hub lists something that is neither file nor folder", where=where)
        if not ignored(path, ignore):
            yield _file(path, entry, where=where)


def _file(path: str, entry: dict[str, Any], *, where: str) -> HubFile:
    try:
        _PATH.validate_python(path, strict=True)
    except ValidationError as error:
        raise UnsafeInputError(
            f"the name {shown(path)} is refused",
            where=where,
            why=error.errors()[0]["msg"].removeprefix("Value error, "),
            todo="leave it out with `ignore` in the manifest",
        ) from error
    lfs = entry.get("lfs")
    try:
        size = _SIZE.validate_python(entry.get("size"), strict=True)
        if lfs is None:
            return HubFile(path, size, _BLOB.validate_python(entry.get("oid"), strict=True), None)
        if not isinstance(lfs, dict) or lfs.get("size") != size:
            raise UnsafeInputError(f"{shown(path)} has two sizes", where=where)
        return HubFile(path, size, None, _SHA256.validate_python(lfs.get("oid"), strict=True))
    except ValidationError as error:
        raise UnsafeInputError(
            f"the hub says no size and digest of {shown(path)}", where=where, why=error.errors()[0]["msg"]
        ) from error

"""Files beside the lock: patches, scripts, local sources, by path and digest."""

import hashlib
from pathlib import Path

from pydantic import ValidationError

from reproducer.documents.base import FileReference, shown
from reproducer.documents.sources import LocalSource
from reproducer.errors import DriftError, UnsafeInputError

LARGEST = 64 << 20
_NOT_SOURCES = ("__pycache__", ".git", ".mypy_cache", ".ruff_cache", ".pytest_cache")
_BUILT = ("build", "dist")


def reference(path: str, data: bytes) -> FileReference:
    """The reference to a file of these bytes."""
    return FileReference(path=path, sha256=hashlib.sha256(data).hexdigest(), size=len(data))


def reference_to(root: Path, path: str, *, where: str) -> FileReference:
    """The reference to a file below `root`.

    Raises:
        DriftError: no such file.
        UnsafeInputError: it leads out of `root`, or is no plain file.
    """
    return reference(path, read_inside(root, path, where=where))


def read_inside(root: Path, path: str, *, where: str) -> bytes:
    """The bytes of a file below `root`; raises as `reference_to`."""
    base = root.resolve()
    target = (base / path).resolve()
    if not target.is_relative_to(base):
        raise UnsafeInputError(f"{path} leads out of its folder", where=where, why="a symbolic link")
    try:
        if target.exists() and not target.is_file():
            raise UnsafeInputError(f"{path} is no plain file", where=where)
        with target.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise DriftError(
            f"{path} cannot be read", where=where, why=error.strerror or str(error), todo="add it or correct the path"
        ) from error
    if len(data) > LARGEST:
        raise UnsafeInputError(f"{path} is larger than {LARGEST} bytes", where=where)
    return data


def source_folder(root: Path, path: str, *, where: str) -> Path:
    """The folder of a source tree below `root`.

    Raises:
        DriftError: there is none.
    """
    top = root.resolve() / path
    if not top.is_dir() or not top.resolve().is_relative_to(root.resolve()):
        raise DriftError(f"there is no folder {path}", where=where, todo="add it or correct the path")
    return top


def local_source(root: Path, path: str, *, where: str) -> LocalSource:
    """Every file of a source tree below `root`, without what builds and tools leave behind.

    Raises:
        DriftError: no such folder, or it is empty.
        UnsafeInputError: a link, a special file, or a name that no lock can carry.
    """
    top = source_folder(root, path, where=where)
    found = []
    for file in sorted(top.rglob("*")):
        inside = file.relative_to(top)
        if any(part in _NOT_SOURCES or part.endswith(".egg-info") for part in inside.parts):
            continue
        if inside.parts[0] in _BUILT or file.suffix == ".pyc":
            continue
        if file.is_symlink():
            raise UnsafeInputError(f"{path}/{inside} is a link", where=where, todo="replace it by the file itself")
        if file.is_dir():
            continue
        try:
            data = read_inside(top, inside.as_posix(), where=where)
            found.append(reference(inside.as_posix(), data))
        except ValidationError as error:
            raise UnsafeInputError(f"{shown(str(inside))} is no name that a lock can carry", where=where) from error
    if not found:
        raise DriftError(f"{path} holds no files", where=where)
    return LocalSource(path=path, files=tuple(found))

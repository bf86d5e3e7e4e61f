"""A lock together with the folder it lies in, whose files are checked before anyone uses them."""

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reproducer.documents.base import FileReference
from reproducer.documents.lock import Component, Lock
from reproducer.documents.sources import GitSource, LocalSource
from reproducer.documents.toml import read_document
from reproducer.errors import DriftError, UnsafeInputError

if TYPE_CHECKING:
    from reproducer.documents.arguments import ArgumentSchema

LARGEST_FILE = 64 << 20


@dataclass(frozen=True)
class OpenedLock:
    """A lock, the file it was read from and the folder its paths are relative to."""

    lock: Lock
    path: Path

    @property
    def folder(self) -> Path:
        """The folder that every relative path of the lock starts from."""
        return self.path.parent

    @property
    def digest(self) -> str:
        """The lock digest."""
        return self.lock.digest

    def read(self, reference: FileReference) -> bytes:
        """The bytes of a file the lock names.

        Raises:
            UnsafeInputError: the path leads out of the lock's folder through a link, to a pipe or device, or to a file
            that is too large.
            DriftError: the file is missing, or its bytes are not those the lock pins.
        """
        return read_reference(self.folder, reference, where=str(self.path))

    def arguments(self) -> "ArgumentSchema | None":
        """What the lock's engine takes; None where the lock has no list of it.

        Raises:
            InvalidDocumentError: the list is malformed.
            DriftError, UnsafeInputError: as `read`.
        """
        from reproducer.documents.arguments import ArgumentSchema

        reference = self.lock.engine.arguments
        return None if reference is None else ArgumentSchema.from_json(self.read(reference), where=reference.path)

    def check_files(self) -> int:
        """Check every file the lock names and return how many there are; raises as `read` does, for the first fault."""
        named = references(self.lock)
        for reference in named:
            self.read(reference)
        return len(named)


def references(lock: Lock) -> tuple[FileReference, ...]:
    """Every file that travels beside the lock, by path; local sources relative to the lock's folder as well."""
    named = [each for component in lock.components for each in _of_component(component)]
    named += [environment.pylock for environment in lock.environments]
    named += [checkpoint.conversion.script for checkpoint in lock.checkpoints if checkpoint.conversion is not None]
    named += (lock.launch.files or {}).values()
    adopted = (lock.adopted.environment, lock.adopted.observed) if lock.adopted else ()
    thresholds = [threshold for measure in lock.qualification.measures for threshold in measure.thresholds]
    named += [threshold.relative_to for threshold in thresholds if threshold.relative_to is not None]
    alone = (lock.engine.arguments, lock.qualification.reference, *adopted)
    named += [each for each in alone if each is not None]
    found = {(each.path, each.sha256): each for each in reversed(named)}  # the first of equals is the one that counts
    return tuple(found[key] for key in sorted(found))


def _of_component(component: Component) -> Iterator[FileReference]:
    """The files of a local source, local changes, patches and lists of members."""
    source = component.source
    if isinstance(source, GitSource) and source.changes is not None:
        yield source.changes
    if isinstance(source, LocalSource):
        yield from (file.model_copy(update={"path": f"{source.path}/{file.path}"}) for file in source.files)
    yield from component.patches
    yield from (output.members for output in component.wheels)


def read_reference(folder: Path, reference: FileReference, *, where: str) -> bytes:
    """The verified bytes of a referenced file below `folder`; raises as `OpenedLock.read` does."""
    root = folder.resolve()
    if reference.size > LARGEST_FILE:
        raise UnsafeInputError(f"{reference.path} is larger than {LARGEST_FILE} bytes", where=where)
    try:
        path = (root / reference.path).resolve()
        if not path.is_relative_to(root):
            raise UnsafeInputError(f"{reference.path} leads out of its folder", where=where, why="a symbolic link")
        # a pipe that nobody writes to must not be waited for
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UnsafeInputError(f"{reference.path} is not a regular file", where=where)
            data = file.read(reference.size + 1)
    except (OSError, RuntimeError) as error:
        raise DriftError(
            f"{reference.path} cannot be read",
            where=where,
            why=getattr(error, "strerror", None) or str(error),
            todo="restore the file",
        ) from error
    got = hashlib.sha256(data).hexdigest()
    if got != reference.sha256:
        raise DriftError(
            f"{reference.path} is not the file that the lock pins",
            where=where,
            why=f"expected sha256 {reference.sha256} of {reference.size} bytes, got {got}",
            todo="restore the file, or run `penny lock` if the change is meant",
        )
    return data


def open_lock(path: Path) -> OpenedLock:
    """Read and validate a lock.

    Raises:
        UsageError: no such file.
        InvalidDocumentError: not a lock; names line and key.
    """
    return OpenedLock(read_document(Lock, path, what="lock"), path.absolute())

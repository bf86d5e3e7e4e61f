"""The lock that is there already: what of it may be kept."""

from dataclasses import dataclass
from pathlib import Path

from reproducer.documents.base import FileReference
from reproducer.documents.lock import Build, Checkpoint, Component, Environment, Lock, Toolchain
from reproducer.documents.opened import OpenedLock, open_lock
from reproducer.documents.sources import Artefact
from reproducer.errors import DriftError, InvalidDocumentError, UsageError
from reproducer.locking.pylock_file import packages_of


@dataclass(frozen=True)
class Previous:
    """A lock, or none; whatever does not verify counts as not there."""

    opened: OpenedLock | None

    @classmethod
    def at(cls, lock_path: Path) -> "Previous":
        """The lock at a path.

        Raises:
            InvalidDocumentError: it is there and is no lock.
        """
        return cls(open_lock(lock_path) if lock_path.exists() or lock_path.is_symlink() else None)

    @property
    def lock(self) -> Lock | None:
        """The document."""
        return self.opened.lock if self.opened else None

    def bytes_of(self, reference: FileReference) -> bytes | None:
        """The bytes of a file that it pins, None where they are gone or other ones."""
        try:
            return self.opened.read(reference) if self.opened else None
        except DriftError:
            return None

    def packages(self, environment: str) -> dict[str, tuple[Artefact, ...]]:
        """Every package of an environment with its wheels; none where its file is not the one that is pinned."""
        found = self._environment(environment)
        data = self.bytes_of(found.pylock) if found else None
        if found is None or data is None:
            return {}
        try:
            return packages_of(data.decode("utf-8"), where=found.pylock.path)
        except (InvalidDocumentError, UnicodeDecodeError):
            return {}

    def component(self, name: str) -> Component | None:
        """The component of that name."""
        return next((each for each in self.lock.components if each.name == name), None) if self.lock else None

    def checkpoint(self, name: str) -> Checkpoint | None:
        """The checkpoint of that name."""
        return next((each for each in self.lock.checkpoints if each.name == name), None) if self.lock else None

    def same_workshop(self, recipe: Build, toolchain: Toolchain, environment: Environment | None) -> bool:
        """Whether things made in that environment, or in none, would be made as they were."""
        lock = self.lock
        return (
            lock is not None
            and lock.build == recipe
            and lock.toolchain == toolchain
            and (environment is None or self._environment(environment.name) == environment)
        )

    def _environment(self, name: str) -> Environment | None:
        return next((each for each in self.lock.environments if each.name == name), None) if self.lock else None


def manifest_of(lock_path: Path) -> Path:
    """The manifest a lock was made from; without a lock the only one in `manifests` beside it.

    Raises:
        UsageError: neither is there.
        InvalidDocumentError: the lock is malformed.
    """
    previous = Previous.at(lock_path)
    if previous.lock is not None and previous.lock.manifest is None:
        raise UsageError(
            "the lock was frozen from a running server, and no manifest leads to it",
            where=str(lock_path),
            todo="name a manifest, and another file with --lock",
        )
    if previous.lock is not None and previous.lock.manifest is not None:
        return lock_path.parent / previous.lock.manifest
    there = sorted((lock_path.parent / "manifests").glob("*.toml"))
    if len(there) != 1:
        why = f"{len(there)} files in manifests" if there else "no lock names one and manifests holds none"
        raise UsageError("name a manifest", why=why, todo="run `penny lock MANIFEST`, or `penny init` for a new one")
    return there[0]

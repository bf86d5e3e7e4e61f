"""Files of package indexes while a lock is being made: the release that is meant, and its bytes in the store."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from reproducer.documents.base import shown
from reproducer.documents.lock import Environment
from reproducer.documents.sources import Artefact
from reproducer.errors import InvalidDocumentError
from reproducer.fetch import fetch_artefacts, find_release, read_pylock, select
from reproducer.locking.pylock_file import render_pylock
from reproducer.locking.releases import on_disk

if TYPE_CHECKING:
    from reproducer.fetch.indexes import Indexes
    from reproducer.fetch.releases import Kind
    from reproducer.progress import Reporter
    from reproducer.store import Store


@dataclass(frozen=True)
class Artefacts:
    """What finds and fetches.

    Attributes:
        store: where bytes go.
        indexes: the user's own.
        python: minor version, such as `3.11`.
        platform: the lock's platform.
        offline: touch no network; what is not in the store is missing.
    """

    store: "Store"
    indexes: "Indexes"
    reporter: "Reporter"
    python: str
    platform: str
    offline: bool

    def release(self, project: str, specifier: str, kind: "Kind", *, keep: Artefact | None, where: str) -> Artefact:
        """The file that a specifier means: the one to keep where it still fits, else the newest.

        Raises:
            InvalidDocumentError: a malformed specifier.
            NotCheckedError: no index that could be asked has one.
        """
        wanted = versions(specifier, where=where)
        if keep is not None and keep.project == _normal(project) and wanted.contains(keep.version, prereleases=True):
            return keep
        return find_release(
            project,
            specifier,
            kind,
            indexes=on_disk(self.indexes) if self.offline else self.indexes,
            reporter=self.reporter,
            python=self.python,
            platform=self.platform,
        )

    def fetched(self, artefact: Artefact) -> Path:
        """The verified file in the store; raises as `fetch_artefacts`."""
        plain = Artefact(**artefact.model_dump(include=set(Artefact.model_fields)))
        fetch_artefacts([(plain,)], self.store, indexes=self.indexes, reporter=self.reporter, offline=self.offline)
        return self.store.blob_path(plain.sha256)

    def chosen(self, environment: Environment, packages: Mapping[str, tuple[Artefact, ...]]) -> tuple[Artefact, ...]:
        """The wheel of every package that serves on this host, all of them in the store."""
        text = render_pylock(packages, python=self.python, platform=self.platform)
        choices = select(read_pylock(text, where=environment.pylock.path), self.python, self.platform)
        obtained = fetch_artefacts(
            choices,
            self.store,
            indexes=self.indexes.with_hints(environment.indexes),
            reporter=self.reporter,
            offline=self.offline,
        )
        return tuple(sorted(obtained.chosen, key=lambda wheel: wheel.project))


def versions(text: str, *, where: str) -> SpecifierSet:
    """What a version or a range of versions means.

    Raises:
        InvalidDocumentError: it is neither.
    """
    try:
        return SpecifierSet(f"=={text}" if text[:1].isdigit() else text)
    except InvalidSpecifier as error:
        raise InvalidDocumentError(f"{shown(text)} is no version or range of versions", where=where) from error


def _normal(project: str) -> str:
    from packaging.utils import canonicalize_name

    return str(canonicalize_name(project))

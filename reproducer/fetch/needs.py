"""Everything a lock needs: sources, wheels of every environment, the checkpoint's wheel or its files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from reproducer.documents.opened import OpenedLock
from reproducer.documents.sources import Artefact, GitSource
from reproducer.errors import InvalidDocumentError, UsageError
from reproducer.fetch.indexes import Indexes
from reproducer.fetch.obtain import Choices, fetch_artefacts
from reproducer.fetch.pylock import read_pylock, select
from reproducer.fetch.web import Patience
from reproducer.progress import Reporter
from reproducer.store import Store

if TYPE_CHECKING:
    from reproducer.git.obtaining import Commits
    from reproducer.hub.fetching import Brought
    from reproducer.hub.place import HubPlace


def _nothing() -> "Brought":
    from reproducer.hub.fetching import Brought

    return Brought()


def _no_commits() -> "Commits":
    from reproducer.git.obtaining import Commits

    return Commits()


@dataclass(frozen=True)
class Fetched:
    """What a lock needs, all of it in the store under its sha256 and verified.

    Attributes:
        artefacts: every file, each once, by file name.
        environments: per environment of the lock the chosen wheel of every package, by package name.
        downloaded: bytes that were transferred now.
        reused: files that were in the store already.
        checkpoints: those whose files are taken as they are.
        commits: those of git sources and their submodules.
    """

    artefacts: tuple[Artefact, ...]
    environments: dict[str, tuple[Artefact, ...]]
    downloaded: int
    reused: int
    checkpoints: "Brought" = field(default_factory=_nothing)
    commits: "Commits" = field(default_factory=_no_commits)


def fetch(
    opened: OpenedLock,
    store: Store,
    *,
    indexes: Indexes,
    reporter: Reporter,
    offline: bool = False,
    patience: Patience | None = None,
    hub: "HubPlace | None" = None,
    folders: Mapping[str, Path] | None = None,
    repositories: Mapping[str, Path] | None = None,
) -> Fetched:
    """Bring everything a lock names into the store.

    Args:
        opened: the lock; its environment files are read and checked by digest.
        store: where to.
        indexes: the user's; the indexes that the lock's environments hint at are asked after them.
        reporter: is shown progress.
        offline: touch no network; the store alone counts.
        patience: how long one goes on asking; None for the usual.
        hub: where checkpoints come from; None for the user's own.
        folders: checkpoints that the user has already, by role; they are verified and not downloaded.
        repositories: git repositories on this machine that have commits of the lock, by `obtain`'s names.

    Raises:
        InvalidDocumentError: an environment file is malformed.
        DriftError: an environment file or a served file is not what the lock pins.
        UnsafeInputError: a checkpoint's file can carry code, or its safetensors header is not sound.
        NotCheckedError: files that could not be had, all in one error; another platform; disk full.
    """
    lock = opened.lock
    named = [*(component.source for component in lock.components), *(each.source for each in lock.checkpoints)]
    sources = [_plain(source) for source in named if isinstance(source, Artefact)]
    environments: dict[str, tuple[Choices, ...]] = {}
    for environment in lock.environments:
        where = str(opened.folder / environment.pylock.path)
        pylock = read_pylock(opened.read(environment.pylock), where=where)
        chosen = select(pylock, lock.toolchain.python, lock.platform)
        if len(pylock.packages) != environment.packages:
            raise InvalidDocumentError(
                f"the environment {environment.name} has {len(pylock.packages)} packages",
                where=where,
                why=f"the lock says {environment.packages}",
                todo="lock again with penny",
            )
        environments[environment.name] = chosen
    hints = [url for environment in lock.environments for url in environment.indexes]
    needs: dict[Choices, None] = dict.fromkeys((source,) for source in sources)
    needs.update((choices, None) for chosen in environments.values() for choices in chosen)
    obtained = fetch_artefacts(
        tuple(needs),
        store,
        indexes=indexes.with_hints(hints),
        reporter=reporter,
        offline=offline,
        patience=patience,
    )
    taken = [each for each in lock.checkpoints if each.made is None]
    brought = _nothing()
    if taken or folders:
        from reproducer.hub.fetching import fetch_checkpoints
        from reproducer.hub.place import HubPlace

        _check_roles(folders or {}, [each.role for each in taken])
        place = hub or HubPlace()
        brought = fetch_checkpoints(taken, store, place=place, reporter=reporter, offline=offline, folders=folders)
    commits = _no_commits()
    if repositories or any(isinstance(component.source, GitSource) for component in lock.components):
        from reproducer.git.obtaining import obtain

        commits = obtain(lock, store, reporter=reporter, offline=offline, places=repositories)
    by_need = dict(zip(needs, obtained.chosen, strict=True))
    unique = {artefact.sha256: artefact for artefact in obtained.chosen}
    return Fetched(
        artefacts=tuple(sorted(unique.values(), key=lambda artefact: artefact.filename)),
        environments={
            name: tuple(sorted((by_need[choices] for choices in chosen), key=lambda artefact: artefact.project))
            for name, chosen in environments.items()
        },
        downloaded=obtained.downloaded + brought.downloaded + commits.downloaded,
        reused=obtained.reused + brought.reused,
        checkpoints=brought,
        commits=commits,
    )


def _check_roles(folders: Mapping[str, Path], taken: list[str]) -> None:
    """Refuse a folder for a checkpoint that the lock does not take from one."""
    for role in folders:
        if role not in taken:
            raise UsageError(
                f"no checkpoint with the role {role!r} is taken as files", todo=f"roles: {', '.join(taken) or 'none'}"
            )


def _plain(source: Artefact) -> Artefact:
    """The artefact of a source, without what the source says about its content."""
    return Artefact(
        project=source.project,
        version=source.version,
        filename=source.filename,
        sha256=source.sha256,
        size=source.size,
    )

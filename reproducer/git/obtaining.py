"""Every commit that a lock names, in the mirrors of the store: what is there is hashed, what is missing is fetched."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reproducer.archives.tree_writer import DEFAULT_LIMITS, Limits
from reproducer.documents.lock import Lock
from reproducer.documents.sources import GitSource, Submodule
from reproducer.errors import DriftError, NotCheckedError, Outcome, PennyError, UnsafeInputError, UsageError
from reproducer.git.addresses import Address
from reproducer.git.contents import Reading, checked_out
from reproducer.git.mirrors import Mirror
from reproducer.git.objects import DamagedError, objects
from reproducer.git.trees import SUBMODULE, leaves

if TYPE_CHECKING:
    from reproducer.progress import Reporter
    from reproducer.store import Store


@dataclass(frozen=True)
class Commits:
    """What was done for the git sources of a lock.

    Attributes:
        commits: how many commits it names, submodules included.
        reused: how many of them were in the store already.
        downloaded: bytes that came.
    """

    commits: int = 0
    reused: int = 0
    downloaded: int = 0


@dataclass(frozen=True)
class _Need:
    """One commit, what it is for, and where it may lie."""

    label: str
    pinned: GitSource | Submodule
    via: tuple[Address, ...]


def obtain(
    lock: Lock, store: "Store", *, reporter: "Reporter", offline: bool, places: Mapping[str, Path] | None = None
) -> Commits:
    """Have every commit of a lock's git sources in the store.

    Args:
        lock: the lock.
        store: where to.
        reporter: is told what is fetched.
        offline: touch no network; repositories on this machine count.
        places: where repositories lie on this machine: a component's by its name, a submodule's by `NAME/PATH`.

    Raises:
        UsageError: `places` names what the lock does not have.
        DriftError: a commit is gone, or is not what the lock says; all such faults in one error.
        NotCheckedError: repositories that cannot be reached or are not known here; all in one error.
    """
    needs = list(_needs(lock, dict(places or {})))
    reading = Reading(store, reporter, offline)
    faults: list[PennyError] = []
    reused = downloaded = 0
    for need in needs:
        try:
            came = _have(need, reading)
        except (DriftError, NotCheckedError) as error:
            faults.append(error)
        else:
            downloaded += came or 0
            reused += came is None
    if faults:
        raise _together(faults)
    return Commits(len(needs), reused, downloaded)


def fetch_source(source: GitSource, name: str, reading: Reading, via: tuple[Address, ...]) -> None:
    """Have the commits of one source in the store, while a lock is being made; raises as `obtain`."""
    for need in _of(source, name, via, {}):
        _have(need, reading)


def _needs(lock: Lock, places: dict[str, Path]) -> Iterable[_Need]:
    known: list[str] = []
    found: list[_Need] = []
    for component in lock.components:
        if isinstance(component.source, GitSource):
            known += [component.name, *(f"{component.name}/{each.path}" for each in component.source.submodules)]
            named = (Address(path=places[component.name].absolute()),) if component.name in places else ()
            found += _of(component.source, component.name, named, places)
    if unknown := sorted(places.keys() - set(known)):
        import difflib

        near = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known) or 'none'}"
        raise UsageError(f"the lock has no git source {unknown[0]!r}", where="--repository", todo=hint)
    return found


def _of(source: GitSource, name: str, named: tuple[Address, ...], places: Mapping[str, Path]) -> Iterable[_Need]:
    """A source and its submodules; a repository on this machine is asked before a network."""
    remote = (Address(url=source.url),) if source.url else ()
    yield _Need(name, source, (*named, *remote))
    for module in source.submodules:
        label = f"{name}/{module.path}"
        own = (Address(path=places[label].absolute()),) if label in places else ()
        beside = tuple(found for each in named for found in checked_out(each, module.path))
        remote = (Address(url=module.url),) if module.url else ()
        yield _Need(label, module, (*own, *beside, *remote))


def _have(need: _Need, reading: Reading) -> int | None:
    """Bytes that came for one commit; None where it was there, whole."""
    pinned = need.pinned
    mirror = Mirror.of(reading.store, pinned.url, pinned.commit)
    if mirror.has(pinned.commit):
        try:
            verify(mirror, pinned, where=need.label)
        except DamagedError as error:
            aside = mirror.set_aside()
            reading.reporter.note(f"{need.label}: {error}; the mirror was set aside as {aside}")
        else:
            return None
    came = reading.brought(mirror, pinned.commit, need.via, where=need.label)
    verify(mirror, pinned, where=need.label)
    return came


def verify(mirror: Mirror, pinned: GitSource | Submodule, *, where: str, limits: Limits = DEFAULT_LIMITS) -> None:
    """Hash every object of a commit.

    Raises:
        DriftError: one is missing or damaged, or the commit has another tree than the lock says.
        UnsafeInputError: a tree that no source has, or more in it than `limits` allows.
    """
    with objects(mirror.folder) as there:
        tree = there.tree_of(pinned.commit)
        if tree != pinned.tree:
            raise DriftError(
                f"commit {pinned.commit} has another tree than the lock says",
                where=where,
                why=f"expected {pinned.tree}, got {tree}",
                todo="lock again: one of the two was changed by hand",
            )
        seen: set[str] = set()
        total = 0
        for leaf in leaves(there, tree, where=where, limits=limits):
            if leaf.kind == SUBMODULE or leaf.oid in seen:
                continue
            seen.add(leaf.oid)
            blob = there.open(leaf.oid, "blob")
            total += blob.size
            if total > limits.total:
                raise UnsafeInputError(f"holds more than {limits.total} bytes", where=where)
            blob.finish()


def _together(faults: list[PennyError]) -> PennyError:
    """One error for everything that failed."""
    if len(faults) == 1:
        return faults[0]
    drifted = any(isinstance(each, DriftError) for each in faults)
    unchecked = any(isinstance(each, NotCheckedError) for each in faults)
    kind = DriftError if drifted and not unchecked else NotCheckedError
    error = kind(f"{len(faults)} commits could not be had", why="; ".join(map(str, faults)))
    if drifted and unchecked:
        error.exit_code = (Outcome.INPUTS_DRIFTED | Outcome.NOT_CHECKED).exit_code
    return error

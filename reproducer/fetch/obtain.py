"""Artefacts into the store: what is there is verified, what is missing is found, all that fails is named at once."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import chain
from threading import Lock
from typing import TypeVar

from reproducer.documents.sources import Artefact
from reproducer.errors import DriftError, NotCheckedError, Outcome, PennyError
from reproducer.fetch.download import MismatchError, NoBytesError, Transfer
from reproducer.fetch.indexes import Indexes
from reproducer.fetch.locate import Locator
from reproducer.fetch.simple import Candidate
from reproducer.fetch.web import Patience, Web
from reproducer.progress import Reporter
from reproducer.store import Store
from reproducer.store.faults import free_bytes, full
from reproducer.store.hashing import workers_here

Choices = tuple[Artefact, ...]
T = TypeVar("T")
R = TypeVar("R")
_MOST_NAMED = 10
_ASKING = 12
_BRINGING = 6
_SPARE_BYTES = 16 << 20


@dataclass(frozen=True)
class Obtained:
    """What `fetch_artefacts` brought about.

    Attributes:
        chosen: per choices, in their order, the artefact that is now in the store, verified.
        downloaded: bytes that were transferred.
        reused: artefacts that were in the store already.
    """

    chosen: tuple[Artefact, ...]
    downloaded: int
    reused: int


@dataclass
class _Search:
    """Choices that are not in the store, with what is known about where to get them."""

    choices: Choices
    artefact: Artefact | None = None
    rest: Iterator[tuple[Artefact, Candidate]] = field(default_factory=lambda: iter(()))
    drifts: list[str] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)

    @property
    def label(self) -> str:
        others = len(self.choices) - 1
        return self.choices[0].filename + (f" (or {others} other{'s' if others > 1 else ''})" if others else "")


def fetch_artefacts(
    choices: Sequence[Choices],
    store: Store,
    *,
    indexes: Indexes,
    reporter: Reporter,
    offline: bool = False,
    patience: Patience | None = None,
) -> Obtained:
    """Have one artefact of each of the choices in the store, verified.

    What is in the store is taken before what is not, then the first choice that any source serves.

    Args:
        choices: per need the artefacts that serve, best first, at least one.
        store: where to.
        indexes: where from.
        reporter: is shown progress in bytes.
        offline: touch no network and no find-links; the store alone counts.
        patience: how long one goes on asking; None for the usual.

    Raises:
        DriftError: sources serve other bytes under an artefact's name; expected and got stand in the error.
        NotCheckedError: artefacts that no source serves or that could not be downloaded, all in one error; disk full.
    """
    chosen: dict[int, Artefact] = {}
    searches: dict[int, _Search] = {}
    for index, present in enumerate(_in_store(choices, store, reporter)):
        if present is not None:
            chosen[index] = present
        else:
            searches[index] = _Search(choices[index])
    reused = len({artefact.sha256 for artefact in chosen.values()})
    downloaded = 0
    if searches and offline:
        for label in sorted({search.label for search in searches.values()}):
            reporter.detail(f"missing: {label}")
        raise NotCheckedError(
            _missing(searches.values(), "is not in the store", "are not in the store", most=_MOST_NAMED),
            where=str(store.root),
            why="--offline touches no network",
            todo="run `penny fetch` with a network first",
        )
    if searches:
        downloaded = _bring_all(searches, store, indexes=indexes, reporter=reporter, patience=patience)
        chosen |= {index: search.artefact for index, search in searches.items() if search.artefact is not None}
    return Obtained(tuple(chosen[index] for index in range(len(choices))), downloaded, reused)


def _in_store(choices: Sequence[Choices], store: Store, reporter: Reporter) -> list[Artefact | None]:
    """Per choices the first artefact that is in the store and whole; damaged ones are set aside with a note."""
    store.prepare()

    def first_whole(alternatives: Choices) -> Artefact | None:
        for artefact in alternatives:
            if store.has(artefact.sha256):
                try:
                    store.verified(artefact.sha256, artefact.size, what=artefact.filename)
                except DriftError as error:
                    if store.has(artefact.sha256):
                        raise  # whole, but not of the size that the lock says
                    reporter.note(str(error))
                else:
                    return artefact
        return None

    return _in_threads(workers_here(), first_whole, choices)


def _bring_all(
    searches: dict[int, _Search], store: Store, *, indexes: Indexes, reporter: Reporter, patience: Patience | None
) -> int:
    """Find everything first, then check for room, then transfer; returns the bytes that were transferred."""
    web = Web(indexes, patience=patience)
    todo = list(searches.values())
    names = frozenset(artefact.filename for search in todo for artefact in search.choices)
    locator = Locator(indexes, web, only=names)
    try:
        with reporter.task("finding files", len(todo), "packages") as task:
            guard = Lock()

            def find(search: _Search) -> None:
                _find(search, locator)
                with guard:
                    task.advance(1)

            _in_threads(_ASKING, find, todo, halt=web.stop)
        _complain(todo, locator)
        needed = sum({search.artefact.sha256: search.artefact.size for search in todo if search.artefact}.values())
        free = free_bytes(store.root)
        if free is not None and needed + _SPARE_BYTES > free:
            raise full(store.root, what=f"fetching {len(todo)} files", needed=needed, spare=_SPARE_BYTES)
        with reporter.task(f"fetching {len(todo)} files", needed, "bytes") as task:

            def advance(amount: int) -> None:
                with guard:
                    task.advance(amount)

            transfer = Transfer(store, web, reporter=reporter, advance=advance)

            def bring(search: _Search) -> int:
                return _bring(search, transfer, locator, reporter)

            largest_first = sorted(todo, key=lambda search: -(search.artefact.size if search.artefact else 0))
            brought = _in_threads(_BRINGING, bring, largest_first, halt=web.stop)
        _complain(todo, locator)
        return sum(brought)
    finally:
        web.close()


def _find(search: _Search, locator: Locator) -> None:
    """Look for a place that offers any of the choices; stops at the first."""
    pairs = ((artefact, candidate) for artefact in search.choices for candidate in locator.candidates(artefact))
    first = next(pairs, None)
    if first is None:
        _note_others(search, locator)
    else:
        search.artefact = first[0]
        search.rest = chain((first,), pairs)


def _bring(search: _Search, transfer: Transfer, locator: Locator, reporter: Reporter) -> int:
    """Try place after place until one serves the right bytes; returns the bytes transferred, 0 where none does."""
    for artefact, candidate in search.rest:
        try:
            brought = transfer.bring(artefact, candidate)
        except MismatchError as error:
            search.drifts.append(_drift(artefact, error.got, candidate.source))
            reporter.detail(search.drifts[-1])
        except NoBytesError as error:
            search.faults.append((artefact.filename, f"{candidate.source}: {error}"))
            reporter.detail(f"{artefact.filename} from {candidate.source}: {error}")
        else:
            if candidate.yanked is not None:
                reason = f": {candidate.yanked}" if candidate.yanked else ""
                reporter.note(f"{artefact.filename} was withdrawn by its publisher and is used all the same{reason}")
            search.artefact = artefact
            search.drifts.clear()
            search.faults.clear()
            return brought
    search.artefact = None
    _note_others(search, locator)
    return 0


def _note_others(search: _Search, locator: Locator) -> None:
    """Remember files of the right name whose source says another digest."""
    for artefact in search.choices:
        for other in locator.others(artefact):
            search.drifts.append(_drift(artefact, f"{other.sha256}", other.source))


def _drift(artefact: Artefact, got: str, source: str) -> str:
    expected = f"expected sha256 {artefact.sha256} of {artefact.size} bytes"
    return f"{artefact.filename} from {source}: {expected}, got {got}"


def _complain(searches: Sequence[_Search], locator: Locator) -> None:
    """One error for everything that failed."""
    failed = [search for search in searches if search.artefact is None]
    if not failed:
        return
    drifts = [line for search in failed for line in dict.fromkeys(search.drifts)]
    faults = _grouped(fault for search in failed for fault in search.faults)
    sources = [f"{source}: {reason}" for source, reason in sorted(locator.faults.items())]
    nowhere = [search for search in failed if not search.drifts]
    why = "; ".join([*drifts, *faults, *sources]) or "no index and no find-links of yours has it"
    if not nowhere:
        raise DriftError(
            _missing(failed, "is not served as it is pinned", "are not served as they are pinned"),
            why=why,
            todo="name an index that has the pinned files, or lock again if the change is meant",
        )
    error: PennyError = NotCheckedError(
        _missing(failed, "could not be fetched", "could not be fetched"),
        why=why,
        todo="make an index that has them reachable (PIP_INDEX_URL, PIP_FIND_LINKS, UV_INDEX) and run it again",
    )
    if drifts:
        error.exit_code = (Outcome.INPUTS_DRIFTED | Outcome.NOT_CHECKED).exit_code
    raise error


def _grouped(faults: Iterable[tuple[str, str]]) -> list[str]:
    """One line for each reason, however many files it hit."""
    files: dict[str, list[str]] = {}
    for filename, reason in faults:
        files.setdefault(reason, []).append(filename)
    return [
        f"{names[0] if len(names) == 1 else f'{len(names)} files'} from {reason}" for reason, names in files.items()
    ]


def _missing(searches: Iterable[_Search], one: str, more: str, *, most: int | None = None) -> str:
    labels = list(dict.fromkeys(search.label for search in searches))  # the lock's order: sources before packages
    if len(labels) == 1:
        return f"{labels[0]} {one}"
    rest = f" and {len(labels) - most} more, see --verbose" if most is not None and len(labels) > most else ""
    return f"{len(labels)} files {more}: {', '.join(labels[:most])}{rest}"


def _in_threads(
    count: int, work: Callable[[T], R], items: Sequence[T], *, halt: Callable[[], None] = lambda: None
) -> list[R]:
    """The results in order; the first error, or an interruption, halts the others and is raised when they ended."""
    with ThreadPoolExecutor(count, thread_name_prefix="fetch") as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
            return [future.result() for future in futures]
        except BaseException:
            halt()
            pool.shutdown(wait=False, cancel_futures=True)
            raise

"""Whether package indexes still have what a lock names: every file is asked for, and none is transferred."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from reproducer.documents.sources import Artefact
from reproducer.fetch.indexes import Indexes
from reproducer.fetch.locate import Locator, path_of
from reproducer.fetch.obtain import Choices
from reproducer.fetch.simple import Candidate
from reproducer.fetch.web import Patience, Web, WebFaultError
from reproducer.progress import Reporter

State = Literal["there", "gone", "moved", "unknown"]
_ASKING = 12
_GONE = {404, 410}
_QUICK = Patience(attempts=2, first_wait=0.2)


@dataclass(frozen=True)
class Finding:
    """What the indexes say of one need.

    Attributes:
        artefact: the file that is there, else the one that serves best.
        state: `moved` is a file of that name with other bytes; `unknown` is an index that cannot be asked.
        said: where it is, or why not.
    """

    artefact: Artefact
    state: State
    said: str


def probe(
    needs: Sequence[Choices], *, indexes: Indexes, reporter: Reporter, patience: Patience = _QUICK
) -> tuple[Finding, ...]:
    """Ask the user's indexes for each need, in order.

    Args:
        needs: per need the artefacts that serve, best first, at least one.
        indexes: where to ask.
        reporter: is shown progress.
        patience: how long one goes on asking.
    """
    web = Web(indexes, patience=patience)
    names = frozenset(artefact.filename for choices in needs for artefact in choices)
    locator = Locator(indexes, web, only=names)
    try:
        with (
            reporter.task("asking for files", len(needs), "packages") as task,
            ThreadPoolExecutor(_ASKING, thread_name_prefix="probe") as pool,
        ):

            def one(choices: Choices) -> Finding:
                return _found(choices, locator, web)

            found = []
            for finding in pool.map(one, needs):
                task.advance(1)
                found.append(finding)
        return tuple(found)
    finally:
        web.close()


def _found(choices: Choices, locator: Locator, web: Web) -> Finding:
    refused: list[tuple[State, str]] = []
    for artefact in choices:
        for candidate in locator.candidates(artefact):
            fault = _fault(candidate, web)
            if fault is None:
                return Finding(artefact, "there", candidate.source)
            refused.append(fault)
    best = choices[0]
    for artefact in choices:
        if others := locator.others(artefact):
            said = f"{others[0].source} has other bytes under this name: sha256 {others[0].sha256}"
            return Finding(artefact, "moved", said)
    if unasked := [f"{source}: {reason}" for source, reason in sorted(locator.faults.items())]:
        return Finding(best, "unknown", "; ".join(unasked))
    if refused:
        state: State = "gone" if all(state == "gone" for state, _ in refused) else "unknown"
        return Finding(best, state, "; ".join(dict.fromkeys(said for _, said in refused)))
    return Finding(best, "gone", "no index and no find-links of yours has it")


def _fault(candidate: Candidate, web: Web) -> tuple[State, str] | None:
    """Why the file that a page lists cannot be had; None where its first byte can."""
    if candidate.url.startswith("file:"):
        there = path_of(candidate.url).is_file()
        return None if there else ("gone", f"{candidate.source} lists it, and the file is not there")
    failures = 0
    while True:
        try:
            with web.stream(candidate.url, {"Accept-Encoding": "identity", "Range": "bytes=0-0"}):
                return None
        except WebFaultError as fault:
            failures += 1
            if fault.passing and failures < web.patience.attempts:
                web.pause(failures, fault.wait)
                continue
            state: State = "gone" if fault.status in _GONE else "unknown"
            return state, f"{candidate.source} lists it, and the file itself {fault.reason}"

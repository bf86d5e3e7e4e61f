"""Running a plan: every lock is measured in turn with A, and what is done stays done when the run is interrupted."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproducer.ablation.attribution import Attribution, attribute
from reproducer.ablation.plan import Plan
from reproducer.canonical import canonical_bytes
from reproducer.comparison.comparing import Compared, Comparison, compare_sides
from reproducer.comparison.measured import receipts_side
from reproducer.documents.base import parse_json
from reproducer.documents.opened import OpenedLock
from reproducer.documents.toml import read_text, write_atomically
from reproducer.errors import (
    ConfigurationError,
    DriftError,
    InvalidDocumentError,
    Outcome,
    PennyError,
    QualificationError,
    RebuildError,
)
from reproducer.ledger import AnyReceipt, Ledger
from reproducer.progress import Reporter

if TYPE_CHECKING:
    from reproducer.ablation.designs import Row

Receipts = tuple[AnyReceipt, ...]
MeasurePair = Callable[[OpenedLock, OpenedLock], tuple[Receipts, Receipts]]
_RESULTS = "results"
_DONE = "done.json"
# What is wrong with one lock, and not with the machine: the others can still be measured.
_OF_THE_LOCK = (RebuildError, ConfigurationError, QualificationError, DriftError, InvalidDocumentError)


@dataclass(frozen=True)
class Ran:
    """What came of a plan.

    Attributes:
        comparisons: of each lock, by its name, against A.
        failed: locks that could not be measured, and why.
    """

    plan: Plan
    comparisons: dict[str, Comparison]
    failed: dict[str, str]
    attributions: tuple[Attribution, ...]

    @property
    def outcome(self) -> Outcome:
        """What the exit code says."""
        found = Outcome.HOLDS
        if any(each.failed for each in self.comparisons.values()):
            found |= Outcome.QUALIFICATION_FAILED
        if self.failed or not self.attributions:
            found |= Outcome.NOT_CHECKED
        return found

    def content(self) -> dict[str, Any]:
        """As plain data with stable keys."""
        return {
            "comparisons": {name: each.content() for name, each in self.comparisons.items()},
            "not_measured": dict(self.failed),
            "attributions": [each.content() for each in self.attributions],
        }


def run(plan: Plan, measure: MeasurePair, reporter: Reporter) -> Ran:
    """Measure every lock of a plan that is not measured yet, and attribute the difference.

    Args:
        plan: the plan, whose locks are written.
        measure: builds two locks where they are not there, measures them in turn and gives the receipts of both with
            the build and launch receipts that they name.
        reporter: where progress goes.

    Raises:
        NotCheckedError: the machine is in the way; what is done stays.
    """
    base = next(each for each in plan.locks if each.name == "A").opened
    if base is None:
        msg = "the first lock of a plan is A itself"
        raise ValueError(msg)
    comparisons: dict[str, Comparison] = {}
    failed: dict[str, str] = {}
    pairs: dict[Row, tuple[Compared, ...]] = {}
    wanted = [each for each in plan.locks if each.name != "A"]
    for place, each in enumerate(wanted, start=1):
        if each.opened is None:
            failed[each.name] = "; ".join(each.faults)
            continue
        reporter.note(f"{place}/{len(wanted)}: A and {each.name}, which has as in B: {', '.join(each.groups)}")
        try:
            found = _in_turn(plan.folder / _RESULTS / each.name, base, each.opened, measure)
            comparisons[each.name] = found
            pairs[each.row] = found.deltas
        except _OF_THE_LOCK as error:
            failed[each.name] = str(error)
            reporter.note(f"{each.name}: {error}")
    names = tuple(each.name for each in plan.between.groups)
    return Ran(plan, comparisons, failed, attribute(plan.design, names, pairs))


def _in_turn(folder: Path, base: OpenedLock, opened: OpenedLock, measure: MeasurePair) -> Comparison:
    """A lock against A: from the receipts of an earlier run, or measured now."""
    found = _kept(folder, base, opened)
    if found is None:
        found = measure(base, opened)
        _keep(folder, found)
    sides = (receipts_side(found[0], base, str(folder / "A")), receipts_side(found[1], opened, str(folder / "lock")))
    return compare_sides(*sides)


def _keep(folder: Path, found: tuple[Receipts, Receipts]) -> None:
    """The receipts of both, then a note that they are whole: without it they do not count."""
    digests = []
    for name, receipts in zip(("A", "lock"), found, strict=True):
        for receipt in receipts:
            Ledger(folder / name).add(receipt)
        digests.append(sorted(receipt.digest for receipt in receipts))
    write_atomically(folder / _DONE, canonical_bytes({"a": digests[0], "lock": digests[1]}) + b"\n")


def _kept(folder: Path, base: OpenedLock, opened: OpenedLock) -> tuple[Receipts, Receipts] | None:
    """The receipts of an earlier run; None where there is none, or it is not whole, or of other locks.

    Others beside them are of a run that was killed while it wrote them; they count for nothing.
    """
    if not (folder / _DONE).is_file():
        return None
    try:
        said = parse_json(read_text(folder / _DONE, what="note"), where=str(folder))
        there = [Ledger(folder / name).receipts() for name in ("A", "lock")]
    except PennyError:
        return None
    if not isinstance(said, dict) or not all(isinstance(said.get(name), list) for name in ("a", "lock")):
        return None
    first, second = (
        tuple(each for each in found if each.digest in said[name])
        for found, name in zip(there, ("a", "lock"), strict=True)
    )
    sides = ((first, "a", base), (second, "lock", opened))
    whole = all(
        sorted(each.digest for each in receipts) == said[name]
        and {each.lock_digest for each in receipts if each.kind == "measure"} == {lock.digest}
        for receipts, name, lock in sides
    )
    return (first, second) if whole else None

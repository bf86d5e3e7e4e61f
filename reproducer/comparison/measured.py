"""Receipts as a side: every number is made again from the raw samples, and their conditions are held side by side."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reproducer.comparison.conditions import Condition, look, of_gpus, of_load
from reproducer.comparison.factors import Declared, LockDifferences
from reproducer.comparison.numbers import Number
from reproducer.comparison.sides import Side
from reproducer.documents.opened import OpenedLock
from reproducer.documents.receipts import BuildReceipt, EffectiveValue, FidelityReference, LaunchReceipt, MeasureReceipt

if TYPE_CHECKING:
    from reproducer.documents.lock import Scalar
    from reproducer.ledger import AnyReceipt

_NOT_IN_TURN = "receipts name no machine and no moment: only two arms that were measured in turn share both"


def receipts_side(receipts: "tuple[AnyReceipt, ...]", opened: OpenedLock | None, where: str) -> Side:
    """The newest receipt of each measure, with the receipts that they name.

    Raises:
        InvalidDocumentError: a measure that this penny does not know.
    """
    from reproducer.ledger import latest_measures
    from reproducer.measures.apart import names

    newest = latest_measures(receipts)
    labels = names((each.measure, each.parameters) for each in newest)
    older = sum(isinstance(each, MeasureReceipt) for each in receipts) - len(newest)
    notes = [f"{older} older receipts of measures that were run again"] if older else []
    numbers: list[Number] = []
    failed: list[str] = []
    for label, receipt in zip(labels, newest, strict=True):
        if receipt.status == "failed":
            failed.append(f"{label}: {receipt.reason}")
        if receipt.status == "skipped":
            notes.append(f"{label} was skipped: {receipt.reason}")
        elif reason := _without_reference(receipt, opened):
            notes.append(f"{label}: {reason}")
        else:
            numbers += _numbers(receipt, opened)
    return Side(
        where=where,
        source="receipts",
        numbers=tuple(numbers),
        opened=opened,
        measures={key_of(each): each for each in newest},
        receipts={each.digest: each for each in receipts if not isinstance(each, MeasureReceipt)},
        notes=tuple(notes),
        failed=tuple(failed),
    )


def key_of(receipt: MeasureReceipt) -> str:
    """What a measure with its parameters is called in full."""
    from reproducer.measures.apart import told_whole

    return told_whole(receipt.measure, receipt.parameters)


def _without_reference(receipt: MeasureReceipt, opened: OpenedLock | None) -> str:
    if receipt.reference_sha256 is None:
        return ""
    named = None if opened is None else opened.lock.qualification.reference
    if named is None or named.sha256 != receipt.reference_sha256:
        return "its reference is not at hand, so its numbers cannot be made again"
    return ""


def _numbers(receipt: MeasureReceipt, opened: OpenedLock | None) -> Iterator[Number]:
    from reproducer.measures.checks import definition, resolved
    from reproducer.qualify.derive import collect, how

    known = definition(receipt.measure)
    reference = None
    if receipt.reference_sha256 is not None and opened is not None and opened.lock.qualification.reference is not None:
        named = opened.lock.qualification.reference
        reference = FidelityReference.from_json(opened.read(named), where=named.path)
    collected = collect(receipt.measure, receipt.parameters, receipt.samples, reference)
    for value in known.values:
        if not collected.found[value.name]:
            continue
        summed = how(value.name, value.unit)
        observations = collected.observations(value.name)
        yield Number(
            measure=receipt.measure,
            value=value.name,
            kind=value.kind,
            unit=value.unit,
            statistic={"median": "median", "mean": "mean", "all": "smallest"}[summed],
            parameters=resolved(receipt.measure, receipt.parameters),
            observations=observations,
            how=summed,
            bound=_bound(receipt) if value.kind == "score" else {},
            count=observations.samples,
            boots=len(observations.boots),
        )


def _bound(receipt: MeasureReceipt) -> "Mapping[str, Scalar | None]":
    """What a score is bound to: all of its conditions but the logs, which are each run's own."""
    found = receipt.conditions.capability
    return {} if found is None else found.model_dump(exclude={"logs"})


def _of_receipts(one: MeasureReceipt, two: MeasureReceipt, first: Side, second: Side) -> Iterator[Condition]:
    """What differs or is unknown between two receipts of one measure, besides their locks."""
    yield from look("client (penny version)", one.penny_version, two.penny_version)
    yield from look("warm-up samples", one.warmup, two.warmup)
    yield from look("cache state", one.conditions.cache_state, two.conditions.cache_state)
    if one.conditions.capability is None or two.conditions.capability is None:
        yield from look("sampling", one.conditions.sampling, two.conditions.sampling)
    else:
        yield from _harness(one, two)
    yield from look("reference", one.reference_sha256 or "none", two.reference_sha256 or "none")
    yield from _host(one, two)
    gpus = one.conditions.gpus, two.conditions.gpus
    named = any(each.opened is not None and each.opened.lock.hardware is not None for each in (first, second))
    if gpus == (None, None) and named:
        yield Condition("gpus", None, None, "unknown", "the lock names GPUs, and the receipts say nothing of them")
    yield from of_gpus(*gpus)
    yield from of_load(one.conditions.other_cpu_percent, two.conditions.other_cpu_percent)
    if not _in_turn(one, two):
        yield Condition("machine and time", None, None, "unknown", _NOT_IN_TURN)


def _harness(one: MeasureReceipt, two: MeasureReceipt) -> Iterator[Condition]:
    before, after = _bound(one), _bound(two)
    for name in sorted({**before, **after}):
        yield from look(f"harness {name}", before.get(name), after.get(name))


def _host(one: MeasureReceipt, two: MeasureReceipt) -> Iterator[Condition]:
    before, after = one.conditions.host, two.conditions.host
    for name in ("platform", "kernel", "cpu", "cpu_count", "memory_bytes", "filesystem"):
        yield from look(f"host {name}", getattr(before, name), getattr(after, name))
    ours, theirs = set(before.cpu_flags), set(after.cpu_flags)
    if ours != theirs:
        yield Condition(
            "host cpu_flags", sorted(ours - theirs), sorted(theirs - ours), "differs", "flags that one side alone has"
        )
    elif not ours:
        yield Condition("host cpu_flags", None, None, "unknown")


def _in_turn(one: MeasureReceipt, two: MeasureReceipt) -> bool:
    """Whether both are arms of one run in turn: they name each other, and one list of boots."""
    first, second = one.interleaved, two.interleaved
    if first is None or second is None or not first.boots:
        return False
    named = (first.other_lock, first.other_build, second.other_lock, second.other_build)
    theirs = (two.lock_digest, two.build_receipt, one.lock_digest, one.build_receipt)
    every = {*one.launch_receipts, *two.launch_receipts} <= set(first.boots)
    return {first.arm, second.arm} == {"A", "B"} and first.boots == second.boots and named == theirs and every


@dataclass(frozen=True)
class Between:
    """The two sides and what their locks differ in.

    Attributes:
        declared: what was declared to differ.
    """

    first: Side
    second: Side
    locks: LockDifferences
    declared: Declared

    def conditions(self, one: MeasureReceipt, two: MeasureReceipt) -> Iterator[Condition]:
        """Everything besides the locks that differs or is unknown between two receipts of one measure."""
        yield from _of_receipts(one, two, self.first, self.second)
        yield from _build(one, two, self)
        before, after = _effective(one, self.first), _effective(two, self.second)
        if before is None or after is None:
            digests = [
                sorted({each.effective_sha256 for each in receipt.boots or ()}) or None for receipt in (one, two)
            ]
            yield from look("effective configuration", *digests, why="launch receipts are not at hand")
            return
        for name in sorted(before.keys() | after.keys()):
            path = f"launch.effective.{name}"
            if path not in self.locks.told and not self.declared.covers(path):
                yield from look(path, before.get(name), after.get(name))


def _build(one: MeasureReceipt, two: MeasureReceipt, between: Between) -> Iterator[Condition]:
    builds = [
        each if isinstance(each := side.receipts.get(receipt.build_receipt), BuildReceipt) else None
        for receipt, side in ((one, between.first), (two, between.second))
    ]
    if None in builds and one.build_receipt == two.build_receipt:
        return
    before, after = builds
    yield from look("build level", *(None if each is None else each.level for each in (before, after)))
    yield from look("python", *(None if each is None else each.python for each in (before, after)))
    if not between.locks.rebuilt and before is not None and after is not None:
        trees = [None if each.runtime is None else each.runtime.sha256 for each in (before, after)]
        yield from look("runtime content", *trees, why="though both locks say that it is the same")


def _effective(receipt: MeasureReceipt, side: Side) -> dict[str, Any] | None:
    """What the live servers showed, each value once where all boots agree; a value that one boot did not show is None.

    None for all where a launch receipt is missing, is of another lock, or none is named.
    """
    found: dict[str, list[Any]] = {}
    launches = [side.receipts.get(digest) for digest in receipt.launch_receipts]
    if not launches:
        return None
    for launch in launches:
        if not isinstance(launch, LaunchReceipt) or launch.lock_digest != receipt.lock_digest:
            return None
        for each in launch.effective:
            values = found.setdefault(each.name, [])
            if not any(each.got == got and type(each.got) is type(got) for got in values):
                values.append(each.got)
    shown = {name: sum(any(each.name == name for each in _values(launch)) for launch in launches) for name in found}
    return {name: _one(values) if shown[name] == len(launches) else None for name, values in found.items()}


def _values(launch: object) -> "tuple[EffectiveValue, ...]":
    return launch.effective if isinstance(launch, LaunchReceipt) else ()


def _one(values: list[Any]) -> Any:
    """What boots agree on; all that they showed where they do not, and nothing where one of them showed nothing."""
    if len(values) == 1:
        return values[0]
    return None if None in values else values

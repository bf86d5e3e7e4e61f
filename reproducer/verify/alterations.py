"""Launches that differ from the lock in one value, because a measure of its suite declares just that.

Such a launch is held against the lock with that value, and against nothing looser. A difference that no measure of the
suite declares makes no such launch: it is held against the lock itself.
"""

from collections.abc import Iterator

from reproducer.documents.lock import Lock, Scalar
from reproducer.documents.receipts import LaunchReceipt, MeasureReceipt
from reproducer.documents.verdict import Check
from reproducer.engines.alteration import altered
from reproducer.errors import PennyError
from reproducer.measures.checks import alteration
from reproducer.measures.definitions import BOOT_FACTS, DEFINITIONS
from reproducer.verify.evidence import Evidence, check, same, told


def declared(lock: Lock) -> list[tuple[str, dict[str, Scalar]]]:
    """(measure, what it alters) of every measure of a suite that alters something."""
    found = []
    for measure in lock.qualification.measures:
        try:
            values = alteration(measure)
        except PennyError:  # another check names its parameters
            continue
        if values:
            found.append((measure.id, values))
    return found


def lock_of(evidence: Evidence, launch: LaunchReceipt) -> Lock:
    """What a launch is held against: the lock, or the lock with what a measure of its suite alters."""
    if launch.altered is not None and is_declared(evidence.lock, launch):
        try:
            return altered(evidence.lock, launch.altered)
        except PennyError:
            return evidence.lock
    return evidence.lock


def is_declared(lock: Lock, launch: LaunchReceipt, measure: str | None = None) -> bool:
    """Whether a measure of the suite, or the one that is named, alters exactly what a launch says it altered."""
    return any(
        equal(values, launch.altered or {}) for name, values in declared(lock) if measure is None or name == measure
    )


def equal(left: dict[str, Scalar], right: dict[str, Scalar]) -> bool:
    """Whether two sets of values are the same, types included."""
    return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)


def altered_boots(evidence: Evidence, receipt: MeasureReceipt) -> dict[str, set[str]]:
    """By the fact that names it in a sample: the boots in which an altered stage of the measure may have run."""
    known = DEFINITIONS.get(receipt.measure)
    boots = {
        launch.boot.id
        for launch in named(evidence, receipt)
        if launch.altered is not None and is_declared(evidence.lock, launch, receipt.measure)
    }
    return {BOOT_FACTS[stage.part]: boots for stage in known.stages if stage.alters} if known is not None else {}


def named(evidence: Evidence, receipt: MeasureReceipt) -> list[LaunchReceipt]:
    """The launches that a measure's receipt names, as far as they are here."""
    return [evidence.launches[digest] for digest in receipt.launch_receipts if digest in evidence.launches]


def alteration_check(evidence: Evidence, name: str, receipt: MeasureReceipt) -> Check:
    """The altered launches of a measure differ from its others in namespace and in what the live server showed."""
    launches = named(evidence, receipt)
    ours = [launch for launch in launches if launch.altered is None]
    others = [launch for launch in launches if launch.altered is not None]
    faults = [] if ours and others else [f"{len(ours)} launches of the lock and {len(others)} altered ones are named"]
    faults += [fault for other in others for one in ours for fault in _alike(one, other)]
    spaces = sorted({launch.namespace for launch in ours})
    shown = "; ".join(f"{launch.namespace}: {_values(launch)}" for launch in others)
    return check(
        f"binding.altered.{name}", "configuration", faults, expected=f"other than {', '.join(spaces)}", got=shown
    )


def _alike(one: LaunchReceipt, other: LaunchReceipt) -> Iterator[str]:
    """In what an altered launch is as one of the lock, and should not be."""
    where = f"launch {other.digest[:12]}"
    if other.namespace == one.namespace or other.namespace_digest == one.namespace_digest:
        yield f"{where} ran in the namespace of the lock's own launches"
    shown = [{value.name: value.got for value in launch.effective} for launch in (one, other)]
    for key, asked in (other.altered or {}).items():
        before, after = (values.get(key) for values in shown)
        if after is None or not same(after, asked):
            yield f"{where} was asked for {key} {told(asked)} and showed {told(after)}"
        if before is None or same(before, after):
            yield f"{where} showed the same {key} as launch {one.digest[:12]}: {told(before)}"


def _values(launch: LaunchReceipt) -> str:
    return ", ".join(f"{name} {told(value)}" for name, value in sorted((launch.altered or {}).items()))

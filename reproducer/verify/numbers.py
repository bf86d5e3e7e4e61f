"""Numbers recomputed from raw samples, and bounds taken from the lock."""

from collections.abc import Iterator

from reproducer.documents.lock import Measure
from reproducer.documents.measured import Derived, ThresholdResult
from reproducer.documents.receipts import MeasureReceipt
from reproducer.documents.verdict import Check
from reproducer.errors import PennyError
from reproducer.measures.apart import bare_names
from reproducer.measures.checks import definition, resolved
from reproducer.measures.definitions import DEFINITIONS
from reproducer.measures.settings import SETTINGS
from reproducer.qualify.baselines import Differences, differences
from reproducer.qualify.derive import Judgement, asked, derive, judge
from reproducer.qualify.validity import invalid_reason
from reproducer.verify.capability import capability_check
from reproducer.verify.evidence import Evidence, check, same, skipped, told, unknown


def number_checks(evidence: Evidence) -> Iterator[Check]:
    """Every measure of the lock's suite, in its order, and nothing besides."""
    suite = evidence.lock.qualification.measures
    faults = [f"{measure} is not in the lock's suite" for measure in sorted(set(evidence.unasked()))]
    if not evidence.measures:
        faults.append("there is no measure receipt")
    expected = f"{len(suite)} measures of {evidence.lock.qualification.suite}"
    got = f"{len(evidence.measures)} measure receipts"
    yield check("suite", "qualification", faults, expected=expected, got=got)
    labels = bare_names((measure.id, measure.parameters) for measure in suite)
    for name, measure in zip(labels, suite, strict=True):
        receipts = evidence.measured(measure)
        if not receipts:
            yield check(f"measure.{name}", "qualification", ["the suite asks for it and there is no receipt"])
        for label, receipt in receipts:
            yield from _measure(evidence, measure, label, receipt)


def _measure(evidence: Evidence, measure: Measure, name: str, receipt: MeasureReceipt) -> Iterator[Check]:
    if receipt.status == "skipped":
        reason = receipt.reason or "no reason is given"
        yield skipped(f"measure.{name}", "qualification", reason)
        for threshold in measure.thresholds:
            why = f"the measure was skipped: {reason}"
            yield unknown(f"threshold.{name}.{threshold.value}", "qualification", why)
        return
    yield _parameters(measure, name, receipt)
    if measure.id in SETTINGS:
        yield capability_check(evidence, name, receipt)
    yield _samples(evidence, measure, name, receipt)
    derived, fault = _derive(evidence, measure, receipt)
    marks = () if fault else _mismarked(evidence, measure, receipt)
    yield _derived(name, receipt, derived, fault, marks)
    derived = derived if receipt.samples else ()
    found, against = _differences(evidence, measure, receipt, derived)
    judgement = judge(measure, receipt.samples, derived, found)
    for result in judgement.thresholds:
        yield _threshold(name, result, against if result.threshold.relative_to is not None and against else fault)
    yield _status(name, receipt, judgement)


def _parameters(measure: Measure, name: str, receipt: MeasureReceipt) -> Check:
    try:
        expected, got = resolved(measure.id, measure.parameters), receipt.parameters
    except PennyError as error:
        return check(f"parameters.{name}", "qualification", [str(error)])
    faults = [
        f"{key} is {told(got.get(key))}, not {told(expected.get(key))}"
        for key in sorted(expected.keys() | got.keys())
        if not same(got.get(key), expected.get(key)) or (key in got) != (key in expected)
    ]
    return check(f"parameters.{name}", "qualification", faults, expected=f"{len(expected)} as the lock says")


def _samples(evidence: Evidence, measure: Measure, name: str, receipt: MeasureReceipt) -> Check:
    """As many samples and boots as the lock asks for; the warm-up as stated and kept."""
    counted = [sample for sample in receipt.samples if not sample.warmup]
    boots = len({sample.boot for sample in counted})
    faults = []
    if len(counted) < measure.repeats:
        faults.append(f"{len(counted)} samples, the lock asks for {measure.repeats}")
    asked = _boots(evidence, measure)
    if boots < asked:
        faults.append(f"{boots} boots, the lock asks for {asked}")
    if receipt.warmup != measure.warmup:
        faults.append(f"the warm-up is {receipt.warmup}, the lock says {measure.warmup}")
    faults += _left_out(measure, receipt)
    reference = evidence.lock.qualification.reference
    if receipt.reference_sha256 is not None and (reference is None or receipt.reference_sha256 != reference.sha256):
        faults.append(f"it was compared with reference {receipt.reference_sha256[:12]}, which is not the lock's")
    return check(
        f"samples.{name}",
        "qualification",
        faults,
        expected=f"{measure.repeats} samples, {asked} boots",
        got=f"{len(counted)} samples, {boots} boots",
    )


def _left_out(measure: Measure, receipt: MeasureReceipt) -> Iterator[str]:
    """Samples that do not count without being the first of their boot, and samples that are not there any more."""
    ordered = sorted(receipt.samples, key=lambda sample: sample.index)
    if [sample.index for sample in ordered] != list(range(len(ordered))):
        yield f"the indices of {len(ordered)} samples leave some out"
    for boot in sorted({sample.boot for sample in ordered}):
        marks = [sample.warmup for sample in ordered if sample.boot == boot]
        if sum(marks) > measure.warmup or any(marks[sum(marks) :]):
            where = f"{sum(marks)} samples of boot {boot[:12]}"
            yield f"{where} are called warm-up, the lock allows its first {measure.warmup}"


def _boots(evidence: Evidence, measure: Measure) -> int:
    """In how many boots the samples of a measure are at least; one that spans several boots counts in the last."""
    known = DEFINITIONS.get(measure.id)
    boots = evidence.lock.qualification.boots - (known.spans - 1 if known is not None else 0)
    return min(boots, measure.repeats)


def _derive(evidence: Evidence, measure: Measure, receipt: MeasureReceipt) -> tuple[tuple[Derived, ...], str]:
    """The derived values from raw samples, or why there are none."""
    try:
        if definition(measure.id).needs_reference and evidence.reference is None:
            return (), evidence.reference_fault
        parameters = resolved(measure.id, measure.parameters)
        derived = derive(measure.id, parameters, receipt.samples, evidence.reference, statistics=receipt.statistics)
    except PennyError as error:
        return (), str(error)
    except Exception as error:  # noqa: BLE001  samples of a stranger: whatever they break, the number does not follow
        return (), f"{type(error).__name__}: {error}"
    return derived, ""


def _differences(
    evidence: Evidence, measure: Measure, receipt: MeasureReceipt, derived: tuple[Derived, ...]
) -> tuple[Differences, str]:
    """How the recomputed values lie to reference receipts, recomputed as well; or why that cannot be said."""
    try:
        return differences(evidence.opened, measure, receipt.samples, derived, evidence.reference), ""
    except PennyError as error:
        return {}, str(error)
    except Exception as error:  # noqa: BLE001  samples of a stranger: whatever they break, nothing is compared
        return {}, f"{type(error).__name__}: {error}"


def _derived(
    name: str, receipt: MeasureReceipt, derived: tuple[Derived, ...], fault: str, marks: tuple[str, ...]
) -> Check:
    """The receipt's numbers are exactly the recomputed ones."""
    faults = []
    if not receipt.samples and not receipt.derived:
        faults.append("there are no samples")
    elif fault:
        faults.append(f"nothing can be derived from the samples: {fault}")
    else:
        faults += marks
        claimed = {value.name: value for value in receipt.derived}
        wanted = {value.name: value for value in derived}
        if len(claimed) != len(receipt.derived):
            faults.append("one value stands twice")
        for key in sorted(claimed.keys() | wanted.keys()):
            faults += _compared(key, claimed.get(key), wanted.get(key))
    return check(f"derived.{name}", "qualification", faults, got=", ".join(value.name for value in derived))


def _mismarked(evidence: Evidence, measure: Measure, receipt: MeasureReceipt) -> tuple[str, ...]:
    """What is wrong with the samples' own marks: of those that have one, warm-up or not."""
    try:
        parameters = resolved(measure.id, measure.parameters)
        reasons = [invalid_reason(measure.id, parameters, each, evidence.reference) for each in receipt.samples]
    except Exception as error:  # noqa: BLE001  samples of a stranger: whatever a warm-up breaks, it is not believed
        return (f"a sample cannot be judged: {type(error).__name__}: {told(str(error))}",)
    found = []
    for sample, reason in zip(receipt.samples, reasons, strict=True):
        mark = sample.facts.get("valid")
        if mark is not None and not same(mark, not reason):
            found.append(f"sample {sample.index} is marked valid={told(mark)}, its record says {not reason}")
        elif not reason and "invalid" in sample.facts:
            found.append(f"sample {sample.index} is called invalid, its record does not say so")
    return tuple(found)


def _compared(name: str, claimed: Derived | None, wanted: Derived | None) -> Iterator[str]:
    if claimed is None:
        yield f"{name} is missing"
    elif wanted is None:
        yield f"{name} does not follow from the samples"
    elif claimed != wanted:
        pairs = ((key, getattr(claimed, key), getattr(wanted, key)) for key in Derived.model_fields)
        yield from (f"{name}: {key} is {told(a)}, the samples give {told(b)}" for key, a, b in pairs if a != b)


def _threshold(name: str, result: ThresholdResult, fault: str) -> Check:
    threshold, relative = result.threshold, result.relative
    faults = []
    if result.got is None:
        faults.append("there is no such value" + (": it could not be recomputed" if fault else " among those derived"))
    elif threshold.relative_to is not None and relative is None:
        faults.append("it cannot be compared with the reference" + (f": {fault}" if fault else ""))
    elif relative is not None and relative.floor is None:
        faults.append("both sides have one boot, so no noise floor is known")
    elif not result.passed:
        faults.append("the bound of the lock does not hold" + (f": {relative.conclusion}" if relative else ""))
    unit = "" if relative is not None else f" {threshold.unit}"
    return check(
        f"threshold.{name}.{threshold.value}",
        "qualification",
        faults,
        expected=asked(result) if relative is not None else f"{threshold.comparator} {threshold.bound}{unit}".rstrip(),
        got="" if result.got is None else f"{result.got:.6g}{unit}".rstrip(),
        reason=relative.conclusion if relative is not None else "",
    )


def _status(name: str, receipt: MeasureReceipt, judgement: Judgement) -> Check:
    """The receipt's own conclusion and its copies of the bounds are those that follow."""
    faults = [judgement.reason] if judgement.reason else []
    if receipt.status != judgement.status:
        faults.append(f"the receipt says {receipt.status}")
    if receipt.status == "passed" and receipt.reason:
        faults.append(f"it passed, and has a reason: {told(receipt.reason)}")
    if receipt.status == "failed" and receipt.reason and receipt.reason not in faults:
        faults.append(receipt.reason)
    if receipt.thresholds != judgement.thresholds:
        faults.append("the receipt's copy of the bounds and their results is not what the lock and the samples give")
    return check(f"measure.{name}", "qualification", faults, expected=judgement.status, got=receipt.status)

"""From raw samples to derived values, and from those to a status: pure functions that `verify` calls again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from reproducer.capability.by_case import by_case
from reproducer.documents.lock import Measure, Scalar, Threshold
from reproducer.documents.measured import Derived, Relative, Sample, Statistics, ThresholdResult, Unit
from reproducer.documents.receipts import FidelityReference
from reproducer.measures.checks import definition, resolved
from reproducer.measures.definitions import COUNTED
from reproducer.measures.quantities import Count, Quantity, Score, summarise
from reproducer.measures.settings import MARKS
from reproducer.qualify.methods.registry import METHODS
from reproducer.qualify.validity import invalid_reason
from reproducer.statistics.comparison import Difference
from reproducer.statistics.observations import Observations, Summary
from reproducer.statistics.spread import spread

_SHARES = frozenset({"found", "found_first", "found_middle", "found_last"}.union(*MARKS.values()))


@dataclass(frozen=True)
class Judgement:
    """What the samples of a measure amount to; `reason` says why it did not pass."""

    status: Literal["passed", "failed"]
    thresholds: tuple[ThresholdResult, ...]
    reason: str


_OfSample = tuple[str, tuple[Quantity, ...]]


@dataclass(frozen=True)
class Collected:
    """What the samples of a measure gave.

    Attributes:
        valid: how many count.
        invalid: how many do not.
        found: of each value, sample by sample: the boot, and every quantity of that name.
    """

    valid: int
    invalid: int
    found: Mapping[str, tuple[_OfSample, ...]]

    def observations(self, name: str) -> Observations:
        """The numbers of one value by boot and sample."""
        return Observations.of((boot, (float(each.value) for each in found)) for boot, found in self.found[name])


@dataclass(frozen=True)
class Against:
    """A value against a reference receipt's: that one, and the difference to the bound's share of it."""

    reference: float
    difference: Difference


def derive(
    measure: str,
    parameters: Mapping[str, Scalar],
    samples: Sequence[Sample],
    reference: FidelityReference | None = None,
    *,
    statistics: Statistics | None = None,
) -> tuple[Derived, ...]:
    """Every value that a measure gives, from its raw samples alone.

    Warm-up samples and invalid ones are left out; a value that no sample gives is left out of the result.

    Args:
        measure: id of the measure.
        parameters: all of its parameters, as they stand in the receipt.
        samples: every sample of the receipt.
        reference: what `fidelity` compares with.
        statistics: by which rules each value has its spread, as the receipt names them; None: it has none.

    Returns:
        The values in the order of the definition, then `valid_samples` and `invalid_samples`.

    Raises:
        InvalidDocumentError: the measure is not known, or the parameters are not its own.
    """
    collected = collect(measure, parameters, samples, reference)
    derived = [_derived(name, collected, statistics) for name in collected.found]
    counts = (collected.valid, collected.invalid)
    derived += [summarise(value.name, [Count(count, "count")]) for value, count in zip(COUNTED, counts, strict=True)]
    return tuple(each for each in derived if each is not None)


def collect(
    measure: str, parameters: Mapping[str, Scalar], samples: Sequence[Sample], reference: FidelityReference | None
) -> Collected:
    """What the valid samples of a measure give, value by value; raises as `derive` does."""
    known = definition(measure)
    parameters = resolved(measure, parameters)
    measured = [sample for sample in samples if not sample.warmup]
    valid = [sample for sample in measured if not invalid_reason(measure, parameters, sample, reference)]
    found: dict[str, list[_OfSample]] = {value.name: [] for value in known.values}
    for sample in valid:
        of_sample: dict[str, list[Quantity]] = {}
        for name, quantity in METHODS[measure].values(parameters, sample, reference):
            if quantity is not None:
                of_sample.setdefault(name, []).append(quantity)
        for name, quantities in of_sample.items():
            found[name].append((sample.boot, tuple(quantities)))
    return Collected(len(valid), len(measured) - len(valid), {name: tuple(each) for name, each in found.items()})


def _derived(name: str, collected: Collected, statistics: Statistics | None) -> Derived | None:
    quantities = [quantity for _, of_sample in collected.found[name] for quantity in of_sample]
    derived = summarise(name, quantities, share=name in _SHARES)
    if derived is None or statistics is None:
        return derived
    if isinstance(quantities[0], Score):
        marks = [[each.value for each in of_sample] for _, of_sample in collected.found[name]]
        return derived.model_copy(update={"spread": by_case(marks)})
    return derived.model_copy(update={"spread": spread(collected.observations(name), how(name, derived.unit))})


def how(name: str, unit: Unit) -> Summary:
    """How one value is summed up over samples."""
    return "all" if unit == "bool" else "mean" if name in _SHARES else "median"


def judge(
    measure: Measure,
    samples: Sequence[Sample],
    derived: Sequence[Derived],
    against: Mapping[Threshold, Against] | None = None,
) -> Judgement:
    """Whether a measure passed: every threshold holds, every sample is valid, and there are as many as the lock asks.

    A threshold on a value that was not derived has failed, and so has one that is relative to a receipt without a
    difference to it, or without a noise floor.
    """
    values = {each.name: each.value for each in derived}
    compared = against or {}
    thresholds = tuple(
        _compared(threshold, values.get(threshold.value))
        if threshold.relative_to is None
        else _relative(threshold, values.get(threshold.value), compared.get(threshold))
        for threshold in measure.thresholds
    )
    reasons = []
    measured = sum(not sample.warmup for sample in samples)
    if invalid := int(values.get("invalid_samples", measured)):
        marks = [str(sample.facts.get("invalid", "")) for sample in samples if not sample.warmup]
        first = next((mark for mark in marks if mark), "see its record")
        reasons.append(f"{invalid} of {measured} samples are invalid: {first}")
    if values.get("valid_samples", 0) < measure.repeats:
        reasons.append(f"{int(values.get('valid_samples', 0))} valid samples, the lock asks for {measure.repeats}")
    for result in thresholds:
        if not result.passed:
            got = "no value" if result.got is None else f"{result.got:.6g}"
            reasons.append(f"{result.threshold.value} is {got}, the lock asks for {asked(result)}")
    return Judgement("failed" if reasons else "passed", thresholds, "; ".join(reasons))


def asked(result: ThresholdResult) -> str:
    """What a threshold asks for, in a few words."""
    bound = result.threshold
    if bound.relative_to is None:
        return f"{bound.comparator} {bound.bound:g} {bound.unit}"
    text = f"{bound.comparator} {bound.bound:g} of the reference"
    relative = result.relative
    if relative is None:
        return f"{text}, to which it cannot be compared"
    floor = "no noise floor is known" if relative.floor is None else f"noise floor {relative.floor:.3g}"
    return f"{text}'s {relative.reference:.6g}: {relative.conclusion}, {floor}"


def _compared(threshold: Threshold, got: float | None) -> ThresholdResult:
    holds = got is not None and (
        got >= threshold.bound
        if threshold.comparator == ">="
        else got <= threshold.bound
        if threshold.comparator == "<="
        else got == threshold.bound
    )
    return ThresholdResult(threshold=threshold, got=got, passed=holds)


_WRONG = {">=": ("lower",), "<=": ("higher",), "==": ("lower", "higher")}


def _relative(threshold: Threshold, got: float | None, against: Against | None) -> ThresholdResult:
    """A threshold relative to a receipt: it fails on a difference of the wrong way that noise does not explain."""
    if got is None or against is None:
        return ThresholdResult(threshold=threshold, got=got, passed=False)
    difference = against.difference
    return ThresholdResult(
        threshold=threshold,
        got=got,
        passed=difference.floor is not None and difference.conclusion not in _WRONG[threshold.comparator],
        relative=Relative(
            reference=against.reference,
            against=difference.before,
            floor=difference.floor,
            conclusion=difference.conclusion,
        ),
    )

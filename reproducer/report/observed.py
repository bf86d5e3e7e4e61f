"""The values behind each number of a receipt, boot by boot, as they are drawn."""

from dataclasses import dataclass
from itertools import pairwise

from reproducer.documents.measured import Derived
from reproducer.documents.receipts import MeasureReceipt
from reproducer.errors import PennyError
from reproducer.report.subject import Subject

CONTINUOUS = frozenset({"tok/s", "s", "MiB/min"})
ELSEWHERE = "all boots"


@dataclass(frozen=True)
class Observed:
    """One number of one receipt.

    Attributes:
        boots: its values by the name of their boot; under one name where the receipt does not tell them apart.
    """

    derived: Derived
    boots: tuple[tuple[str, tuple[float, ...]], ...]


def observed(subject: Subject, receipt: MeasureReceipt, names: frozenset[str] = frozenset()) -> tuple[Observed, ...]:
    """The numbers that lie on a scale, or those asked for by name."""
    wanted = [
        each
        for each in receipt.derived
        if each.values and (each.name in names if names else each.unit in CONTINUOUS and each.kind != "count")
    ]
    if not wanted:
        return ()
    by_boot = _by_boot(subject, receipt)
    return tuple(Observed(each, _of(each, by_boot)) for each in wanted)


def gaps(subject: Subject, receipt: MeasureReceipt) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Milliseconds between the chunks of each answer, by boot; warm-up is left out."""
    found: dict[str, list[float]] = {}
    for sample in receipt.samples:
        if not sample.warmup:
            times = found.setdefault(subject.boots.get(sample.boot, ELSEWHERE), [])
            for request in sample.requests:
                times += [(after - before) / 1e6 for (before, _), (after, _) in pairwise(request.events)]
    return tuple((boot, tuple(values)) for boot, values in sorted(found.items(), key=_rank) if values)


def _by_boot(subject: Subject, receipt: MeasureReceipt) -> dict[str, dict[str, list[float]]]:
    """Values by name and boot; empty where the receipt is not as its measure gives it."""
    from reproducer.qualify.derive import collect

    try:
        collected = collect(receipt.measure, receipt.parameters, receipt.samples, None)
    except (PennyError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
        return {}
    found: dict[str, dict[str, list[float]]] = {}
    for name, samples in collected.found.items():
        for boot, quantities in samples:
            boots = found.setdefault(name, {})
            boots.setdefault(subject.boots.get(boot, ELSEWHERE), []).extend(float(each.value) for each in quantities)
    return found


def _of(derived: Derived, by_boot: dict[str, dict[str, list[float]]]) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """The receipt's own values; by boot where what is found in its samples is the same."""
    boots = by_boot.get(derived.name, {})
    if sorted(value for values in boots.values() for value in values) != sorted(derived.values):
        return ((ELSEWHERE, derived.values),)
    return tuple((boot, tuple(values)) for boot, values in sorted(boots.items(), key=_rank))


def _rank(each: tuple[str, object]) -> tuple[int, str]:
    return len(each[0]), each[0]

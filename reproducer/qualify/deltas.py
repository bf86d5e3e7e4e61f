"""Receipts of two runs side by side: what differs by more than noise, value by value."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reproducer.documents.measured import Derived
from reproducer.documents.receipts import FidelityReference, MeasureReceipt
from reproducer.measures.apart import names
from reproducer.measures.definitions import COUNTED
from reproducer.qualify.derive import collect, how
from reproducer.statistics.comparison import Difference, compare

_SIZES = frozenset(value.name for value in COUNTED)


@dataclass(frozen=True)
class Delta:
    """One value of one measure in two runs; values of different kinds or parameters are never compared.

    Attributes:
        measure: its id, with the parameters that tell it apart where the run has it several times.
    """

    measure: str
    value: str
    kind: str
    unit: str
    difference: Difference

    def content(self) -> dict[str, Any]:
        """As plain data."""
        found = self.difference
        return {
            "measure": self.measure,
            "value": self.value,
            "kind": self.kind,
            "unit": self.unit,
            "before": found.before,
            "after": found.after,
            "difference": found.difference,
            "ratio": found.ratio,
            "interval": None if found.low is None else [found.low, found.high],
            "noise_floor": found.floor,
            "conclusion": found.conclusion,
        }


def deltas(
    first: Sequence[MeasureReceipt],
    second: Sequence[MeasureReceipt],
    references: tuple[FidelityReference | None, FidelityReference | None] = (None, None),
) -> tuple[Delta, ...]:
    """Every value that both runs give for one measure with equal parameters, in the order of the first.

    Args:
        first: the receipts of one run.
        second: those of the other.
        references: what `fidelity` compares with in each.
    """
    found = []
    labels = names((receipt.measure, receipt.parameters) for receipt in first)
    for label, receipt in zip(labels, first, strict=True):
        for other in second:
            alike = (other.measure, other.parameters) == (receipt.measure, receipt.parameters)
            if alike and receipt.derived and other.derived:
                found += list(_deltas(label, receipt, other, references))
                break
    return tuple(found)


def _deltas(
    label: str,
    before: MeasureReceipt,
    after: MeasureReceipt,
    references: tuple[FidelityReference | None, FidelityReference | None],
) -> Iterator[Delta]:
    one = collect(before.measure, before.parameters, before.samples, references[0])
    two = collect(after.measure, after.parameters, after.samples, references[1])
    there = {each.name: each for each in after.derived}
    for derived in before.derived:
        if derived.name not in _SIZES and _alike(derived, there.get(derived.name)):
            summed = how(derived.name, derived.unit)
            difference = compare(one.observations(derived.name), two.observations(derived.name), summed)
            yield Delta(label, derived.name, derived.kind, derived.unit, difference)


def _alike(derived: Derived, other: Derived | None) -> bool:
    return other is not None and (other.kind, other.unit) == (derived.kind, derived.unit)

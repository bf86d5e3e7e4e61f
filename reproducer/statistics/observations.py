"""The values that one number was made of, by the boot and the sample they came from.

Samples of one boot share a process, its memory layout and what the machine did meanwhile, and the values of one sample
were taken at the same time: neither are independent, so both stay together.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from statistics import median
from typing import Literal

from reproducer.errors import InvalidDocumentError

Summary = Literal["median", "mean", "all"]
LARGEST = 1e150


@dataclass(frozen=True)
class Observations:
    """The values of one number; `boots` holds boots of samples of values.

    They are kept in ascending order, so that the order in which samples were taken changes nothing.
    """

    boots: tuple[tuple[tuple[float, ...], ...], ...]

    def __post_init__(self) -> None:
        """Refuse what cannot be reckoned with.

        Raises:
            InvalidDocumentError: a value whose square, summed up, would be no number any more.
        """
        for value in self.values:
            if not abs(value) <= LARGEST:
                raise InvalidDocumentError(f"{value:g} is no number that statistics can be made of")

    @classmethod
    def of(cls, samples: Iterable[tuple[str, Iterable[float]]]) -> "Observations":
        """From (boot, values) of each sample; a sample without values is left out."""
        found: dict[str, list[tuple[float, ...]]] = {}
        for boot, values in samples:
            if ordered := tuple(sorted(values)):
                found.setdefault(boot, []).append(ordered)
        return cls(tuple(sorted(tuple(sorted(each)) for each in found.values())))

    def scaled(self, factor: float) -> "Observations":
        """Every value times a positive factor."""
        return Observations(
            tuple(tuple(tuple(value * factor for value in sample) for sample in boot) for boot in self.boots)
        )

    @cached_property
    def values(self) -> tuple[float, ...]:
        """All of them."""
        return tuple(value for boot in self.boots for sample in boot for value in sample)

    @property
    def samples(self) -> int:
        """How many samples there are."""
        return sum(len(boot) for boot in self.boots)

    @cached_property
    def of_samples(self) -> tuple[tuple[float, ...], ...]:
        """One value a sample, the median of its own, boot by boot."""
        return tuple(tuple(median(sample) for sample in boot) for boot in self.boots)

    def of_boots(self, how: Summary) -> tuple[float, ...]:
        """One value a boot, summed up from its samples as the whole is."""
        return tuple(summary(how, boot) for boot in self.of_samples)


def summary(how: Summary, values: Iterable[float]) -> float:
    """One number for several: their median, their mean, or whether all of them hold (the smallest)."""
    found = tuple(values)
    if how == "all":
        return min(found)
    return fsum(found) / len(found) if how == "mean" else float(median(found))

"""The distribution of values that never end: exact while they are few different ones, then within a bound.

Engines print telemetry with few decimals, so values are kept as whole parts of one (hundredths, say) and counted. Once
more different ones came than may be kept, each falls into a range so narrow that its middle is within 0.1 % of it.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from reproducer.documents.traces import Distribution

MOST_DIFFERENT = 200_000
_WIDTH = math.log(1.002)
HUNDREDTHS = 100


@dataclass
class Budget:
    """How many different values all distributions of a trace may keep together."""

    left: int = MOST_DIFFERENT


@dataclass
class Spectrum:
    """Counted values in whole parts of one.

    Attributes:
        parts: how many parts one is cut into.
        exact: whether every value is kept as it is.
    """

    budget: Budget
    parts: int = HUNDREDTHS
    counts: Counter[int] = field(default_factory=Counter)
    lowest: int = 0
    highest: int = 0
    number: int = 0
    exact: bool = True

    def add(self, values: Sequence[int]) -> None:
        """Count values."""
        if not values:
            return
        low = min(values)
        self.lowest = min(self.lowest, low) if self.number else low
        self.highest = max(self.highest, *values)
        self.number += len(values)
        if not self.exact:
            self.counts.update(map(_range, values))
            return
        before = len(self.counts)
        self.counts.update(values)
        self.budget.left -= len(self.counts) - before
        if self.budget.left < 0:
            self._widen()

    def _widen(self) -> None:
        kept: Counter[int] = Counter()
        for value, count in self.counts.items():
            kept[_range(value)] += count
        self.budget.left += len(self.counts)
        self.counts, self.exact = kept, False

    def told(self) -> Distribution | None:
        """As it stands in a document; None where there is no value."""
        if not self.number:
            return None
        return Distribution(
            windows=self.number,
            median=self._median() / self.parts,
            lowest=self.lowest / self.parts,
            highest=self.highest / self.parts,
            exact=self.exact,
        )

    def _median(self) -> float:
        return (self._at((self.number - 1) // 2) + self._at(self.number // 2)) / 2

    def _at(self, rank: int) -> float:
        """The value with so many values before it in order."""
        for key in sorted(self.counts):
            rank -= self.counts[key]
            if rank < 0:
                found = float(key) if self.exact else _middle(key)
                return min(max(found, self.lowest), self.highest)
        raise AssertionError


def _range(value: int) -> int:
    return round(math.log(value) / _WIDTH) + 1 if value else 0


def _middle(key: int) -> float:
    return math.exp((key - 1) * _WIDTH) if key else 0.0

"""Two sets of observations of one thing: how far apart they are, and whether that is more than noise."""

from dataclasses import dataclass
from math import inf, isfinite
from typing import Literal

from reproducer.statistics.intervals import difference
from reproducer.statistics.noise import floor
from reproducer.statistics.observations import Observations, Summary, summary

Conclusion = Literal["higher", "lower", "no difference shown"]


@dataclass(frozen=True)
class Difference:
    """The second against the first.

    Attributes:
        before: the number of the first.
        after: that of the second.
        difference: after minus before.
        ratio: after over before; None where that is zero, or so small that no number says how often it fits.
        floor: the noise floor.
        low: lower end of the 95 % bootstrap interval of the difference; None where a side has one sample.
        high: its upper end.
        conclusion: whether the difference is larger than the floor, and which way.
    """

    before: float
    after: float
    difference: float
    ratio: float | None
    floor: float | None
    low: float | None
    high: float | None
    conclusion: Conclusion


def compare(first: Observations, second: Observations, how: Summary) -> Difference:
    """The difference between two sets of observations."""
    before, after = summary(how, first.values), summary(how, second.values)
    limit = floor(first, second, how)
    interval = difference(first, second, how)
    return Difference(
        before=before,
        after=after,
        difference=after - before,
        ratio=ratio if isfinite(ratio := after / before if before else inf) else None,
        floor=limit,
        low=None if interval is None else interval[0],
        high=None if interval is None else interval[1],
        conclusion=judged(after, before, limit),
    )


def judged(value: float, against: float, limit: float | None) -> Conclusion:
    """Whether a value differs from another by more than the noise floor; nothing is shown where there is no floor."""
    if limit is None or abs(value - against) <= limit:
        return "no difference shown"
    return "higher" if value > against else "lower"

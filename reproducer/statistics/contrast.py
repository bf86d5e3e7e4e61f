"""A weighted sum of independent numbers: an effect that several runs together show, with its noise floor."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from reproducer.statistics.comparison import Conclusion, judged
from reproducer.statistics.intervals import percentiles, resampled, resamples
from reproducer.statistics.noise import pooled, student
from reproducer.statistics.observations import Observations, Summary, summary

Term = tuple[float, Observations]


@dataclass(frozen=True)
class Contrast:
    """A weighted sum.

    Attributes:
        value: the sum.
        floor: its noise floor; None where nothing tells how far boots lie apart.
        low: lower end of its 95 % bootstrap interval; None where a term has one sample.
        high: its upper end.
        conclusion: whether it is larger than the floor, and which way.
    """

    value: float
    floor: float | None
    low: float | None
    high: float | None
    conclusion: Conclusion


def contrast(terms: Sequence[Term], how: Summary) -> Contrast:
    """The sum of several numbers, each times its weight; of weights -1 and 1 it is `compare`, to the last digit.

    Args:
        terms: weight and observations of each; at least one, no weight is zero.
        how: how the observations of each are summed up.
    """
    value = fsum(weight * summary(how, each.values) for weight, each in terms)
    limit = _floor(terms, how)
    low, high = _interval(terms, how, value)
    return Contrast(value, limit, low, high, judged(value, 0.0, limit))


def _floor(terms: Sequence[Term], how: Summary) -> float | None:
    """Student's limit at 5 % with boots as units, as `noise.floor` has it for two."""
    arms = [each.of_boots(how) for _, each in terms]
    between = pooled(arms)
    if between is None:
        return None
    within = pooled([boot for _, each in terms for boot in each.of_samples])
    sizes = [len(boot) for _, each in terms for boot in each.of_samples]
    least = 0.0 if within is None else within * sqrt(fsum(1 / size for size in sizes) / len(sizes))
    spread = sqrt(fsum(weight * weight / len(arm) for (weight, _), arm in zip(terms, arms, strict=True)))
    return student(len(sizes) - len(arms)) * max(between, least) * spread


def _interval(terms: Sequence[Term], how: Summary, value: float) -> tuple[float | None, float | None]:
    if any(each.samples < 2 for _, each in terms):  # noqa: PLR2004  one sample says nothing of spread
        return None, None
    count = min(resamples(each) for _, each in terms)
    drawn = [
        [weight * each for each in resampled(values, how, count, _side(place))]
        for place, (weight, values) in enumerate(terms)
    ]
    low, high = percentiles([fsum(each) for each in zip(*drawn, strict=True)])
    return min(low, value), max(high, value)


def _side(place: int) -> str:
    """Whose draws: those of each term are independent, and the first two are those of a difference."""
    return ("before", "after")[place] if place < 2 else f"term {place + 1}"  # noqa: PLR2004

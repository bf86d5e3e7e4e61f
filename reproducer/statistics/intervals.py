"""Intervals: where a number lies with a confidence of 95 %.

`docs/statistics.md` defines each method with its source and test vectors. Only additions in exact order, products and
square roots are used, which IEEE 754 rounds in one way: another machine computes the same digits.
"""

from collections.abc import Sequence
from math import sqrt

from reproducer.statistics.draws import two_stage
from reproducer.statistics.observations import Observations, Summary, summary

CONFIDENCE = 0.95
Z = 1.959963984540054  # 0.975 quantile of the normal distribution
_TAIL = 0.025
_RESAMPLES = (1999, 999, 399, 199, 39)  # (B + 1) * 0.025 is whole for each of them
_MOST_DRAWN = 500_000


def bootstrap(observations: Observations, how: Summary) -> tuple[float, float] | None:
    """The percentile interval of a two-stage bootstrap, widened to the number itself; None for one sample alone."""
    if observations.samples < 2:  # noqa: PLR2004  one sample says nothing of spread
        return None
    point = summary(how, observations.values)
    low, high = percentiles(resampled(observations, how, resamples(observations)))
    return min(low, point), max(high, point)


def difference(first: Observations, second: Observations, how: Summary) -> tuple[float, float] | None:
    """The percentile interval of second minus first, resampled independently; None where a side has one sample."""
    if min(first.samples, second.samples) < 2:  # noqa: PLR2004  one sample says nothing of spread
        return None
    count = min(resamples(first), resamples(second))
    before, after = resampled(first, how, count, "before"), resampled(second, how, count, "after")
    point = summary(how, second.values) - summary(how, first.values)
    low, high = percentiles([later - earlier for earlier, later in zip(before, after, strict=True)])
    return min(low, point), max(high, point)


def resamples(observations: Observations) -> int:
    """How many resamples are drawn: 1999, and fewer where there are more than 250 values."""
    fit = (each for each in _RESAMPLES if each * len(observations.values) <= _MOST_DRAWN)
    return next(fit, _RESAMPLES[-1])


def percentiles(numbers: Sequence[float]) -> tuple[float, float]:
    """Of B numbers in ascending order those at (B + 1) * 0.025 from either end."""
    ordered = sorted(numbers)
    place = round((len(ordered) + 1) * _TAIL)
    return ordered[place - 1], ordered[-place]


def resampled(observations: Observations, how: Summary, count: int, side: str = "one") -> list[float]:
    """The number of each of `count` resamples."""
    values = observations.values
    if min(values) == max(values):
        return [values[0]] * count
    samples = [sample for boot in observations.boots for sample in boot]
    drawn = two_stage(tuple(len(boot) for boot in observations.boots), count, side)
    if len(samples) == len(values):
        return [summary(how, [values[number] for number in numbers]) for numbers in drawn]
    return [summary(how, [value for number in numbers for value in samples[number]]) for numbers in drawn]


def wilson(holding: int, of: int) -> tuple[float, float]:
    """Wilson's score interval of a share: `holding` of `of` hold."""
    share, square = holding / of, Z * Z
    scale = 1 + square / of
    middle = (share + square / (2 * of)) / scale
    half = Z * sqrt(share * (1 - share) / of + square / (4 * of * of)) / scale
    return max(min(middle - half, share), 0.0), min(max(middle + half, share), 1.0)

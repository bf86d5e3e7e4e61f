"""Noise: how far identical runs lie apart, within a boot and between boots, and from where on a difference is shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from reproducer.statistics.observations import Observations, Summary

# 0.975 quantiles of Student's t for 1, 2, 3 … 30 degrees of freedom; beyond, that of the next smaller number listed.
_STUDENT = (
    *(12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157, 2.228139),
    *(2.200985, 2.178813, 2.160369, 2.144787, 2.131450, 2.119905, 2.109816, 2.100922, 2.093024, 2.085963),
    *(2.079614, 2.073873, 2.068658, 2.063899, 2.059539, 2.055529, 2.051831, 2.048407, 2.045230, 2.042272),
)
_STUDENT_BEYOND = ((1000, 1.962339), (200, 1.971896), (100, 1.983972), (60, 2.000298), (40, 2.021075))


@dataclass(frozen=True)
class Noise:
    """Standard deviations of identical measurements.

    Attributes:
        within: of samples of one boot, pooled over the boots; None where no boot has two.
        between: of what the boots give, each by itself; None for one boot.
    """

    within: float | None
    between: float | None


def noise(observations: Observations, how: Summary) -> Noise:
    """The noise that observations show."""
    return Noise(pooled(observations.of_samples), pooled([observations.of_boots(how)]))


def floor(first: Observations, second: Observations, how: Summary) -> float | None:
    """The noise floor of a comparison: a difference of two medians that is not larger is no difference shown.

    It is the limit of Student's test at 5 % with the boots as units, each standing for all of its samples; the
    variance between boots is not taken to be less than what the noise within boots alone would give.

    Returns:
        None where both have one boot, so that nothing tells how far boots lie apart; 0 of truths.
    """
    if how == "all":
        return 0.0
    arms = (first.of_boots(how), second.of_boots(how))
    between = pooled(arms)
    if between is None:
        return None
    within = pooled([*first.of_samples, *second.of_samples])
    sizes = [len(boot) for arm in (first, second) for boot in arm.of_samples]
    least = 0.0 if within is None else within * sqrt(fsum(1 / size for size in sizes) / len(sizes))
    spread = sqrt(fsum(1 / len(arm) for arm in arms))
    return student(len(sizes) - 2) * max(between, least) * spread


def student(freedom: int) -> float:
    """The 0.975 quantile of Student's t, never a smaller one; `freedom` is at least 1."""
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    return next((value for least, value in _STUDENT_BEYOND if freedom >= least), _STUDENT[-1])


def pooled(groups: Sequence[Sequence[float]]) -> float | None:
    """The pooled standard deviation of groups around their own means; None where no group has two values."""
    freedom = sum(len(group) - 1 for group in groups)
    if freedom < 1:
        return None
    squares = [(value - mean) ** 2 for group in groups for mean in [fsum(group) / len(group)] for value in group]
    return sqrt(fsum(squares) / freedom)

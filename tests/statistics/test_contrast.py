"""A weighted sum of numbers: of two it is a difference, to the last digit; of more, its floor grows as it must."""

from math import isclose, sqrt

from hypothesis import given, settings
from hypothesis import strategies as st

from reproducer.statistics.comparison import compare
from reproducer.statistics.contrast import contrast
from reproducer.statistics.observations import Observations

_VALUES = st.floats(min_value=-1e6, max_value=1e6, allow_nan=False)
_BOOTS = st.lists(st.lists(_VALUES, min_size=2, max_size=3), min_size=2, max_size=3)


def of(boots: list[list[float]]) -> Observations:
    """Observations of boots of samples of one value."""
    return Observations.of((str(boot), [value]) for boot, values in enumerate(boots) for value in values)


@settings(max_examples=25)
@given(_BOOTS, _BOOTS)
def test_two_terms_are_a_difference(first: list[list[float]], second: list[list[float]]) -> None:
    """Weights -1 and 1 give what `compare` gives."""
    one, two = of(first), of(second)
    found, expected = contrast([(-1.0, one), (1.0, two)], "median"), compare(one, two, "median")
    assert (found.value, found.floor, found.conclusion) == (expected.difference, expected.floor, expected.conclusion)
    assert (found.low, found.high) == (expected.low, expected.high)


@settings(max_examples=25)
@given(_BOOTS)
def test_a_weight_scales(boots: list[list[float]]) -> None:
    """Twice the weights are twice the value, floor and interval."""
    one, two = of(boots), of([[value + 1 for value in boot] for boot in boots])
    once, twice = (contrast([(-weight, one), (weight, two)], "median") for weight in (1.0, 2.0))
    assert isclose(twice.value, 2 * once.value, abs_tol=1e-9)
    assert once.floor is not None
    assert twice.floor is not None
    assert isclose(twice.floor, 2 * once.floor, rel_tol=1e-9, abs_tol=1e-9)


def test_more_runs_know_more() -> None:
    """The mean of two differences of like noise has a lower floor than one: by the root of two, and Student's t."""
    base, other = of([[10.0, 10.2], [11.0, 11.2]]), of([[12.0, 12.2], [13.0, 13.2]])
    one = contrast([(-1.0, base), (1.0, other)], "median")
    two = contrast([(-0.5, base), (0.5, other), (-0.5, base), (0.5, other)], "median")
    assert one.floor is not None
    assert two.floor is not None
    assert isclose(two.floor * sqrt(2) / one.floor, 2.776445 / 4.302653, rel_tol=1e-9)


def test_no_floor_without_boots() -> None:
    """One boot on each side tells nothing of boots, so no difference is shown; one sample leaves no interval."""
    found = contrast([(-1.0, of([[1.0]])), (1.0, of([[9.0]]))], "median")
    assert (found.floor, found.low, found.high, found.conclusion) == (None, None, None, "no difference shown")

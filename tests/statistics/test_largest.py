"""Numbers that no square of has a place in a float are refused, and never an overflow or an infinity in a result."""

import math

import pytest

from reproducer.errors import InvalidDocumentError
from reproducer.statistics.comparison import compare
from reproducer.statistics.observations import LARGEST, Observations
from reproducer.statistics.spread import spread


def _of(*values: float) -> Observations:
    return Observations.of((str(place), (value,)) for place, value in enumerate(values))


@pytest.mark.parametrize("value", [1e308, -1e308, 1e200, math.inf, math.nan])
def test_what_cannot_be_reckoned_with_is_refused(value: float) -> None:
    """It is a fault of the document that brought it, with the number in it."""
    with pytest.raises(InvalidDocumentError, match="no number that statistics can be made of"):
        _of(1.0, value)
    with pytest.raises(InvalidDocumentError):
        _of(1e10, 2e10).scaled(value if value > 0 else 1e308)


@pytest.mark.parametrize("values", [(LARGEST, -LARGEST), (LARGEST, LARGEST), (5e-324, 1e-320)])
def test_the_largest_and_the_least_that_are_taken(values: tuple[float, float]) -> None:
    """Spread and comparison of them are finite, and where a ratio would not be there is none."""
    extreme, plain = _of(*values), _of(1.0, 2.0)
    assert spread(extreme, "median") is not None
    for how in ("median", "mean"):
        for found in (compare(extreme, plain, how), compare(plain, extreme, how)):
            numbers = (found.before, found.after, found.difference, found.ratio, found.floor, found.low, found.high)
            assert all(each is None or math.isfinite(each) for each in numbers)

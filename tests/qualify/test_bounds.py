"""Bounds that could be met by anything, or that no number can be compared with, are refused with the document."""

import hashlib

import pytest
from pydantic import ValidationError

from reproducer.documents.base import FileReference
from reproducer.documents.lock import Measure, Threshold


def _measure(threshold: Threshold) -> Measure:
    return Measure(id="decode.single/1", repeats=2, warmup=0, thresholds=(threshold,))


def test_true_bounds_no_rate() -> None:
    """A rate that is at least true would be one of at least 1 token a second."""
    _measure(Threshold(value="decode_rate", comparator=">=", bound=1, unit="tok/s"))
    with pytest.raises(ValidationError, match="the bound is true or false"):
        _measure(Threshold(value="decode_rate", comparator=">=", bound=True, unit="tok/s"))


@pytest.mark.parametrize("bound", [0, -1.0, 1e7, 1e308, True])
def test_a_share_that_no_receipt_can_be_held_against(bound: float) -> None:
    """It is refused before anything is measured, since no difference to so much of a number can be worked out."""
    reference = FileReference(path="reference.json", sha256=hashlib.sha256(b"").hexdigest(), size=0)

    def relative(share: float) -> Threshold:
        return Threshold(value="decode_rate", comparator=">=", bound=share, unit="ratio", relative_to=reference)

    _measure(relative(1.0))
    with pytest.raises(ValidationError, match="share above 0"):
        _measure(relative(bound))

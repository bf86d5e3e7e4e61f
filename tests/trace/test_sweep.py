"""Overlap by a sweep, held against every pair looked at by itself."""

from hypothesis import given, settings
from hypothesis import strategies as st

from reproducer.trace.sweep import overlaps

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 25)), max_size=40)


def by_pairs(spans: list[tuple[int, int]], resolution: int) -> tuple[list[int], list[int]]:
    """The same by brute force: each pair, with one span moved by anything that is less than the resolution."""
    surely, perhaps = [0] * len(spans), [0] * len(spans)
    for one, (start, length) in enumerate(spans):
        for two, (other, longer) in enumerate(spans):
            if one != two:
                least, most = start - (other + longer), start + length - other  # moves between these make them meet
                always = least <= -resolution and most >= resolution if resolution else least < 0 < most
                ever = max(least, -resolution) < min(most, resolution) if resolution else always
                surely[one] += always
                perhaps[one] += ever and not always
    return surely, perhaps


@given(SPANS)
@settings(max_examples=300, deadline=None)
def test_exact_times(spans: list[tuple[int, int]]) -> None:
    """Half-open spans of exact times overlap where each begins before the other ends."""
    starts, ends = [start for start, _ in spans], [start + length for start, length in spans]
    assert overlaps(starts, ends, 0) == by_pairs(spans, 0)


@given(SPANS, st.integers(1, 9))
@settings(max_examples=300, deadline=None)
def test_rounded_times(spans: list[tuple[int, int]], resolution: int) -> None:
    """With a clock that resolves less, a pair overlaps surely where it does after every move, perhaps after some."""
    starts, ends = [start for start, _ in spans], [start + length for start, length in spans]
    assert overlaps(starts, ends, resolution) == by_pairs(spans, resolution)


def test_ends_that_touch() -> None:
    """A span that ends where another begins does not overlap it."""
    assert overlaps([0, 10], [10, 20], 0) == ([0, 0], [0, 0])
    assert overlaps([0, 9], [10, 20], 0) == ([1, 1], [0, 0])
    assert overlaps([], [], 5) == ([], [])

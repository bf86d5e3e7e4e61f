"""Which spans overlap, by a sweep over their ends: O(n log n), exact within what the clock resolves.

A time that a source gives is off by less than its clock's resolution against every other one. So two spans surely
overlap where they still do after either is moved by that much, and may overlap where they do after some such move.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence


def overlaps(starts: Sequence[int], ends: Sequence[int], resolution: int) -> tuple[list[int], list[int]]:
    """How many other spans surely overlap each span, and how many more may.

    Spans are half open: one that ends where another starts does not overlap it.

    Args:
        starts: their starts.
        ends: their ends; each lies after its start.
        resolution: by how much two times can be off against each other; 0 for exact times.
    """
    surely = _met(starts, ends, max(resolution, 1))
    if resolution == 0:
        return surely, [0] * len(surely)
    perhaps = _met(starts, ends, 1 - resolution)
    return surely, [more - sure for more, sure in zip(perhaps, surely, strict=True)]


def _met(starts: Sequence[int], ends: Sequence[int], margin: int) -> list[int]:
    """For each span i the number of spans j besides it with s(j) + margin <= e(i) and s(i) + margin <= e(j).

    It is how many start early enough, less how many end too early. One that starts too late and ends too early was
    taken off wrongly: there are such only among spans shorter than twice the margin.
    """
    by_start, by_end = sorted(starts), sorted(ends)
    both = _too_late_and_early(starts, ends, margin)
    counts = []
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        count = bisect_right(by_start, end - margin) - bisect_left(by_end, start + margin) + both.get(index, 0)
        counts.append(count - (start + margin <= end))
    return counts


def _too_late_and_early(starts: Sequence[int], ends: Sequence[int], margin: int) -> dict[int, int]:
    """For each span i the number of spans j with s(j) + margin > e(i) and e(j) < s(i) + margin."""
    short = [index for index, start in enumerate(starts) if ends[index] - start < 2 * margin]
    if margin <= 0 or not short:
        return {}
    ranks = sorted({ends[index] for index in short})
    tree = [0] * (len(ranks) + 1)
    waiting = sorted(short, key=lambda index: starts[index])
    found: dict[int, int] = {}
    for index in sorted(short, key=lambda index: ends[index], reverse=True):
        while waiting and starts[waiting[-1]] + margin > ends[index]:
            at = bisect_left(ranks, ends[waiting.pop()]) + 1
            while at < len(tree):
                tree[at] += 1
                at += at & -at
        at, count = bisect_left(ranks, starts[index] + margin), 0
        while at:
            count += tree[at]
            at &= at - 1
        found[index] = count
    return found

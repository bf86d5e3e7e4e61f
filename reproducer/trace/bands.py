"""Bands of context: which prompts are looked at together."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from reproducer.errors import UsageError

PUBLISHED = "0-2K,2-64K,64-100K,100-150K,150-262K,262-300K,300-325K,325-340K,340-360K,360K-"
MOST_BANDS = 100
_THOUSAND = 1000
_LARGEST = 2**53
_BAND = re.compile(r"([0-9]{1,12})(K?)-(?:([0-9]{1,12})(K?))?")


@dataclass(frozen=True)
class Edges:
    """A band: at least `low` and fewer than `high` tokens; None is no upper end."""

    name: str
    low: int
    high: int | None


class Bands:
    """Bands side by side, without gaps, from 0 to no end.

    Attributes:
        lows: where each begins.
    """

    def __init__(self, edges: Sequence[Edges]) -> None:
        self.edges = tuple(edges)
        self.lows = [each.low for each in edges]

    def index(self, tokens: int) -> int:
        """The place of the band that holds so many tokens."""
        return bisect_right(self.lows, tokens) - 1


def parse_bands(text: str) -> Bands:
    """Bands as a person writes them: `0-2K,64-100K`; K is 1000. What lies between them becomes bands of its own.

    Raises:
        UsageError: no band, one that ends before it begins, or two that overlap.
    """
    named: list[Edges] = []
    for part in text.split(","):
        match = _BAND.fullmatch(part.strip())
        if match is None:
            raise UsageError(
                f"{part.strip()[:40]!r} is no band", where="--bands", todo="write bands as in 0-2K,2K-64K,64K-"
            )
        scale = _THOUSAND if match[4] or (match[2] and match[3] is None) else 1
        low = int(match[1]) * (_THOUSAND if match[2] else scale)
        high = None if match[3] is None else int(match[3]) * scale
        if high is not None and not low < high < _LARGEST:
            raise UsageError(f"the band {part.strip()} ends before it begins", where="--bands")
        named.append(Edges(part.strip(), low, high))
    if len(named) > MOST_BANDS:
        raise UsageError(f"there are more than {MOST_BANDS} bands", where="--bands")
    return Bands(_filled(sorted(named, key=lambda each: each.low)))


def _filled(named: list[Edges]) -> list[Edges]:
    found: list[Edges] = []
    end: int | None = 0
    for each in named:
        if end is None or each.low < end:
            raise UsageError(f"the band {each.name} begins before the one before it ends", where="--bands")
        if each.low > end:
            found.append(Edges(_name(end, each.low), end, each.low))
        found.append(each)
        end = each.high
    if end is not None:
        found.append(Edges(_name(end, None), end, None))
    return found


def _name(low: int, high: int | None) -> str:
    """What a band between two others is called."""
    if high is None:
        return f"{low // _THOUSAND}K-" if low % _THOUSAND == 0 else f"{low}-"
    if low % _THOUSAND == 0 and high % _THOUSAND == 0:
        return f"{low // _THOUSAND}-{high // _THOUSAND}K"
    return f"{low}-{high}"

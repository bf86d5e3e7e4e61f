"""Random draws that everybody can repeat: words from SHAKE-256 of a text, in any language, on any machine.

The text says how many samples each boot has and nothing of their values. So nobody can try seeds until an interval
looks well, and an interval moves with its values when all of them are scaled or shifted.
"""

import hashlib
import struct
from functools import lru_cache
from itertools import islice

_WORD = 4


def seed(shape: tuple[int, ...], resamples: int, side: str = "one") -> str:
    """What the draws for boots of so many samples follow from."""
    return f"penny-bootstrap/1 {side} {resamples} {' '.join(map(str, shape))}"


def words(text: str, count: int) -> tuple[int, ...]:
    """The first `count` words of 32 bits, little-endian, of SHAKE-256 of `text`."""
    return struct.unpack(f"<{count}I", hashlib.shake_256(text.encode()).digest(_WORD * count))


@lru_cache(maxsize=4)
def two_stage(shape: tuple[int, ...], resamples: int, side: str = "one") -> tuple[tuple[int, ...], ...]:
    """Resamples in two stages: as many boots as there are, with replacement; in each its number of samples, the same.

    A word w draws from n things the one numbered (w * n) >> 32, which prefers none by more than n / 2**32.

    Args:
        shape: how many samples each boot has.
        resamples: how many are wanted.
        side: which of two sets that are compared; their draws are independent.

    Returns:
        Of each resample the numbers of its samples, counted through all boots.
    """
    boots = len(shape)
    starts = [sum(shape[:boot]) for boot in range(boots)]
    stream = iter(words(seed(shape, resamples, side), resamples * (boots + boots * max(shape))))
    found = []
    for _ in range(resamples):
        drawn: list[int] = []
        for boot in [(word * boots) >> 32 for word in islice(stream, boots)]:
            size, start = shape[boot], starts[boot]
            drawn += [start + ((word * size) >> 32) for word in islice(stream, size)]
        found.append(tuple(drawn))
    return tuple(found)

"""Ten million sets of factors, made so that they nearly collide, and no two different ones share an encoding.

It takes minutes, so it runs only when asked for: PENNY_LONG=1 pytest tests/identity/test_collisions.py
"""

import os
import random
from typing import Any

import pytest

from reproducer.identity.encoding import encode
from reproducer.identity.factors import Factor, Kind
from tests.identity.test_encoding import Decoder

TRIES = 10_000_000 if os.environ.get("PENNY_LONG") else 20_000
# Text of few characters, all of which mean something in the encoding, so that pieces of one set look like another.
MARKS = ("", "n", "t", "0", "1", ":", ",", "t1:", "n1:a,", "1:t", ":,", "u0:,", "a", "0:,")
NAMES = ("", "a", "n", "t", "a,", "a,t", "1:", "n1:a,", "a.b")
DIGESTS = ("0" * 64, "f" * 64)
PLAIN: tuple[tuple[Kind, tuple[Any, ...]], ...] = (
    ("text", MARKS),
    ("integer", (0, 1, -1, 10, 11)),
    ("float", (0.0, -0.0, 1.0)),
    ("boolean", (True, False)),
    ("digest", DIGESTS),
    ("unknown", DIGESTS),
    ("unset", (None,)),
)
VALUES = tuple(Factor(kind, value) for kind, values in PLAIN for value in values)


def value(source: random.Random, depth: int = 0) -> Factor:
    """A value; now and then a list of values."""
    if depth < 2 and source.random() < 0.25:
        return Factor("list", tuple(value(source, depth + 1) for _ in range(source.randrange(3))))
    return source.choice(VALUES)


def key(factor: Factor) -> Any:
    """What a value is, apart from how it is encoded: types and the sign of zero count."""
    inner = factor.value
    return (factor.kind, tuple(map(key, inner)) if isinstance(inner, tuple) else repr(inner))


def pool(source: random.Random, size: int = 600) -> list[Factor]:
    """Different values."""
    found: dict[Any, Factor] = {}
    while len(found) < size:
        each = value(source)
        found[key(each)] = each
    return list(found.values())


@pytest.mark.timeout(7200)
def test_no_two_sets_of_factors_share_an_encoding() -> None:
    """Equal encodings exactly for equal sets, over all tries; of every 500th, what the specification reads back."""
    source = random.Random(20240229)  # noqa: S311  the same tries every time
    values = pool(source)
    size = len(values)
    set_of: dict[int, int] = {}
    encoding_of: dict[int, int] = {}
    for number in range(TRIES):
        chosen = {source.randrange(len(NAMES)): source.randrange(size) for _ in range(source.randrange(4))}
        factors = {NAMES[name]: values[index] for name, index in chosen.items()}
        encoded = encode(factors)
        # a hash of 64 bits stands for each encoding, so that ten million fit into memory; a set is known by one number
        short, known = hash(encoded), 1
        for name, index in sorted(chosen.items()):
            known = (known * len(NAMES) + name) * size + index
        assert set_of.setdefault(short, known) == known, (factors, encoded)
        assert encoding_of.setdefault(known, short) == short, (factors, encoded)
        if number % 500 == 0:
            decoded = Decoder(encoded).factors()
            assert {name: key(each) for name, each in decoded.items()} == {
                name: key(each) for name, each in factors.items()
            }
    assert len(set_of) == len(encoding_of) < TRIES  # some sets came up again, so that equal ones were seen to be equal

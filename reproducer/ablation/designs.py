"""Designs: which groups of factors are as in B in which run.

A row says of each group whether it is as in B. In a balanced design each group is as in B in half of the rows, and any
two groups are so independently of each other; the rows are those of Sylvester's and of Plackett and Burman's matrices.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Literal

from reproducer.errors import UsageError

DesignName = Literal["balanced", "one-at-a-time"]
Row = tuple[bool, ...]
MOST = 23
_WHOLE = 3  # so many groups have every combination as a row
_HALF = 4
# First row of each cyclic matrix, as R. L. Plackett and J. P. Burman published them in 1946.
_CYCLIC = {12: "++-+++---+-", 20: "++--++++-+-+----++-", 24: "+++++-+-++--++--+-+----"}
_SYLVESTER = (8, 16)


@dataclass(frozen=True)
class Design:
    """The rows of a design.

    Attributes:
        rows: the base rows; the first is A.
        more: rows beside them that show what the base leaves open: B, where it is none of them.
    """

    name: DesignName
    rows: tuple[Row, ...]
    more: tuple[Row, ...] = ()

    @property
    def every(self) -> tuple[Row, ...]:
        """All rows."""
        return (*self.rows, *self.more)


def one_at_a_time(groups: int) -> Design:
    """A, then each group alone as in B, then B."""
    first = (False,) * groups
    rows = (first, *(tuple(place == each for place in range(groups)) for each in range(groups)))
    last = (True,) * groups
    return Design("one-at-a-time", rows, () if last in rows else (last,))


def balanced(groups: int) -> Design:
    """A balanced design with A as its first row, and B beside it where it is none of the rows.

    Raises:
        UsageError: more groups than it has columns.
    """
    if groups > MOST:
        raise UsageError(f"{groups} groups are more than a balanced design here takes", why=f"it takes {MOST}")
    if groups <= _WHOLE:
        rows = sorted(product((False, True), repeat=groups))
    elif groups == _HALF:  # the fourth is as in B where an odd number of the others is
        rows = [(*row, sum(row) % 2 == 1) for row in sorted(product((False, True), repeat=_WHOLE))]
    else:
        size = next(each for each in sorted((*_SYLVESTER, *_CYCLIC)) if each > groups)
        rows = [row[:groups] for row in (_sylvester(size) if size in _SYLVESTER else _cyclic(size))]
    last = (True,) * groups
    return Design("balanced", tuple(rows), () if last in rows else (last,))


def weights(design: Design, there: Sequence[Row]) -> dict[tuple[int, ...], dict[Row, Fraction] | None]:
    """Of each effect the weight of every row's number; None where the rows that are there do not give it.

    An effect is what going from A to B changes: (group,) of one group, (group, group) of two together beyond the sum
    of both, which only a design with every combination gives.

    Args:
        design: the design.
        there: its rows that have a number.
    """
    groups = len(design.rows[0])
    effects: list[tuple[int, ...]] = [(each,) for each in range(groups)]
    if design.name == "one-at-a-time":
        base = design.rows[0]
        found: dict[tuple[int, ...], dict[Row, Fraction] | None] = {}
        for place, effect in enumerate(effects):
            row = design.rows[place + 1]
            known = row in there and base in there
            found[effect] = {row: Fraction(1), base: Fraction(-1)} if known else None
        return found
    if groups <= _WHOLE:
        effects += list(combinations(range(groups), 2))
    if all(row in there for row in design.rows):
        half = Fraction(2, len(design.rows))
        return {effect: {row: half if _sign(row, effect) > 0 else -half for row in design.rows} for effect in effects}
    return dict.fromkeys(effects) | _least_squares([row for row in design.every if row in there], groups)


def aliases(design: Design) -> dict[int, tuple[tuple[int, int, float], ...]]:
    """With which interactions of two groups each group's effect is mixed, and to what share; only of balanced rows."""
    groups = range(len(design.rows[0]))
    found: dict[int, tuple[tuple[int, int, float], ...]] = {}
    for each in groups:
        mixed = []
        for one, two in combinations((other for other in groups if other != each), 2):
            share = abs(sum(_sign(row, (each,)) * _sign(row, (one, two)) for row in design.rows)) / len(design.rows)
            if share:
                mixed.append((one, two, share))
        found[each] = tuple(mixed)
    return found


def pairs_alike(design: Design) -> tuple[tuple[tuple[int, int], tuple[int, int]], ...]:
    """Interactions of two groups that the rows cannot tell from one another."""
    pairs = list(combinations(range(len(design.rows[0])), 2))
    return tuple(
        (one, two)
        for one, two in combinations(pairs, 2)
        if abs(sum(_sign(row, one) * _sign(row, two) for row in design.rows)) == len(design.rows)
    )


def _sign(row: Row, effect: Sequence[int]) -> int:
    sign = 1
    for each in effect:
        sign *= 1 if row[each] else -1
    return sign


def _sylvester(size: int) -> list[Row]:
    """Columns of a Sylvester matrix but the first, turned so that one row is A."""
    return [tuple((row & column).bit_count() % 2 == 1 for column in range(1, size)) for row in range(size)]


def _cyclic(size: int) -> list[Row]:
    first = [each == "+" for each in _CYCLIC[size]]
    turned = [tuple(first[-place:] + first[:-place]) for place in range(size - 1)]
    return [(False,) * (size - 1), *turned]


def _least_squares(rows: Sequence[Row], groups: int) -> dict[tuple[int, ...], dict[Row, Fraction] | None]:
    """Weights of an ordinary least-squares fit of one effect a group; None where the rows do not tell them apart."""
    size = groups + 1
    matrix = [[Fraction(1), *(Fraction(int(each)) for each in row)] for row in rows]
    square = [[sum((x[i] * x[j] for x in matrix), Fraction(0)) for j in range(size)] for i in range(size)]
    turned = [[each[i] for each in matrix] for i in range(size)]
    solved = _solve(square, turned)
    if solved is None:
        return {(each,): None for each in range(groups)}
    return {(each,): dict(zip(rows, solved[each + 1], strict=True)) for each in range(groups)}


def _solve(square: list[list[Fraction]], right: list[list[Fraction]]) -> list[list[Fraction]] | None:
    """The solution of a system of equations, exactly; None where it has no single one."""
    size = len(square)
    rows = [[*left, *more] for left, more in zip(square, right, strict=True)]
    for column in range(size):
        pivot = next((place for place in range(column, size) if rows[place][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        head = rows[column][column]
        rows[column] = [each / head for each in rows[column]]
        for place in range(size):
            if place != column and rows[place][column]:
                share = rows[place][column]
                rows[place] = [x - share * y for x, y in zip(rows[place], rows[column], strict=True)]
    return [row[size:] for row in rows]

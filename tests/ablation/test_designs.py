"""Designs: balance, A and B in them, effects that come out exactly, and aliases that are said."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

import pytest

from reproducer.ablation.designs import Design, Row, aliases, balanced, one_at_a_time, pairs_alike, weights
from reproducer.errors import UsageError


def additive(row: Row) -> Fraction:
    """A response in which each group adds another power of two."""
    return sum((Fraction(2**place) for place, moved in enumerate(row) if moved), Fraction(100))


def effect(weighted: dict[Row, Fraction] | None, response: dict[Row, Fraction]) -> Fraction | None:
    """What weights give for a response."""
    return None if weighted is None else sum((weight * response[row] for row, weight in weighted.items()), Fraction(0))


@pytest.mark.parametrize("groups", range(1, 24))
def test_balance(groups: int) -> None:
    """A is the first row, B is one of all, each group is as in B in half of the rows and any two in a quarter."""
    design = balanced(groups)
    assert design.rows[0] == (False,) * groups
    assert (True,) * groups in design.every
    assert len(set(design.every)) == len(design.every)
    half = len(design.rows) // 2
    assert all(sum(row[each] for row in design.rows) == half for each in range(groups))
    for one, two in combinations(range(groups), 2):
        assert 2 * sum(row[one] and row[two] for row in design.rows) == half


@pytest.mark.parametrize("groups", [1, 2, 3, 4, 5, 7, 8, 11, 12, 15, 19, 23])
@pytest.mark.parametrize("make", [balanced, one_at_a_time])
def test_effects_of_a_sum(make: Callable[[int], Design], groups: int) -> None:
    """Where every group adds its own, each effect is exactly that, in both designs, and interactions are none."""
    design = make(groups)
    response = {row: additive(row) for row in design.every}
    for of, weighted in weights(design, tuple(response)).items():
        assert effect(weighted, response) == (2 ** of[0] if len(of) == 1 else 0)


def test_an_interaction_of_two() -> None:
    """With every combination, what two groups do together comes out, and no group has an alias."""
    design = balanced(3)
    response = {row: additive(row) + (8 if row[0] and row[2] else 0) for row in design.every}
    found = {of: effect(weighted, response) for of, weighted in weights(design, tuple(response)).items()}
    assert found[0, 2] == 4
    assert found[0, 1] == 0
    assert found[1, 2] == 0
    assert set(aliases(design).values()) == {()}
    assert pairs_alike(design) == ()


def test_what_a_smaller_design_mixes() -> None:
    """Four groups: no group is mixed with a pair, pairs are with pairs; five: groups are, and the numbers show it."""
    assert set(aliases(balanced(4)).values()) == {()}
    assert ((0, 1), (2, 3)) in pairs_alike(balanced(4))
    design = balanced(5)
    mixed = {(each, one, two) for each, pairs in aliases(design).items() for one, two, _ in pairs}
    for each, one, two in combinations(range(5), 3):
        response = {row: Fraction(int(row[one] and row[two])) for row in design.rows}
        found = effect(weights(design, tuple(design.every))[each,], response)
        assert bool(found) == ((each, one, two) in mixed)


def test_a_run_that_is_missing() -> None:
    """The rest is fitted exactly where it tells the groups apart; where it does not, nothing is given."""
    design = balanced(3)
    response = {row: additive(row) for row in design.every if row != (True, False, True)}
    found = weights(design, tuple(response))
    assert [effect(found[each,], response) for each in range(3)] == [1, 2, 4]
    assert found[0, 1] is None
    few = tuple(row for row in design.every if row[0] == row[1])
    assert weights(design, few)[0,] is None
    alone = one_at_a_time(3)
    without = tuple(row for row in alone.every if row != (False, True, False))
    assert [weights(alone, without)[each,] is None for each in range(3)] == [False, True, False]


def test_too_many_groups() -> None:
    """There is no larger design here, and it says so."""
    with pytest.raises(UsageError, match="24 groups"):
        balanced(24)

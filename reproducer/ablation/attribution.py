"""The attribution: how much of the difference between A and B each group makes, with its interval and its floor."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from reproducer.ablation.designs import Design, Row, weights
from reproducer.comparison.comparing import Compared
from reproducer.statistics.contrast import Contrast, Term, contrast

Key = tuple[str, str]


@dataclass(frozen=True)
class Effect:
    """What moving some groups from A to B does to one number.

    Attributes:
        groups: one, or two for what they do together beyond the sum of both; none for all that no group explains.
        found: None where the runs that there are do not give it.
    """

    groups: tuple[str, ...]
    found: Contrast | None

    def content(self) -> dict[str, Any]:
        """As plain data."""
        each = self.found
        return {
            "groups": list(self.groups),
            "effect": None if each is None else each.value,
            "interval": None if each is None or each.low is None else [each.low, each.high],
            "noise_floor": None if each is None else each.floor,
            "conclusion": "not separated" if each is None else each.conclusion,
        }


@dataclass(frozen=True)
class Attribution:
    """The attribution of one number.

    Attributes:
        whole: B against A; None where that pair is missing.
        effects: group by group, in the order of the groups, whichever way they go; interactions after them.
        remainder: what is left of the whole after all groups; None where a part is missing.
    """

    measure: str
    value: str
    kind: str
    unit: str
    whole: Contrast | None
    effects: tuple[Effect, ...]
    remainder: Contrast | None

    def content(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "measure": self.measure,
            "value": self.value,
            "kind": self.kind,
            "unit": self.unit,
            "whole": Effect((), self.whole).content(),
            "effects": [each.content() for each in self.effects],
            "remainder": Effect((), self.remainder).content(),
        }


def attribute(
    design: Design, names: tuple[str, ...], pairs: Mapping[Row, tuple[Compared, ...]]
) -> tuple[Attribution, ...]:
    """Attribute every number that all runs give.

    Args:
        design: the design.
        names: of the groups.
        pairs: of each row but A what its lock gives against A, both measured in turn.
    """
    if not pairs:
        return ()
    numbers = [{(each.measure, each.before.value): each for each in found} for found in pairs.values()]
    shared = [key for key in numbers[0] if all(key in each for each in numbers)]
    by_row = dict(zip(pairs, numbers, strict=True))
    return tuple(
        _of_number(design, names, {row: found[key] for row, found in by_row.items()})
        for key in shared
        if numbers[0][key].before.how != "all"  # whether all hold is no sum
    )


def _of_number(design: Design, names: tuple[str, ...], runs: Mapping[Row, Compared]) -> Attribution:
    base, last = (False,) * len(names), (True,) * len(names)
    known = weights(design, (base, *runs))
    effects = tuple(
        Effect(tuple(names[each] for each in groups), None if found is None else _contrast(found, runs))
        for groups, found in known.items()
    )
    whole = {last: Fraction(1)} if last in runs else None
    mains = [known[each,] for each in range(len(names))]
    rest: dict[Row, Fraction] | None = None
    if whole is not None and len(names) > 1 and all(each is not None for each in mains):
        rest = dict(whole)
        for found in mains:
            for row, weight in (found or {}).items():
                rest[row] = rest.get(row, Fraction(0)) - weight
    one = next(iter(runs.values()))
    return Attribution(
        measure=one.measure,
        value=one.before.value,
        kind=one.before.kind,
        unit=one.before.unit,
        whole=None if whole is None else _contrast(whole, runs),
        effects=effects,
        remainder=None if rest is None else _contrast(rest, runs),
    )


def _contrast(weighted: Mapping[Row, Fraction], runs: Mapping[Row, Compared]) -> Contrast:
    """A sum of differences to A: each run stands with the A that was measured in turn with it."""
    how = next(iter(runs.values())).before.how
    terms = list(_terms(weighted, runs))
    if not terms:  # the weights cancel: a remainder that the design makes zero
        return Contrast(0.0, 0.0, 0.0, 0.0, "no difference shown")
    return contrast(terms, how)


def _terms(weighted: Mapping[Row, Fraction], runs: Mapping[Row, Compared]) -> Iterator[Term]:
    for row, weight in weighted.items():
        if weight and row in runs:
            yield -float(weight), runs[row].before.observations
            yield float(weight), runs[row].after.observations

"""What is compared: numbers of one kind, each with what it was made of, and the side that they come from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from reproducer.documents.base import shown
from reproducer.documents.lock import Scalar
from reproducer.errors import UsageError
from reproducer.statistics.observations import Observations, Summary

SourceKind = Literal["receipts", "imported result", "trace", "claim"]
_RATES_UP = ("rate", "window")
_HIGHER = frozenset({"agreement", "score"})
_LOWER = frozenset({"duration", "divergence"})


class NotComparableError(UsageError):
    """Two numbers, or two things that carry numbers, that never stand against each other."""


@dataclass(frozen=True)
class Number:
    """One number of one side.

    Attributes:
        measure: the measure or run that gave it; empty of a claim.
        value: its name there.
        statistic: which number over requests it is.
        parameters: what it was taken with; what is not named is not known.
        observations: the values that it was made of, by boot and sample.
        how: how they are summed up.
        bound: what a score is bound to besides (effort, harness, cases); empty of every other kind.
        defined: whether equal names mean one definition, so that other names mean another one.
        complete: whether every parameter is named, so that none is unknown.
        count: how many samples, requests or windows it was made of; None where nobody knows.
        boots: how many boots they came from; None where nobody knows.
    """

    measure: str
    value: str
    kind: str
    unit: str
    statistic: str
    parameters: Mapping[str, Scalar]
    observations: Observations
    how: Summary
    bound: Mapping[str, Scalar | None] = field(default_factory=dict)
    defined: bool = True
    complete: bool = True
    count: int | None = None
    boots: int | None = None

    @property
    def name(self) -> str:
        """What the number is called on the command line."""
        return f"{self.measure}:{self.value}" if self.measure else self.value

    @property
    def better(self) -> Literal["higher", "lower"] | None:
        """Which way is a gain; None where neither is."""
        if self.kind in _HIGHER or self.kind.endswith(_RATES_UP):
            return "higher"
        return "lower" if self.kind in _LOWER else None


def why_not(one: Number, two: Number) -> str:
    """Why two numbers do not stand against each other; empty where they do."""
    if one.kind != two.kind:
        return f"a {one.kind} is not a {two.kind}, and kinds of numbers never mix"
    if one.unit != two.unit:
        return f"one is in {one.unit}, the other in {two.unit}"
    if one.statistic != two.statistic:
        return f"one is the {one.statistic}, the other the {two.statistic}"
    if one.defined and two.defined and (reason := _definitions(one, two)):
        return reason
    told = [
        f"{name} {shown(one.parameters[name])} and {shown(two.parameters[name])}"
        for name in sorted(one.parameters.keys() & two.parameters.keys())
        if not same(one.parameters[name], two.parameters[name])
    ]
    if one.complete and two.complete:
        told += [f"{name} is on one side only" for name in sorted(one.parameters.keys() ^ two.parameters.keys())]
    if told:
        return f"taken with other parameters: {', '.join(told)}"
    apart = sorted(name for name in {**one.bound, **two.bound} if one.bound.get(name) != two.bound.get(name))
    return f"scores of other conditions are other things: {', '.join(apart)}" if apart else ""


def _definitions(one: Number, two: Number) -> str:
    if one.measure != two.measure:
        if one.measure.rpartition("/")[0] == two.measure.rpartition("/")[0] != "":
            return f"{one.measure} and {two.measure} are two versions of a measure, which time two things"
        return f"{one.measure} and {two.measure} are two measures"
    return "" if one.value == two.value else f"{one.value} and {two.value} are two values"


def same(one: object, two: object) -> bool:
    """Equal in value; true is not 1."""
    return one == two and isinstance(one, bool) == isinstance(two, bool)

"""Two sides compared: deltas with their noise floors, and whether the declared factor alone can be their cause."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from reproducer.comparison.conditions import Condition, look, tables, together
from reproducer.comparison.factors import Declared, LockDifferences, differences
from reproducer.comparison.measured import Between, key_of
from reproducer.comparison.numbers import NotComparableError, Number, why_not
from reproducer.comparison.sides import Side
from reproducer.documents.base import shown
from reproducer.documents.receipts import MeasureReceipt
from reproducer.errors import Outcome, UsageError
from reproducer.statistics.comparison import Difference, compare

_WHY_APART = {
    frozenset({"claim", "receipts"}): "nobody measured a claim here, and nothing can be recomputed from it",
    frozenset({"claim", "imported result"}): "a claim has no file of its harness, so how it was taken is not known",
    frozenset({"receipts", "imported result"}): "another harness times other things under the same words",
}
_TRACE = "a server's trace is of ordinary use, and nobody chose its requests"


@dataclass(frozen=True)
class Compared:
    """One number of both sides.

    Attributes:
        measure: the measure, with the parameters that tell it apart.
        before: that of the first side.
        after: that of the second.
    """

    measure: str
    before: Number
    after: Number
    difference: Difference

    @property
    def direction(self) -> Literal["gain", "regression"] | None:
        """What a shown difference is; None where none is shown, or where neither way is better."""
        found, better = self.difference.conclusion, self.before.better
        if found == "no difference shown" or better is None:
            return None
        return "gain" if found == better else "regression"

    def content(self) -> dict[str, Any]:
        """As plain data."""
        found = self.difference
        return {
            "measure": self.measure,
            "value": self.before.value,
            "other_value": None if self.before.name == self.after.name else self.after.name,
            "kind": self.before.kind,
            "unit": self.before.unit,
            "statistic": self.before.statistic,
            "before": found.before,
            "after": found.after,
            "difference": found.difference,
            "ratio": found.ratio,
            "interval": None if found.low is None else [found.low, found.high],
            "noise_floor": found.floor,
            "conclusion": found.conclusion,
            "direction": self.direction,
            "n": [self.before.count, self.after.count],
            "boots": [self.before.boots, self.after.boots],
        }


@dataclass(frozen=True)
class Comparison:
    """What two sides show.

    Attributes:
        factor: the declared paths that differ.
        deltas: in the order of the first side; none is left out or moved for which way it goes.
        differing: every condition that differs or is unknown.
        without_effect: changes of the lock from which no number follows.
        not_compared: numbers of either side that have no partner, and why.
        failed: measures that failed, by side.
    """

    first: Side
    second: Side
    factor: tuple[str, ...]
    deltas: tuple[Compared, ...]
    differing: tuple[Condition, ...]
    without_effect: tuple[str, ...]
    not_compared: tuple[str, ...]

    @property
    def kind(self) -> Literal["controlled", "directional"]:
        """`controlled` where exactly the declared factor differs and nothing is unknown; receipts alone show that."""
        return "directional" if self.differing or self.first.source != "receipts" else "controlled"

    @property
    def failed(self) -> tuple[str, ...]:
        """Measures that failed, each with its side."""
        return tuple(f"{name}: {each}" for name, side in zip("AB", (self.first, self.second)) for each in side.failed)  # noqa: B905  two sides

    def outcome(self, *, asked: bool) -> Outcome:
        """What the exit code says; where a factor was declared, a controlled comparison was asked for."""
        found = Outcome.HOLDS
        if asked and any(each.state == "differs" for each in self.differing):
            found |= Outcome.CONFIGURATION_DIFFERS
        if asked and any(each.state == "unknown" for each in self.differing):
            found |= Outcome.NOT_CHECKED
        return found

    def content(self) -> dict[str, Any]:
        """As plain data with stable keys."""
        return {
            "kind": self.kind,
            "source": self.first.source,
            "a": self.first.where,
            "b": self.second.where,
            "factor": list(self.factor),
            "deltas": [each.content() for each in self.deltas],
            "differing": [each.content() for each in self.differing],
            "without_effect": list(self.without_effect),
            "not_compared": list(self.not_compared),
            "failed": list(self.failed),
        }


def compare_sides(
    first: Side, second: Side, *, factors: Sequence[str] = (), pairs: Sequence[tuple[str, str]] = ()
) -> Comparison:
    """Compare two sides.

    Args:
        first: what is compared with.
        second: what is compared.
        factors: paths that are declared to differ, as `penny diff` names them.
        pairs: names of numbers to set against each other; none: every number of the first with its like.

    Raises:
        NotComparableError: they are of two sorts, or two numbers that were asked for never stand against each other, or
            no number of one side is like one of the other.
        UsageError: a declared factor does not differ.
    """
    if first.source != second.source:
        sorts = frozenset({first.source, second.source})
        raise NotComparableError(
            f"a {first.source} is never compared with a {second.source}".replace("a receipts", "a set of receipts"),
            where=f"{first.where} and {second.where}",
            why=_TRACE if "trace" in sorts else _WHY_APART[sorts],
            todo="compare two of one sort; `penny report` sets others beside receipts, apart from them",
        )
    declared = Declared(tuple(factors))
    matched, alone = _paired(first, second, pairs) if pairs else _matched(first, second)
    labels = _labels([one for one, _ in matched])
    deltas = tuple(
        Compared(label, one, two, compare(one.observations, two.observations, one.how))
        for label, (one, two) in zip(labels, matched, strict=True)
    )
    locks = (
        differences((first.opened, second.opened), (first.digests, second.digests), declared)
        if first.source == "receipts"
        else _without_locks(declared)
    )
    conditions = _conditions(deltas, first, second, locks, declared)
    notes = [f"{name}: {note}" for name, side in (("A", first), ("B", second)) for note in side.notes]
    return Comparison(
        first=first,
        second=second,
        factor=locks.declared,
        deltas=deltas,
        differing=(*locks.conditions, *conditions),
        without_effect=locks.without_effect,
        not_compared=(*alone, *notes),
    )


def _without_locks(declared: Declared) -> LockDifferences:
    if declared.names:
        raise UsageError(
            "only receipts have locks in which a factor could differ",
            todo="leave --factor out: such a comparison is directional",
        )
    return LockDifferences(compared=False)


def _matched(first: Side, second: Side) -> tuple[list[tuple[Number, Number]], tuple[str, ...]]:
    """Every number of the first with its like in the second, and what has none."""
    pairs: list[tuple[Number, Number]] = []
    rest: list[Number] = []
    others = list(second.numbers)
    for one in first.numbers:
        fit = next((two for two in others if _near(one, two) and not why_not(one, two)), None)
        if fit is None:
            rest.append(one)
        else:
            pairs.append((one, fit))
            others.remove(fit)
    alone: list[str] = []
    for one in rest:
        near = [two for two in others if _near(one, two)]
        if near:
            two = min(near, key=lambda each, one=one: len(why_not(one, each)))  # type: ignore[misc]
            others.remove(two)
            alone.append(f"{_told(one, first)}: {why_not(one, two)}")
        else:
            alone.append(f"{_told(one, first)}: only in A")
    alone += [f"{_told(two, second)}: only in B" for two in others]
    if not pairs:
        said = [each for each in alone if not each.endswith((": only in A", ": only in B"))]
        raise NotComparableError(
            "no number of one side stands against one of the other",
            where=f"{first.where} and {second.where}",
            why="; ".join((said or alone)[:3]) or "there is no number",
            todo="measure both with the same measures and parameters",
        )
    return pairs, tuple(alone)


def _told(number: Number, side: Side) -> str:
    """A number by its name, and by its parameters where its side has several of that name."""
    if sum(each.name == number.name for each in side.numbers) == 1:
        return number.name
    told = ", ".join(f"{name}={shown(value)}" for name, value in sorted(number.parameters.items()))
    return f"{number.name}[{told}]"


def _near(one: Number, two: Number) -> bool:
    """Whether two numbers go by one name, whatever their versions and parameters are."""
    return (_bare(one), one.value) == (_bare(two), two.value)


def _bare(number: Number) -> str:
    return number.measure.rpartition("/")[0] or number.measure


def _paired(
    first: Side, second: Side, pairs: Sequence[tuple[str, str]]
) -> tuple[list[tuple[Number, Number]], tuple[str, ...]]:
    found = []
    for names in pairs:
        sides = [_named(side, name) for side, name in zip((first, second), names, strict=True)]
        fit = next(((one, two) for one in sides[0] for two in sides[1] if not why_not(one, two)), None)
        if fit is None:
            raise NotComparableError(
                f"{shown(names[0])} and {shown(names[1])} never stand against each other",
                where=f"{first.where} and {second.where}",
                why=why_not(sides[0][0], sides[1][0]),
                todo="name two numbers of one kind that were taken in one way",
            )
        found.append(fit)
    return found, ()


def _named(side: Side, name: str) -> list[Number]:
    found = [each for each in side.numbers if name in (each.name, each.value)]
    if not found:
        known = ", ".join(dict.fromkeys(each.name for each in side.numbers))
        raise UsageError(f"there is no number {shown(name)}", where=side.where, why=f"there are: {known or 'none'}")
    return found


def _labels(numbers: Sequence[Number]) -> list[str]:
    from reproducer.measures.apart import names

    told = dict.fromkeys((each.measure, tuple(sorted(each.parameters.items()))) for each in numbers if each.complete)
    labels = dict(zip(told, names((measure, dict(parameters)) for measure, parameters in told), strict=True))
    return [labels.get((each.measure, tuple(sorted(each.parameters.items()))), each.measure) for each in numbers]


def _conditions(
    deltas: Sequence[Compared], first: Side, second: Side, locks: LockDifferences, declared: Declared
) -> tuple[Condition, ...]:
    """What differs or is unknown besides the locks, each once with the measures that it is of."""
    if first.source != "receipts":
        return (*tables("", first.conditions, second.conditions), *_parameters(deltas))
    between = Between(first, second, locks, declared)
    measures = dict.fromkeys(each.measure for each in deltas)
    found = [(each.measure, condition) for each in deltas for condition in _of_number(each)]
    for measure in measures:
        each = next(delta for delta in deltas if delta.measure == measure)
        one, two = _receipt(first, each.before), _receipt(second, each.after)
        found += [(measure, condition) for condition in between.conditions(one, two)]
    return together(found, len(measures))


def _receipt(side: Side, number: Number) -> MeasureReceipt:
    return next(
        each for each in side.measures.values() if each.measure == number.measure and key_of(each) == _key(number)
    )


def _key(number: Number) -> str:
    from reproducer.measures.apart import told_whole

    return told_whole(number.measure, number.parameters)


def _of_number(each: Compared) -> Iterator[Condition]:
    yield from look("n", each.before.count, each.after.count)
    yield from look("boots", each.before.boots, each.after.boots)


def _parameters(deltas: Sequence[Compared]) -> Iterator[Condition]:
    """Parameters that one side alone names: nobody knows what they are on the other."""
    for each in deltas:
        before, after = each.before.parameters, each.after.parameters
        for name in sorted(before.keys() ^ after.keys()):
            yield from look(f"{each.before.value} {name}", before.get(name), after.get(name))

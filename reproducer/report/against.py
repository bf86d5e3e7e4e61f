"""A comparison with other evidence, with its boundaries: what differs besides, what nobody knows, and what is noise."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reproducer.documents.verdict import Verdict
from reproducer.report.blocks import Block, Facts, Listing, Prose, Section, Table
from reproducer.report.text import code, number, plain, table

if TYPE_CHECKING:
    from reproducer.comparison.comparing import Compared, Comparison
    from reproducer.comparison.conditions import Condition
    from reproducer.comparison.numbers import Number

TITLE = "Comparison with its boundaries"
_HEADER = ("measure", "value", "A", "B", "B minus A", "95 % interval", "noise floor", "n in boots", "shown")
_CONDITIONS = ("condition", "state", "A", "B", "of", "why")
_MOST_OPEN = 40
_LEAD = (
    "A is the other evidence and B is this one. A difference within its noise floor is no difference shown, and so is "
    "one without a floor. Gains and regressions stand in the order of the measures, in one form."
)


@dataclass(frozen=True)
class Against:
    """Other evidence that a report is set against; it is side A, and what is reported on is side B.

    Attributes:
        name: of the other lock.
        bundle_digest: sha256 of the other bundle's index.
        key_id: the key that signed it.
        verdict: what verification found of it.
        comparison: A with B.
    """

    name: str
    lock_digest: str
    bundle_digest: str
    key_id: str
    verdict: Verdict
    comparison: "Comparison"


def against(found: Against | None) -> Section | None:
    """The section; None where nothing is compared."""
    if found is None:
        return None
    comparison = found.comparison
    facts = Facts(
        (
            ("A", found.name),
            ("Lock digest of A", found.lock_digest),
            ("Bundle digest of A", found.bundle_digest),
            ("Key of A", found.key_id),
            ("Verdict over A", _verdict(found)),
            ("Comparison", _kind(comparison)),
        ),
        frozenset({"Lock digest of A", "Bundle digest of A", "Key of A"}),
    )
    rows = tuple(_row(each) for each in comparison.deltas)
    deltas = Table("Differences", _HEADER, rows, frozenset(range(2, 8)), frozenset({1}), grouped=True)
    blocks: list[Block] = [Prose(_LEAD), facts, deltas]
    if comparison.differing:
        conditions = tuple(_condition(each) for each in comparison.differing)
        caption = "Conditions that differ or are unknown"
        folded = len(conditions) > _MOST_OPEN
        caption = f"{caption}: {len(conditions)}"
        blocks.append(Table(caption, _CONDITIONS, conditions, verbatim=frozenset({0, 2, 3}), folded=folded))
    for lead, items in _lists(comparison):
        blocks += [Prose(lead), Listing(items)]
    return Section("against", TITLE, tuple(blocks))


def against_markdown(found: Against) -> list[str]:
    """The same for a README."""
    comparison = found.comparison
    rows = [_marked(_row(each), {0, 1}) for each in comparison.deltas]
    lines = [
        f"**{TITLE}**: {plain(_kind(comparison))}. B is this.",
        f"A is {code(found.name)}, lock {code(found.lock_digest)}, bundle {code(found.bundle_digest)}.",
        f"Verdict over A: {plain(_verdict(found))}.",
        "",
        *table(_HEADER, rows),
    ]
    if comparison.differing:
        conditions = [_marked(_condition(each), {0, 2, 3}) for each in comparison.differing]
        summary = f"{len(conditions)} conditions that differ or are unknown"
        lines += ["", f"<details><summary>{summary}</summary>", "", *table(_CONDITIONS, conditions), "", "</details>"]
    for lead, items in _lists(comparison):
        lines += ["", plain(lead), "", *(f"- {plain(each)}" for each in items)]
    return ["", *lines]


def _marked(row: tuple[str, ...], names: set[int]) -> tuple[str, ...]:
    return tuple(code(cell) if place in names else plain(cell) for place, cell in enumerate(row))


def against_text(found: Against) -> Iterator[str]:
    """The same for an article, a paragraph or an item each."""
    comparison = found.comparison
    yield (
        f"Compared with {found.name} (A: lock {found.lock_digest}, bundle {found.bundle_digest}, verdict "
        f"{_verdict(found)}): {_kind(comparison)}."
    )
    for each in comparison.deltas:
        measure, value, before, after, difference, interval, floor, count, said = _row(each)
        yield (
            f"- {measure} {value}: A {before}, B {after}, B minus A {difference} (95 % interval {interval}; "
            f"noise floor {floor}; n in boots {count}): {said}"
        )
    if len(comparison.differing) <= _MOST_OPEN:
        for name, state, before, after, of, why in map(_condition, comparison.differing):
            told = f"- {name} {state}: A {before}, B {after}"
            yield told + (f", of {of}" if of != "all" else "") + (f" ({why})" if why else "")
    else:
        yield from _summed(comparison)
    for lead, items in _lists(comparison):
        told = "; ".join(items) if len(items) <= _MOST_OPEN else f"{len(items)}, named on the page"
        yield f"{lead} {told}."


def _summed(comparison: "Comparison") -> Iterator[str]:
    """Conditions that are too many for an article, by the first two parts of their names."""
    for state, said in (("differs", "Differ"), ("unknown", "Unknown")):
        names = [".".join(each.name.split(".")[:2]) for each in comparison.differing if each.state == state]
        if names:
            told = (f"{name} ({count})" if count > 1 else name for name, count in Counter(names).items())
            yield f"{said}, each named with its values on the page: {', '.join(told)}."


def _verdict(found: Against) -> str:
    failed = [each.id for each in found.verdict.checks if each.status == "failed"]
    missing = [each.id for each in found.verdict.checks if each.status == "unknown"]
    names = ", ".join(failed or missing)
    return found.verdict.word + (f" ({names})" if names else "")


def _kind(comparison: "Comparison") -> str:
    factor = ", ".join(comparison.factor)
    if comparison.kind == "controlled":
        return f"controlled: only {factor or 'nothing'} differs, and no condition is unknown"
    unknown = sum(each.state == "unknown" for each in comparison.differing)
    beside = f" beside {factor}" if factor else ""
    differing = len(comparison.differing) - unknown
    return f"directional: {differing} conditions differ and {unknown} are unknown{beside}"


def _value(each: "Compared") -> str:
    unit = each.before.unit
    return each.before.value if unit in ("ratio", "count", "bool") else f"{each.before.value}, {unit}"


def _row(each: "Compared") -> tuple[str, ...]:
    found = each.difference
    interval = "unknown" if found.low is None or found.high is None else f"{number(found.low)} to {number(found.high)}"
    said: str = found.conclusion
    if said != "no difference shown":
        said += "" if each.direction is None else f": {each.direction}"
    return (
        each.measure or each.before.kind,
        _value(each),
        number(found.before),
        number(found.after),
        number(found.difference),
        interval,
        "unknown" if found.floor is None else number(found.floor),
        _both(_counted(each.before), _counted(each.after)),
        said,
    )


def _counted(number_: "Number") -> str:
    count, boots = ("unknown" if each is None else str(each) for each in (number_.count, number_.boots))
    return f"{count} in {boots}"


def _both(one: str, two: str) -> str:
    return one if one == two else f"{one}, {two}"


def _condition(each: "Condition") -> tuple[str, ...]:
    none = "not there" if each.state == "differs" else "unknown"
    before, after = _told(each.before, none), _told(each.after, none)
    return each.name, each.state, before, after, ", ".join(each.measures) or "all", each.why


def _told(value: Any, none: str) -> str:
    if value is None:
        return none
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _lists(comparison: "Comparison") -> Iterator[tuple[str, tuple[str, ...]]]:
    for lead, items in (
        ("Failed, so its numbers are not of a server that works:", comparison.failed),
        ("Not compared:", comparison.not_compared),
        ("Differs in the locks, and no number follows from it:", comparison.without_effect),
    ):
        if items:
            yield lead, items

"""`penny compare` as a person reads it: every number in one form, then what else differs."""

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reproducer.cli.show_diff import printable, value_text, wrapped

if TYPE_CHECKING:
    from reproducer.comparison.comparing import Compared, Comparison
    from reproducer.comparison.conditions import Condition

_MOST = 24


def shown(found: "Comparison", *, every: bool = False) -> RenderableType:
    """Deltas in the order of A, whichever way they go; then the kind of the comparison and why it is that.

    Args:
        found: the comparison.
        every: whether all conditions are shown, however many there are.
    """
    parts: list[RenderableType] = [_deltas(found.deltas), _kind(found)]
    most = len(found.differing) if every else _MOST
    parts += [_condition(each) for each in found.differing[:most]]
    if len(found.differing) > most:
        parts.append(wrapped(f"  and {len(found.differing) - most} more: --verbose or --json shows all", "yellow"))
    for title, lines in (
        ("\nfailed, so its numbers are not of a server that works:", found.failed),
        ("\nnot compared:", found.not_compared),
        ("\ndiffers in the locks, and no number follows from it:", found.without_effect),
    ):
        if lines:
            parts.append(Text(title, style="bold"))
            parts += [wrapped(f"  {line}") for line in lines]
    return Group(*parts)


def _deltas(deltas: "tuple[Compared, ...]") -> Group:
    """A table a measure, narrow enough for 80 columns."""
    from reproducer.report.text import number

    parts: list[RenderableType] = []
    tables: dict[tuple[object, ...], Table] = {}
    for each in deltas:
        place = (each.measure, each.before.count, each.after.count)
        if place not in tables:
            table = tables[place] = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
            for heading in ("value", "A", "B", "B - A", "95 %", "floor", ""):
                table.add_column(heading, overflow="fold", justify="left" if heading in ("value", "") else "right")
            parts += [*([Text("")] if parts else []), wrapped(_title(each), "bold"), table]
        found = each.difference
        interval = (
            "unknown" if found.low is None or found.high is None else f"{number(found.low)} .. {number(found.high)}"
        )
        floor = "unknown" if found.floor is None else number(found.floor)
        told = [number(found.before), number(found.after), number(found.difference), interval, floor]
        name = f"{each.before.value} ({each.before.unit})"
        tables[place].add_row(wrapped(name), *map(wrapped, told), wrapped(_said(each)))
    return Group(*parts)


def _title(each: "Compared") -> str:
    counts = [(each.before.count, each.after.count), (each.before.boots, each.after.boots)]
    n, boots = (" and ".join("unknown" if count is None else str(count) for count in of) for of in counts)
    return f"{each.measure or each.before.kind}: n {n}, boots {boots}"


def _said(each: "Compared") -> str:
    """A gain and a regression in one form."""
    conclusion = each.difference.conclusion
    if conclusion == "no difference shown":
        return conclusion
    return f"B is {conclusion}" + ("" if each.direction is None else f": {each.direction}")


def _kind(found: "Comparison") -> Text:
    text = wrapped("").append(f"\n{found.kind}", style="bold")
    if found.kind == "controlled":
        factor = ", ".join(map(printable, found.factor)) or "nothing"
        return text.append(f": only {factor} differs, and no condition is unknown", style="not bold")
    count = sum(each.state == "unknown" for each in found.differing)
    rest = len(found.differing) - count
    factor = f" beside {', '.join(map(printable, found.factor))}" if found.factor else ""
    return text.append(f": {rest} conditions differ and {count} are unknown{factor}", style="not bold")


def _condition(each: "Condition") -> Text:
    line = wrapped(f"  {each.name}", "bold")
    if each.state == "unknown":
        line.append(" unknown", style="not bold yellow")
        if each.before is not None or each.after is not None:
            line.append(f" (A {_value(each.before)}, B {_value(each.after)})", style="not bold")
    else:
        line.append(f" {_value(each.before)} → {_value(each.after)}", style="not bold")
    if each.measures:
        line.append(f" [{printable(', '.join(each.measures))}]", style="not bold dim")
    if each.why:
        line.append(f" ({printable(each.why)})", style="not bold dim")
    return line


def _value(value: Any) -> str:
    return "unknown" if value is None else value_text(value)

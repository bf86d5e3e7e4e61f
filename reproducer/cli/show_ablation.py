"""`penny ablate` as a person reads it: groups, locks with what they cost, limits; after a run the attribution."""

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reproducer.cli.show_diff import printable, wrapped

if TYPE_CHECKING:
    from reproducer.ablation.attribution import Attribution
    from reproducer.ablation.plan import Plan, Planned
    from reproducer.ablation.running import Ran
    from reproducer.statistics.contrast import Contrast

_MOST = 6


def shown_plan(plan: "Plan") -> RenderableType:
    """The plan: what differs in which group, the locks, and what the design cannot tell apart."""
    parts: list[RenderableType] = [Text("groups", style="bold")]
    for each in plan.between.groups:
        names = [piece.name for piece in each.pieces]
        more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
        parts.append(wrapped(f"  {each.name}: {', '.join(names[:_MOST])}{more}"))
    if plan.between.held:
        parts.append(wrapped(f"  held as in A: {', '.join(plan.between.held)}"))
    parts += [Text(f"\nlocks, {plan.design.name}", style="bold"), _locks(plan)]
    for lock in plan.locks:
        parts += [wrapped(f"  {lock.name} is no lock: {fault}", "red") for fault in lock.faults]
    told = "how long is unknown, since A was never measured"
    if plan.run_seconds is not None:
        told = f"about {plan.run_seconds:.0f} s each, if it is as fast as A was"
    valid = sum(each.opened is not None for each in plan.locks) - 1
    parts += [Text(""), wrapped(f"{valid} of them are measured in turn with A: {told}.")]
    parts.append(wrapped("How long a build takes is unknown: no receipt says it."))
    parts.append(wrapped(f"The design {plan.other[0]} has {plan.other[1]} locks."))
    parts += _limits(plan)
    return Group(*parts)


def shown_run(ran: "Ran") -> RenderableType:
    """The attribution of every number, and what could not be separated or measured."""
    parts: list[RenderableType] = []
    for each in ran.attributions:
        parts += [*([Text("")] if parts else []), wrapped(f"{each.measure} {each.value} ({each.unit})", "bold")]
        parts.append(_effects(each))
    parts += [wrapped(f"{name} was not measured: {why}", "red") for name, why in ran.failed.items()]
    for name, comparison in ran.comparisons.items():
        parts += [wrapped(f"{name}: {each}", "red") for each in comparison.failed]
    parts += _limits(ran.plan)
    return Group(*parts)


def _locks(plan: "Plan") -> Table:
    table = Table(box=None, padding=(0, 1, 0, 2))
    for heading in ("lock", "as in B", "build"):
        table.add_column(heading, overflow="fold")
    for each in plan.locks:
        table.add_row(each.name, wrapped(", ".join(each.groups) or "nothing"), wrapped(_build(each)))
    return table


def _build(each: "Planned") -> str:
    if each.opened is None:
        return "no such lock"
    anew = [layer.name for layer in each.layers if layer.state == "built anew"]
    unknown = [layer.name for layer in each.layers if layer.state == "unknown"]
    there = len(each.layers) - len(anew) - len(unknown)
    told = [f"{there} of {len(each.layers)} layers in the store"]
    told += [f"anew: {', '.join(anew)}"] if anew else []
    told += [f"unknown: {', '.join(unknown)}"] if unknown else []
    return "; ".join(told)


def _effects(each: "Attribution") -> Table:
    table = Table(box=None, padding=(0, 1, 0, 2))
    for heading in ("from A to B", "effect", "95 %", "floor", ""):
        table.add_column(heading, overflow="fold", justify="left" if heading in ("from A to B", "") else "right")
    rows = [(" with ".join(effect.groups), effect.found) for effect in each.effects]
    if len(rows) > 1:  # one group is all of it
        rows.append(("what no group explains", each.remainder))
    rows.append(("all of it", each.whole))
    for name, found in rows:
        table.add_row(wrapped(name), *_row(found))
    return table


def _row(found: "Contrast | None") -> list[Text]:
    from reproducer.report.text import number

    if found is None:
        return [wrapped(each) for each in ("", "", "", "not separated")]
    interval = "unknown" if found.low is None or found.high is None else f"{number(found.low)} .. {number(found.high)}"
    floor = "unknown" if found.floor is None else number(found.floor)
    return [wrapped(each) for each in (number(found.value), interval, floor, found.conclusion)]


def _limits(plan: "Plan") -> list[RenderableType]:
    if not plan.limits:
        return []
    return [Text("\nwhat it cannot separate", style="bold"), *(wrapped(f"  {printable(each)}") for each in plan.limits)]

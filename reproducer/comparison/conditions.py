"""Conditions of two sides: what differs, and what nobody knows. What is unknown on one side is never equal."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from reproducer.comparison.numbers import same
from reproducer.documents.measured import GpuConditions

_BUSY = 10.0  # percent of one processor: how far apart the load of others may lie and still count as one condition


@dataclass(frozen=True)
class Condition:
    """One condition that is not shown to be the same.

    Attributes:
        before: what it is in the first; None where nobody knows.
        after: what it is in the second.
        state: whether it differs, or is unknown on a side at least.
        why: what the two values alone do not say.
        measures: of which numbers it is; empty where it is of all.
    """

    name: str
    before: Any
    after: Any
    state: Literal["differs", "unknown"]
    why: str = ""
    measures: tuple[str, ...] = ()

    def content(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "name": self.name,
            "before": self.before,
            "after": self.after,
            "state": self.state,
            "why": self.why,
            "measures": list(self.measures),
        }


def look(
    name: str, before: Any, after: Any, *, alike: Callable[[Any, Any], bool] = same, why: str = ""
) -> tuple[Condition, ...]:
    """The condition where it is not the same; None and `unknown` are what nobody knows."""
    if _unknown(before) or _unknown(after):
        return (Condition(name, _plain(before), _plain(after), "unknown", why),)
    return () if alike(before, after) else (Condition(name, before, after, "differs", why),)


def tables(prefix: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Condition, ...]:
    """Conditions by name; one that a side does not name is unknown there."""
    names = sorted({**before, **after})
    return tuple(each for name in names for each in look(f"{prefix}{name}", before.get(name), after.get(name)))


def together(found: Iterable[tuple[str, Condition]], every: int) -> tuple[Condition, ...]:
    """One condition for each that several measures share, in the order in which they were found.

    Args:
        found: each with the measure that it is of.
        every: how many measures there are; a condition of all of them names none.
    """
    grouped: dict[str, tuple[Condition, list[str]]] = {}
    for measure, each in found:
        names = grouped.setdefault(repr((each.name, each.before, each.after, each.state, each.why)), (each, []))[1]
        if measure not in names:
            names.append(measure)
    return tuple(
        Condition(each.name, each.before, each.after, each.state, each.why, () if len(names) == every else tuple(names))
        for each, names in grouped.values()
    )


def of_load(before: float | None, after: float | None) -> tuple[Condition, ...]:
    """Processor time that others used while samples were taken."""
    return look("other load, percent of one processor", before, after, alike=lambda one, two: abs(one - two) <= _BUSY)


def of_gpus(before: tuple[GpuConditions, ...] | None, after: tuple[GpuConditions, ...] | None) -> tuple[Condition, ...]:
    """GPUs, power limits, clocks and what kept them down; where no driver shows any on both sides there is nothing."""
    one, two = before or (), after or ()
    if len(one) != len(two):
        return (Condition("gpus", len(one), len(two), "differs"),)
    found: list[Condition] = []
    for index, (first, second) in enumerate(zip(one, two, strict=True)):
        place = f"gpu {index}"
        for name in ("name", "driver", "compute_capability", "memory_bytes"):
            found += look(f"{place} {name}", getattr(first, name), getattr(second, name))
        for name in ("power_requested_w", "power_enforced_w", "reasons"):
            found += look(f"{place} {name}", _list(getattr(first, name)), _list(getattr(second, name)))
        for name in ("clock_sm_mhz", "clock_memory_mhz"):
            clocks = _list(getattr(first, name)), _list(getattr(second, name))
            found += look(f"{place} {name}", *clocks, alike=_overlap, why="lowest and highest do not overlap")
    return tuple(found)


def _overlap(one: list[float], two: list[float]) -> bool:
    return one[0] <= two[1] and two[0] <= one[1]


def _list(value: tuple[Any, ...] | None) -> list[Any] | None:
    return None if value is None else list(value)


def _unknown(value: object) -> bool:
    return value is None or value == "unknown"


def _plain(value: Any) -> Any:
    return None if _unknown(value) else value

"""An imported result as a person reads it: its numbers, then what of the file has no place."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from reproducer.documents.imported import ImportedResult, ImportedRun, Unmapped

_RUNS = 8
_ROWS = 40
_CENTRAL = frozenset({"median", "mean", "avg", "total", "value", "p50", "p99", "standard error"})


def shown_result(result: "ImportedResult", document: Path, original: Path) -> RenderableType:
    """What was imported, and the fields that were not."""
    parts: list[RenderableType] = [
        Text(f"{document}", overflow="fold"),
        Text(f"original {original}", overflow="fold"),
        Text(
            f"{result.harness} {result.harness_version}: imported, not measured by penny; it stands in no verdict",
            overflow="fold",
        ),
    ]
    if result.lock is not None:
        parts.append(Text(f"lock {result.lock.digest}, bound by the importer", overflow="fold"))
    parts += [_run(run) for run in result.runs[:_RUNS]]
    if (hidden := len(result.runs) - _RUNS) > 0:
        parts.append(Text(f"and {hidden} more runs, see the document", style="dim"))
    parts += [Text(f"{run.place}: {note}", overflow="fold") for run in result.runs[:_RUNS] for note in run.notes]
    if result.unmapped:
        parts.append(_unmapped(result.unmapped))
    return Group(*parts)


def _run(run: "ImportedRun") -> Table:
    table = Table(box=None, padding=(0, 1), title=run.place, title_justify="left")
    for heading in ("what", "statistic", "value", "kind"):
        table.add_column(heading, overflow="fold", justify="right" if heading == "value" else "left")
    rows = [each for each in run.quantities if each.statistic in _CENTRAL]
    for each in rows[:_ROWS]:
        table.add_row(
            Text(each.name), Text(each.statistic), Text(f"{each.value:.6g} {each.unit}"), Text(f"{each.kind}")
        )
    if (hidden := len(run.quantities) - len(rows[:_ROWS])) > 0:
        table.add_row(Text(f"and {hidden} more, see the document", style="dim"))
    return table


def _unmapped(unmapped: "tuple[Unmapped, ...]") -> Table:
    """Every field, and where there are many, every group of fields by its first two names."""
    table = Table(box=None, padding=(0, 1), title="Without a place", title_justify="left")
    for heading, ratio in (("field", 3), ("why", 4)):
        table.add_column(heading, overflow="fold", ratio=ratio)
    if len(unmapped) <= _ROWS:
        for each in unmapped:
            table.add_row(Text(each.field, overflow="fold"), Text(each.why, overflow="fold"))
        return table
    groups = _groups(unmapped, 2)
    groups = groups if len(groups) <= 2 * _ROWS else _groups(unmapped, 1)
    for (field, why), count in list(groups.items())[: 2 * _ROWS]:
        more = f" ({count} fields)" if count > 1 else ""
        table.add_row(Text(f"{field}{more}", overflow="fold"), Text(why, overflow="fold"))
    if (hidden := len(groups) - 2 * _ROWS) > 0:
        table.add_row(Text(f"and {hidden} more groups, see --json", style="dim"))
    return table


def _groups(unmapped: "tuple[Unmapped, ...]", names: int) -> "Counter[tuple[str, str]]":
    return Counter((".".join(each.field.split(".")[:names]), each.why) for each in unmapped)

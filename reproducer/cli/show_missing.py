"""Facts that a manifest lacks, as a person reads them: one list, in the order of the manifest's lines."""

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from reproducer.locking.facts import FactsError


def missing_list(error: "FactsError") -> RenderableType:
    """Line, key and why of each fact; those that a lock may carry as `unknown` have a mark of their own."""
    table = Table(box=None, padding=(0, 1, 0, 0), show_header=False)
    table.add_column(width=1)
    table.add_column(justify="right")
    table.add_column(overflow="fold", ratio=2)
    table.add_column(overflow="fold", ratio=3)
    for each in error.missing:
        mark = Text("✗", style="bold red") if each.needed else Text("?", style="yellow")
        table.add_row(mark, Text(str(each.line or "")), Text(each.key, style="bold"), Text(each.why))
    carried = sum(not each.needed for each in error.missing)
    end = Text.assemble("\n", (error.what, "bold red"), f"  (exit code {error.exit_code})")
    if carried:
        end.append(f"\n? {carried} more would stand in the lock as unknown")
    if error.todo:
        end.append(f"\n{error.todo[0].upper()}{error.todo[1:]}.", style="dim")
    return Group(Text(error.where, style="bold"), table, end)

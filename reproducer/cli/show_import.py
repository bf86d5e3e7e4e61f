"""What an import left open, as a person reads it: tables that fit 80 columns."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from reproducer.importing.placing import Placed

_ROWS = 60


def tables(placed: "Placed") -> Iterator[RenderableType]:
    """What has no place in the manifest, then what a person must decide in it."""
    if placed.unmapped:
        rows = [(each.text, each.where, each.why) for each in placed.unmapped]
        yield _table("Without a place in the manifest", ("what", "where", "why"), rows)
    if placed.unknown:
        yield _table("For you to decide", ("key", "why"), [(each.key, each.why) for each in placed.unknown])
    for each in placed.copies:
        yield Text(f"copied {each.source} to {each.path}", overflow="fold")


def _table(title: str, headings: tuple[str, ...], rows: "Sequence[tuple[str, ...]]") -> RenderableType:
    table = Table(box=None, padding=(0, 1), title=title, title_justify="left")
    for at, heading in enumerate(headings):
        table.add_column(heading, overflow="fold", ratio=3 if at == len(headings) - 1 else 2)
    for row in rows[:_ROWS]:
        table.add_row(*(Text(each, overflow="fold") for each in row))
    if (hidden := len(rows) - _ROWS) > 0:
        table.add_row(Text(f"and {hidden} more, see --json", style="dim"))
    return table

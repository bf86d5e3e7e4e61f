"""A report in a terminal: the same content as the page, with tables in place of figures."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from reproducer.report.blocks import WORDS, Block, Commands, Content, Facts, Figure, Listing, Prose, Section, Table

_STYLES = {"passed": "bold green", "failed": "bold red", "unknown": "bold yellow"}
_SIGNS = {"passed": "✓", "failed": "✗", "unknown": "?"}
_SOURCES = {"receipt": ("●", "green"), "imported": ("◐", "magenta"), "claim": ("○", "italic yellow")}


def shown_report(content: Content) -> RenderableType:
    """The report without what is folded on the page."""
    head = Text.assemble(
        (content.title, "bold"), "  ", (f"{_SIGNS[content.word]} {content.word}", _STYLES[content.word])
    )
    parts: list[RenderableType] = [head, Text(content.sentence), Text(""), _facts(content.facts)]
    for section in content.sections:
        parts += _section(section)
    return Group(*parts)


def _section(section: Section) -> Iterator[RenderableType]:
    yield Text("")
    title = Text(section.title, style="bold underline")
    if section.provenance is not None:
        sign, style = _SOURCES[section.provenance]
        word, said = WORDS[section.provenance]
        title.append("  ").append(f"{sign} {word}: {said}", style=f"not bold not underline {style}")
    yield title
    for block in section.blocks:
        yield from _block(block)


def _block(block: Block) -> Iterator[RenderableType]:
    if isinstance(block, Prose):
        yield Text(block.text)
    elif isinstance(block, Listing):
        for each in block.items:
            yield Padding(Text(f"- {each}"), (0, 0, 0, 2))
    elif isinstance(block, Facts):
        yield _facts(block)
    elif isinstance(block, Commands):
        yield Text(block.lead)
        yield Padding(Text(block.text, style="cyan", overflow="fold"), (0, 0, 0, 2))
    elif isinstance(block, Figure):
        yield _table(block.table)
    elif not block.folded:
        yield _table(block)


def _facts(facts: Facts) -> RenderableType:
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for term, said in facts.rows:
        grid.add_row(Text(term), Text(said))
    return grid


def _table(table: Table) -> RenderableType:
    skip = 1 if table.grouped else 0
    grid = Grid(box=None, padding=(0, 1), title=Text(table.caption, style="bold"), title_justify="left")
    for index, heading in enumerate(table.header):
        if index >= skip:
            grid.add_column(Text(heading), justify="right" if index in table.numeric else "left", overflow="fold")
    before = None
    for row in table.rows:
        if skip and row[0] != before:
            grid.add_row(Text(row[0], style="bold"))
            before = row[0]
        grid.add_row(*(Text(each, style="bold red" if each == "NO" else "") for each in row[skip:]))
    return grid

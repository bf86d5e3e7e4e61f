"""What was taken out, as a person reads it."""

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reproducer.sanitize.kinds import KINDS, MEANINGS

if TYPE_CHECKING:
    from reproducer.sanitize.proof import Proven
    from reproducer.sanitize.sanitizing import Result

_FILES = 60


def shown(result: "Result") -> RenderableType:
    """Every file with what was taken out of it, then all of it by kind."""
    table = Table(box=None, padding=(0, 1))
    table.add_column("file", overflow="fold")
    table.add_column("read as")
    table.add_column("taken out", overflow="fold")
    for heading in ("requests", "windows", "numbers"):
        table.add_column(heading, justify="right")
    for each in result.files[:_FILES]:
        name = str(each.output if each.output is not None else each.path)
        taken = ", ".join(f"{count} {kind}" for kind, count in each.removed.items()) or "nothing"
        table.add_row(Text(_visible(name)), each.form, taken, *_compared(each.proven))
    parts: list[RenderableType] = [table]
    if (hidden := len(result.files) - _FILES) > 0:
        parts.append(Text(f"and {hidden} more files, see --json", style="dim"))
    removed = result.removed
    parts += [Text(f"{removed[kind]:>8} {MEANINGS[kind]}") for kind in KINDS if kind in removed]
    parts += [Text(f"left out: {_visible(each.path)}: {each.reason}", style="yellow") for each in result.left_out]
    parts.append(Text(summary(result)))
    return Group(*parts)


def summary(result: "Result") -> str:
    """One line: how much was taken out, and that the numbers are what they were."""
    removed = result.removed
    taken = ", ".join(f"{count} {kind}" for kind, count in removed.items()) or "nothing"
    requests = sum(each.proven.requests for each in result.files)
    windows = sum(each.proven.windows for each in result.files)
    numbers = sum(each.proven.numbers for each in result.files)
    equal = f"equal before and after: {requests} requests, {windows} windows, {numbers} numbers"
    return f"taken out: {taken}; {equal}"


def _compared(found: "Proven") -> tuple[str, str, str]:
    return str(found.requests), str(found.windows), str(found.numbers)


def _visible(text: str) -> str:
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)

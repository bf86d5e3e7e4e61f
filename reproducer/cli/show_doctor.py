"""The checks of a machine as a person reads them: a table of engines, then what does not hold and what to do."""

import re
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reproducer.cli.show import mark
from reproducer.cli.terminal import bytes_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reproducer.doctor.checks import Checked, Rates
    from reproducer.errors import Outcome

_BYTES = re.compile(r"\b([0-9]{1,18}) bytes\b")
_STEPS = {
    "open": "open",
    "round_trip": "trip",
    "many_files": "many",
    "threads": "thr",
    "large": "big",
    "one_descriptor": "one",
    "unaligned": "odd",
    "truncated": "cut",
}


def checks_table(checks: "Sequence[Checked]", result: "Outcome", *, every: bool) -> RenderableType:
    """Single checks one a line, engines one a row, and at the end each that does not hold, with what to do."""
    from reproducer.doctor.checks import word

    cells = _cells(checks)
    inside = {check.id for row in cells.values() for check in row.values()}
    lines = Table(box=None, padding=(0, 1), show_header=False)
    lines.add_column(width=1)
    lines.add_column(overflow="fold")
    lines.add_column(overflow="fold")
    for check in checks:
        if check.id not in inside:
            lines.add_row(mark(check.status), _name(check), _text(check))
    parts: list[RenderableType] = [lines]
    if cells:
        parts += [Text(), _engines(cells)]
    told = [check for check in checks if check.id in inside and (every or check.status in ("failed", "unknown"))]
    if told:
        rest = Table(box=None, padding=(0, 1), show_header=False)
        rest.add_column(width=1)
        rest.add_column(overflow="fold")
        for check in told:
            rest.add_row(mark(check.status), Text.assemble(_name(check), "  ", _text(check)))
        parts += [Text(), rest]
    style = {"passed": "bold green", "failed": "bold red", "unknown": "bold yellow"}[word(result)]
    needed = "" if not any(check.needed for check in checks) else "; * the lock needs it"
    parts.append(Text.assemble("\n", (word(result), style), f"  (exit code {result.exit_code}){needed}"))
    return Group(*parts)


def _cells(checks: "Sequence[Checked]") -> "dict[str, dict[str, Checked]]":
    """The steps of every engine and mode, by `ENGINE.MODE` and step."""
    cells: dict[str, dict[str, Checked]] = {}
    for check in checks:
        first, _, rest = check.id.partition(".")
        cell, _, step = rest.rpartition(".")
        if first == "nixl" and step in _STEPS:
            cells.setdefault(cell, {})[step] = check
    return cells


def _engines(cells: "dict[str, dict[str, Checked]]") -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("NIXL engine", overflow="fold")
    for heading in _STEPS.values():
        table.add_column(heading, justify="center")
    table.add_column("write MiB/s", justify="right")
    table.add_column("read MiB/s", justify="right")
    for cell, steps in cells.items():
        engine, _, mode = cell.partition(".")
        star = "*" if any(check.needed for check in steps.values()) else ""
        rates = steps["large"].rates if "large" in steps else None
        signs = [mark(steps[step].status) if step in steps else Text() for step in _STEPS]
        table.add_row(Text(f"{engine} {mode.replace('o_direct', 'O_DIRECT')}{star}"), *signs, *_rates(rates))
    return table


def _rates(rates: "Rates | None") -> tuple[Text, Text]:
    """Rate, and in brackets how many times the disk's own it is."""
    if rates is None:
        return Text("\N{EN DASH}"), Text("\N{EN DASH}")
    write = f" ({rates.write_ratio:.1f}x)" if rates.write_ratio is not None else ""
    read = f" ({rates.read_ratio:.1f}x)" if rates.read_ratio is not None else ""
    return Text(f"{rates.write_mib_s:.0f}{write}"), Text(f"{rates.read_mib_s:.0f}{read}")


def _name(check: "Checked") -> Text:
    return Text(check.id + ("*" if check.needed else ""), style="bold")


def _text(check: "Checked") -> Text:
    """Why, what was found, and what to do."""
    parts = [check.reason] if check.reason else []
    if check.got:
        found = check.status != "passed" and check.expected
        parts.append(f"expected {check.expected}, got {check.got}" if found else check.got)
    if check.rates is not None:
        parts.append(f"{check.rates.write_mib_s:.0f} MiB/s written, {check.rates.read_mib_s:.0f} read")
    text = Text(_BYTES.sub(lambda found: bytes_text(int(found[1])), "; ".join(parts)), overflow="fold")
    if check.todo and check.status != "passed":
        text.append(f". {check.todo[0].upper()}{check.todo[1:]}", style="dim")
    return text

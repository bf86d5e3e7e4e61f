"""Results as a person reads them: tables that fit 80 columns."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reproducer.cli.terminal import seconds_text

if TYPE_CHECKING:
    from reproducer.documents.measured import Derived, ThresholdResult
    from reproducer.documents.receipts import BuildReceipt, MeasureReceipt
    from reproducer.documents.verdict import Check, Verdict
    from reproducer.reproduce import Reproduction, Step

_MARK = {
    "passed": ("✓", "green"),
    "done": ("✓", "green"),
    "reused": ("✓", "green"),
    "failed": ("✗", "bold red"),
    "skipped": ("\N{EN DASH}", "yellow"),
    "unknown": ("?", "yellow"),
}
_ROWS_OF_DIFFERENCES = 12


def mark(status: str) -> Text:
    """The sign of a status."""
    sign, style = _MARK[status]
    return Text(sign, style=style)


def step_line(step: "Step") -> RenderableType:
    """One step as it ended."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=1)
    grid.add_column(min_width=10)
    grid.add_column(min_width=10, justify="right")
    grid.add_column(overflow="fold")
    detail = Text(step.detail, overflow="fold")
    if step.status == "reused" and step.name != "lock":
        detail.append(" (reused)", style="dim")
    grid.add_row(mark(step.status), Text(step.name, style="bold"), seconds_text(step.seconds), detail)
    return grid


def reproduction_table(result: "Reproduction") -> RenderableType:
    """The end of `penny reproduce`: the verdict, the bundle, and how to check it."""
    return Group(verdict_table(result.verdict, every=False), Text(f"\nbundle  {result.bundle}", overflow="fold"))


def verdict_table(verdict: "Verdict", *, every: bool) -> RenderableType:
    """The checks grouped by aspect; failed, unknown and skipped ones one by one, all of them with `every`."""
    table = Table(box=None, padding=(0, 1), show_header=False)
    table.add_column(width=1)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for aspect in ("inputs", "rebuild", "configuration", "qualification", "signature"):
        checks = [check for check in verdict.checks if check.aspect == aspect]
        if not checks:
            table.add_row(mark("skipped"), Text(aspect, style="bold"), Text("nothing of this was checked", style="dim"))
            continue
        counts = {word: sum(check.status == word for check in checks) for word in _MARK}
        worst = next((word for word in ("failed", "unknown", "skipped") if counts[word]), "passed")
        told = ", ".join(
            f"{counts[word]} {word}" for word in ("passed", "failed", "unknown", "skipped") if counts[word]
        )
        table.add_row(mark(worst), Text(aspect, style="bold"), told)
        for check in checks:
            if every or check.status != "passed":
                table.add_row(mark(check.status), Text(f"  {check.id}"), _check_text(check))
    style = {"passed": "bold green", "failed": "bold red", "unknown": "bold yellow"}[verdict.word]
    return Group(
        table, Text.assemble("\nverdict ", (verdict.word, style), f"  (exit code {verdict.outcome.exit_code})")
    )


def _check_text(check: "Check") -> Text:
    parts = [check.reason] if check.reason else []
    if check.expected or check.got:
        parts.append(", ".join(f"{word} {said}" for word, said in _sides(check)))
    return Text("; ".join(parts), overflow="fold")


def _sides(check: "Check") -> Iterator[tuple[str, str]]:
    """What was expected and what was got, once where both are the same, and neither where it is empty."""
    if check.expected and check.expected != check.got:
        yield "expected", check.expected
    if check.got:
        yield "got", check.got


def build_table(receipt: "BuildReceipt", path: Path) -> RenderableType:
    """Each output with its level; what differs, named."""
    table = Table(box=None, padding=(0, 1))
    table.add_column("output", overflow="fold")
    table.add_column("level")
    table.add_column("sha256")
    for output in receipt.outputs:
        table.add_row(output.filename, output.level, f"{output.sha256[:12]}…")
    lines: list[RenderableType] = [table]
    for output in receipt.outputs:
        for difference in output.differences[:_ROWS_OF_DIFFERENCES]:
            expected, got = difference.expected or "absent", difference.got or "absent"
            text = f"  {difference.where}: expected {expected}, got {got}"
            lines.append(Text(text + (f" ({difference.reason})" if difference.reason else ""), overflow="fold"))
        hidden = len(output.differences) - _ROWS_OF_DIFFERENCES
        if hidden > 0:
            lines.append(Text(f"  and {hidden} more in the receipt"))
    checkpoints = ", ".join(f"{role} {tree.files} files" for role, tree in receipt.checkpoints.items())
    if receipt.adopted is not None:
        lines = [Text(f"adopted and not rebuilt: {receipt.adopted.distributions} distributions are what was frozen")]
        lines.append(Text(f"level {receipt.level}, for nothing was built; checkpoints: {checkpoints}"))
    else:
        lines.append(Text(f"\nlevel {receipt.level}; {len(receipt.packages)} packages; checkpoints: {checkpoints}"))
    lines.append(Text(f"receipt {path}", overflow="fold"))
    return Group(*lines)


def measure_table(receipts: "tuple[MeasureReceipt, ...]") -> RenderableType:
    """Derived values of each measure with their spread and thresholds."""
    from reproducer.measures.apart import names

    table = Table(box=None, padding=(0, 1))
    for heading in ("", "measure", "value", "median", "95 % interval", "n", "threshold"):
        table.add_column(heading, overflow="fold", justify="right" if heading in ("median", "n") else "left")
    labels = names((receipt.measure, receipt.parameters) for receipt in receipts)
    for label, receipt in zip(labels, receipts, strict=True):
        if receipt.status == "skipped":
            table.add_row(mark("skipped"), Text(label), Text(receipt.reason, style="dim"), "", "", "", "")
        bounds = {result.threshold.value: result for result in receipt.thresholds}
        first = True
        for derived in receipt.derived:
            bound = bounds.get(derived.name)
            if bound is None and not first:
                continue
            sign = mark("passed" if bound is None or bound.passed else "failed")
            told = _bound(bound) if bound is not None else ""
            name = Text(label if first else "")
            table.add_row(sign, name, derived.name, _value(derived), _spread(derived), str(len(derived.values)), told)
            first = False
    return table


def _value(derived: "Derived") -> str:
    unit = "" if derived.unit in ("bool", "ratio", "count", "requests") else f" {derived.unit}"
    return f"{_number(derived.value)}{unit}"


def _spread(derived: "Derived") -> str:
    """The interval; of a value that has none, how far its samples reach."""
    spread = derived.spread
    low, high = (derived.minimum, derived.maximum) if spread is None else (spread.low, spread.high)
    return "\N{EN DASH}" if low == high else f"{_number(low)} to {_number(high)}"


def _bound(result: "ThresholdResult") -> str:
    """A threshold; what it came to where it is relative to a receipt."""
    threshold, relative = result.threshold, result.relative
    text = f"{threshold.comparator} {_number(float(threshold.bound))}"
    if threshold.relative_to is None:
        return text
    return (
        f"{text} of a reference"
        if relative is None
        else f"{text} of {_number(relative.reference)}: {relative.conclusion}"
    )


def _number(value: float) -> str:
    """Three significant digits, whole numbers whole."""
    if value == int(value):
        return str(int(value))
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3g}"

"""Namespaces on disk as a person reads them: tables that fit 80 columns."""

import time
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reproducer.cli.show import mark
from reproducer.cli.terminal import bytes_text

if TYPE_CHECKING:
    from reproducer.cache.model import Checked, Collected, Entry, Fault, Listing, Removal, Sealed

_OTHERS = 12


def listing_table(found: "Listing") -> RenderableType:
    """Every namespace with its size, last use and state; what is none, below."""
    table = Table(box=None, padding=(0, 1))
    table.add_column("namespace", overflow="fold", ratio=1)
    for heading in ("size", "on disk", "files"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("last use", no_wrap=True)
    table.add_column("state", overflow="fold")
    for entry in found.entries:
        usage = entry.usage
        table.add_row(
            _name(entry),
            bytes_text(usage.size),
            bytes_text(usage.on_disk),
            str(usage.files),
            time.strftime("%Y-%m-%d", time.localtime(entry.last_use)),
            _state(entry),
        )
    size = sum(entry.usage.on_disk for entry in found.entries)
    count = len(found.entries)
    total = f"{count} namespace{'s' * (count != 1)}, {bytes_text(size)} on disk, in {found.kv}"
    lines: list[RenderableType] = [table] if found.entries else []
    lines.append(Text(("\n" if found.entries else "") + total))
    if found.others:
        lines.append(Text("\nno namespace, never touched:", style="dim"))
        lines += [Text(f"  {_plain(each.name)}: {each.why}") for each in found.others[:_OTHERS]]
        if (hidden := len(found.others) - _OTHERS) > 0:
            lines.append(Text(f"  and {hidden} more, see --json"))
    return Group(*lines)


def _name(entry: "Entry") -> Text:
    text = Text(entry.name)
    for lock in entry.locks:
        said = {
            "uses": "lock",
            "gone": "lock is gone:",
            "other": "lock uses another now:",
            "unreadable": "not readable:",
        }
        text.append(f"\n  {said[lock.state]} {lock.name or lock.path}", style="dim")
    return text


def _plain(name: str) -> str:
    """A name from the disk on one line."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in name)


def _state(entry: "Entry") -> Text:
    if entry.seal_fault:
        text = Text("seal broken", style="bold red")
    elif entry.sealed is None:
        text = Text("not sealed", style="dim")
    else:
        text = Text(f"sealed {entry.sealed}")
    if entry.holder is not None:
        text.append(f"\nin use, pid {entry.holder.pid}" if entry.holder.pid else "\nin use", style="green")
    if not entry.known:
        text.append("\nno known lock", style="yellow")
    return text


def sealed_table(said: "Sealed") -> RenderableType:
    """What was sealed, and what was not and why."""
    good = said.pages - said.damaged
    lines: list[RenderableType] = [
        Text.assemble(
            mark("failed" if said.damaged else "passed" if said.pages else "skipped"),
            f" {good} pages sealed, {bytes_text(said.size)}; {said.added} of them new",
        )
    ]
    if said.accepted:
        lines.append(Text(f"  {said.accepted} had changed and were accepted"))
    if said.changing:
        lines.append(Text(f"  {said.changing} files are changing or not complete, and left out"))
    if said.missing:
        lines.append(Text(f"  {said.missing} that were sealed are gone"))
    if said.damaged:
        lines.append(Text(f"  damaged, with the digest they had: {said.damaged}", style="bold red"))
        lines += _faults(said.faults, said.damaged)
        lines.append(Text("  `penny cache verify` sets them aside"))
    return Group(*lines)


def checked_table(checked: "list[Checked]") -> RenderableType:
    """One line a namespace, and what was set aside."""
    lines: list[RenderableType] = []
    for each in checked:
        bad = each.damaged or each.fault
        sign = mark("failed" if bad else "passed" if each.good else "unknown")
        lines.append(Text.assemble(sign, " ", (each.namespace, "bold")))
        if each.fault:
            lines.append(Text(f"  {each.fault}"))
            continue
        if not each.sealed:
            lines.append(Text(f"  not sealed: {each.unsealed} files unchecked"))
            continue
        parts = [f"{each.good} pages are what was sealed ({bytes_text(each.size)})"]
        parts += [f"{each.damaged} damaged"] if each.damaged else []
        parts += [f"{each.missing} missing"] if each.missing else []
        parts += [f"{each.changing} changing"] if each.changing else []
        parts.append(f"{each.unsealed} unsealed, unchecked")
        lines.append(Text("  " + ", ".join(parts)))
        if each.record:
            moved = each.damaged + each.beside
            lines.append(Text(f"  set aside, {moved} files:", style="bold red"))
            lines += _faults(each.faults, moved)
            lines.append(Text(f"  all of them: {each.record}"))
    return Group(*lines) if lines else Text("no namespace lies here")


def _faults(faults: "list[Fault]", count: int) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for each in faults:
        lines.append(Text(f"    {_plain(each.page)}"))
        lines.append(Text(f"      expected {_short(each.expected)}, got {_short(each.got)}"))
    if count > len(faults):
        lines.append(Text(f"    and {count - len(faults)} more"))
    return lines


def _short(text: str) -> str:
    """A digest by its first digits."""
    head, _, last = text.rpartition(" ")
    return f"{head} {last[:12]}…".strip() if len(last) == 64 else text  # noqa: PLR2004  hex digits of a sha256


def collected_table(done: "Collected") -> RenderableType:
    """What went or would go, what stays and why."""
    table = Table(box=None, padding=(0, 1))
    table.add_column("", no_wrap=True)
    table.add_column("namespace", overflow="fold", ratio=3)
    for heading in ("files", "on disk"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("why", overflow="fold", ratio=2)
    order = {"removed": 0, "evicted": 1, "kept": 2}
    for each in sorted(done.removals, key=lambda each: order[each.fate]):
        counts = (str(each.files), bytes_text(each.on_disk)) if each.fate != "kept" else ("", "")
        table.add_row(_word(each, applied=done.applied), Text(each.namespace, overflow="fold"), *counts, each.why)
    gone = sum(each.on_disk for each in done.removals)
    verb = "freed" if done.applied else "would be freed"
    lines: list[RenderableType] = [table] if done.removals else []
    first = "\n" if done.removals else ""
    stay = "stay" if done.applied else "would stay"
    lines.append(Text(f"{first}{bytes_text(gone)} {verb}, {bytes_text(done.left)} {stay}"))
    finish = "finished" if done.applied else "would finish"
    lines += [Text(f"{finish} {name}") for name in done.finished]
    lines += [Text(f"not reached: {each}", style="bold yellow") for each in done.short]
    if not done.applied:
        lines.append(Text("nothing was changed: `--apply` does it"))
    return Group(*lines)


def _word(each: "Removal", *, applied: bool) -> Text:
    if each.fate == "kept":
        return Text("stays", style="dim")
    words = {"removed": ("would go", "removed"), "evicted": ("pages go", "evicted")}
    return Text(words[each.fate][applied], style="yellow")

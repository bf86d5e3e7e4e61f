"""`penny diff` as a person reads it: a tree, worst first, and three answers at the end."""

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reproducer.difference.diff import Change, Diff
    from reproducer.identity.meaning import Consequence

TOLD: "dict[Consequence, tuple[str, str]]" = {
    "cache-identity": ("another namespace: stored pages are not read", "bold red"),
    "build": ("the runtime must be built again", "red"),
    "behaviour": ("outputs may change", "magenta"),
    "performance": ("numbers may change, bytes do not", "yellow"),
    "operational": ("running it changes, results do not", "cyan"),
    "cosmetic": ("nothing changes", "dim"),
}
_DIGEST = 64
_SHOWN = 12
_MOST_LINES = 60


def shown(diff: "Diff") -> RenderableType:
    """Every change under its consequence and reason, then what they mean together."""
    parts: list[RenderableType] = []
    for consequence, count, by_reason in grouped(diff):
        told, style = TOLD[consequence]
        tree = Tree(
            wrapped(consequence, style).append(f" ({count}) {told}", style="not bold default"), guide_style="dim"
        )
        for reason, same in by_reason.items():
            branch = tree.add(wrapped(reason, "italic"))
            for change in same:
                _detail(branch.add(_line(change)), change)
        parts.append(tree)
    return Group(*parts, _summary(diff))


def grouped(diff: "Diff") -> "Iterator[tuple[Consequence, int, dict[str, list[Change]]]]":
    """Each consequence, worst first, with how many changes have it, and the changes by their reason."""
    for consequence, changes in groupby(diff.changes, key=lambda change: change.consequence):
        by_reason: dict[str, list[Change]] = {}
        for change in changes:
            by_reason.setdefault(change.reason, []).append(change)
        yield consequence, sum(map(len, by_reason.values())), by_reason


def wrapped(text: str, style: str = "") -> Text:
    """Text that is folded and never cut, whatever the console says; its dress is its own, no markup is read."""
    return Text(printable(text), style=style, overflow="fold", no_wrap=False)


def value_text(value: Any) -> str:
    """A value as a lock writes it; a digest by its first digits."""
    if isinstance(value, str) and len(value) == _DIGEST and not value.strip("0123456789abcdef"):
        return f"{value[:_SHOWN]}…"
    return printable(json.dumps(value, ensure_ascii=False))


def printable(text: str) -> str:
    """Text from a lock as it may reach a terminal: nothing in it moves the cursor or turns the line round."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def _line(change: "Change") -> Text:
    line = wrapped(change.path, "bold")
    if change.before is None:
        return line.append(" added ", style="green").append(value_text(change.after), style="not bold")
    if change.after is None:
        return line.append(" removed ", style="red").append(value_text(change.before), style="not bold")
    before, after = value_text(change.before), value_text(change.after)
    if before == after and change.before != change.after:  # two digests with the same first digits
        before, after = str(change.before), str(change.after)
    return line.append(f" {before} → {after}", style="not bold")


def _detail(branch: Tree, change: "Change") -> None:
    """What the values alone do not say; of a long text the beginning, and how much follows."""
    lines = change.detail.split("\n") if change.detail else []
    for line in lines[:_MOST_LINES]:
        branch.add(wrapped(line, {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")))
    if len(lines) > _MOST_LINES:
        branch.add(wrapped(f"{len(lines) - _MOST_LINES} more lines, all of them with --json", "yellow"))


def _summary(diff: "Diff") -> Text:
    text = wrapped("")
    if not diff.changes:
        text.append("no change: the two locks mean the same\n", style="bold green")
    else:
        text.append("\n")
    if diff.same_namespace:
        text.append("namespace  ").append("same", style="green").append(f", {diff.after.name}\n")
    else:
        text.append("namespace  ").append("differs", style="bold red")
        text.append(f", {diff.before.name} → {diff.after.name}\n")
    text.append("rebuild    ").append("yes\n" if diff.rebuild else "no\n", style="bold" if diff.rebuild else "")
    text.append("evidence   ")
    text.append(f"no longer speaks: {', '.join(diff.invalidates)}" if diff.invalidates else "nothing is taken away")
    for reason in diff.not_compared:
        text.append(f"\nnot compared: {printable(reason)}", style="yellow")
    return text

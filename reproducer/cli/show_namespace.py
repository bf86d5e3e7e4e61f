"""`penny namespace --explain` as a person reads it: every factor, then everything left out, and why."""

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from reproducer.cli.show_diff import value_text, wrapped

if TYPE_CHECKING:
    from reproducer.identity.factors import Factor
    from reproducer.identity.meaning import Meaning
    from reproducer.identity.namespace import Namespace


def shown(namespace: "Namespace") -> RenderableType:
    """Name and digest, the factors by the part of the lock they come from, and the neutral facts by reason."""
    head = wrapped(namespace.name, "bold").append(f"\n{namespace.digest}\n", style="not bold")
    head.append("sha256 over the factors below", style="not bold dim")
    return Group(head, _factors(namespace), _neutral(namespace))


def _factors(namespace: "Namespace") -> Tree:
    tree = Tree(Text.assemble(("factors", "bold"), f" ({len(namespace.factors)})"), guide_style="dim")
    branches: dict[str, Tree] = {}
    for name, factor in sorted(namespace.factors.items()):
        root, _, rest = name.partition(".")
        if root not in branches:
            branches[root] = tree.add(Text(root, style="bold cyan"))
        branches[root].add(_factor(rest or root, factor))
    return tree


def _factor(name: str, factor: "Factor") -> Text:
    text = wrapped(name)
    if factor.kind == "unknown":
        return text.append(" unknown", style="yellow").append(": no other lock shares this namespace", style="dim")
    text.append(" = ", style="dim").append(value_text(factor.plain()), style="bold")
    return text.append(f" {factor.kind}", style="dim")


def _neutral(namespace: "Namespace") -> Tree:
    tree = Tree(Text.assemble(("neutral", "bold"), f" ({len(namespace.neutral)})"), guide_style="dim")
    by_meaning: dict[Meaning, list[str]] = {}
    for name, meaning in sorted(namespace.neutral.items()):
        by_meaning.setdefault(meaning, []).append(name)
    for meaning, names in sorted(by_meaning.items()):
        branch = tree.add(wrapped("").append(meaning.consequence, style="cyan").append(f": {meaning.reason}"))
        for name in names:
            branch.add(wrapped(name))
    return tree

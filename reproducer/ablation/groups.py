"""What two locks differ in, in groups that are moved from A to B whole: a lock takes each of them from one side.

What cannot change what is measured, and what is asked of the server, is held as in A: otherwise two runs of the plan
would not measure one thing.
"""

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from reproducer.documents.base import shown
from reproducer.documents.lock import Lock
from reproducer.errors import NotCheckedError, UsageError

Content: TypeAlias = dict[str, Any]
_HELD = ("format", "name", "manifest", "hardware", "qualification")
_LISTS = {"components": "name", "environments": "name", "checkpoints": "role"}
_STORAGE = re.compile(r"hicache|storage|nixl|lmcache|kv[-_]transfer|kv[-_]offload|offload", re.IGNORECASE)


@dataclass(frozen=True)
class Piece:
    """One key of a table, or one entry of a list, of a lock's content."""

    table: tuple[str, ...]
    key: str

    @property
    def name(self) -> str:
        """How a person reads it."""
        return ".".join((*self.table, self.key))


@dataclass(frozen=True)
class Group:
    """Pieces that go together."""

    name: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Between:
    """Two locks and the groups in which they differ.

    Attributes:
        held: what differs and stays as in A in every lock of the plan.
    """

    first: Lock
    second: Lock
    groups: tuple[Group, ...]
    held: tuple[str, ...]

    def mixed(self, row: tuple[bool, ...]) -> Content:
        """The content of a lock with these groups as in B and all others as in A."""
        content, other = copy.deepcopy(self.first.content()), self.second.content()
        for group, moved in zip(self.groups, row, strict=True):
            for piece in group.pieces if moved else ():
                _move(content, other, piece)
        if all(row):  # entries of lists stand in the order of B
            for key, identity in _LISTS.items():
                order = [each[identity] for each in other[key]]
                content[key].sort(key=lambda each, order=order, identity=identity: order.index(each[identity]))
        return content


def between(first: Lock, second: Lock, *, apart: bool = False) -> Between:
    """The groups in which two locks differ.

    Args:
        first: A.
        second: B.
        apart: whether every launch argument is a group of its own.

    Raises:
        UsageError: nothing that could be moved differs.
        NotCheckedError: no lock lies between them: another platform, another engine, a runtime that was not built.
    """
    for name, one, two in (
        ("platform", first.platform, second.platform),
        ("engine", first.engine.kind, second.engine.kind),
    ):
        if one != two:
            raise NotCheckedError(
                f"no lock lies between two with another {name}", why=f"A has {shown(one)}, B has {shown(two)}"
            )
    if first.adopted is not None or second.adopted is not None:
        raise NotCheckedError("no lock lies between frozen locks", why="an adopted runtime cannot be built in part")
    ours, theirs = first.content(), second.content()
    found: dict[str, list[Piece]] = {}
    idle = _without_effect(first, second)
    moved = tuple(_differing(ours, theirs))
    for piece in moved:
        if idle(piece):
            continue
        found.setdefault(_group(piece, first, second, apart=apart), []).append(piece)
    if not found:
        raise UsageError("the two locks differ in nothing that a lock between them could take from either")
    held = tuple(key for key in _HELD if ours.get(key) != theirs.get(key)) + tuple(
        piece.name for piece in moved if idle(piece)
    )
    return Between(first, second, tuple(Group(name, tuple(found[name])) for name in sorted(found)), held)


def _without_effect(first: Lock, second: Lock) -> Callable[[Piece], bool]:
    """Whether no number follows from a piece: every change in it is operational or cosmetic."""
    from reproducer.difference.diff import diff

    changes = [(each.path, each.consequence) for each in diff(first, second).changes]

    def idle(piece: Piece) -> bool:
        within = [what for path, what in changes if path == piece.name or path.startswith(f"{piece.name}.")]
        return bool(within) and all(what in ("operational", "cosmetic") for what in within)

    return idle


def _differing(ours: Content, theirs: Content) -> Iterator[Piece]:
    for key in dict.fromkeys((*ours, *theirs)):
        if key in _HELD or key == "launch":
            continue
        if key in _LISTS:
            yield from _pieces((key,), _by(ours[key], _LISTS[key]), _by(theirs[key], _LISTS[key]))
        elif ours.get(key) != theirs.get(key):
            yield Piece((), key)
    one, two = ours["launch"], theirs["launch"]
    for key in dict.fromkeys((*one, *two)):
        if key in ("arguments", "environment", "effective", "files"):
            yield from _pieces(("launch", key), one.get(key) or {}, two.get(key) or {})
        elif one.get(key) != two.get(key):
            yield Piece(("launch",), key)


def _pieces(table: tuple[str, ...], ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[Piece]:
    for key in dict.fromkeys((*ours, *theirs)):
        same = key in ours and key in theirs and repr(ours[key]) == repr(theirs[key])  # 1 is not true
        if not same:
            yield Piece(table, key)


def _by(entries: list[Content], identity: str) -> dict[str, Content]:
    return {each[identity]: each for each in entries}


def _group(piece: Piece, first: Lock, second: Lock, *, apart: bool) -> str:
    table = piece.table[-1] if piece.table else ""
    of: Mapping[str, Callable[[], str]] = {
        "": lambda: "engine source" if piece.key == "engine" else "toolchain and recipe",
        "components": lambda: _of_component(piece.key, first, second),
        "environments": lambda: _of_environment(piece.key, first, second),
        "checkpoints": lambda: f"checkpoint {piece.key}",
        "arguments": lambda: _of_argument(piece.key, first, apart=apart),
        "effective": lambda: _of_effective(piece.key, first, second, apart=apart),
        "files": lambda: "storage",
        "environment": lambda: "storage" if _STORAGE.search(piece.key) else "environment variables",
        "launch": lambda: "engine source" if piece.key in ("module", "program") else "launch arguments",
    }
    return of[table]()


def _of_component(name: str, first: Lock, second: Lock) -> str:
    return "engine source" if name in (first.engine.component, second.engine.component) else f"component {name}"


def _of_environment(name: str, first: Lock, second: Lock) -> str:
    """Packages that build a component go with it: what comes out of it is known together with them alone."""
    for lock in (first, second):
        for component in lock.components:
            if component.build_environment == name:
                engine = component.name == lock.engine.component
                return "engine source" if engine else f"component {component.name}"
        for checkpoint in lock.checkpoints:
            if checkpoint.conversion is not None and checkpoint.conversion.environment == name:
                return f"checkpoint {checkpoint.role}"
    return "packages"


def _of_argument(name: str, lock: Lock, *, apart: bool) -> str:
    from reproducer.identity.tables import table_of

    if apart:
        return f"argument {table_of(lock.engine.kind).canonical(name)}"
    return "storage" if _STORAGE.search(name) else "launch arguments"


def _of_effective(name: str, first: Lock, second: Lock, *, apart: bool) -> str:
    """An effective value goes with the argument that sets it."""
    from reproducer.identity.classes import effective_field
    from reproducer.identity.tables import table_of

    canonical = table_of(first.engine.kind).canonical
    one, two = ({canonical(key): value for key, value in x.launch.arguments.items()} for x in (first, second))
    moved = [key for key in dict.fromkeys((*one, *two)) if one.get(key) != two.get(key)]
    owner = next((key for key in moved if effective_field(first.engine.kind, key) == name), None)
    if owner is not None:
        return _of_argument(owner, first, apart=apart)
    return "storage" if _STORAGE.search(name) else "launch arguments"


def _move(content: Content, other: Content, piece: Piece) -> None:
    """Take one piece from the other side, or away where that has none."""
    if piece.table and piece.table[0] in _LISTS:
        (key,), identity = piece.table, _LISTS[piece.table[0]]
        theirs = _by(other[key], identity).get(piece.key)
        entries = [each for each in content[key] if each[identity] != piece.key or theirs is not None]
        places = [place for place, each in enumerate(entries) if each[identity] == piece.key]
        if places and theirs is not None:
            entries[places[0]] = theirs
        elif theirs is not None:
            entries.append(theirs)
        content[key] = entries
        return
    ours, theirs_table = content, other
    for key in piece.table:
        ours = ours.setdefault(key, {})
        theirs_table = theirs_table.get(key) or {}
    if piece.key in theirs_table:
        ours[piece.key] = copy.deepcopy(theirs_table[piece.key])
    else:
        ours.pop(piece.key, None)
    if piece.table[-1:] == ("files",) and not ours:
        content["launch"].pop("files", None)

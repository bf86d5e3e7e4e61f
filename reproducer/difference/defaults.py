"""Defaults of the engine that moved: what neither lock names, and what the other engine would do where one names it.

Both lists come from the files beside the locks (`engine.arguments`). A lock that names an argument has nothing to do
with its default; where only one of the two names it, the default of the other side is told beside the change.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from reproducer.documents.lock import Lock
from reproducer.documents.opened import OpenedLock
from reproducer.errors import PennyError
from reproducer.identity.classes import rule
from reproducer.identity.factors import Path
from reproducer.identity.meaning import Meaning
from reproducer.identity.tables import table_of

if TYPE_CHECKING:
    from reproducer.documents.arguments import Argument, ArgumentSchema, Variable

Told: TypeAlias = tuple[Any, Any, Meaning]

_WHAT = "defaults of the engine's arguments"
_NEW = Meaning("cosmetic", "new in this engine, off unless named")
_GONE = Meaning("cosmetic", "gone from this engine, off unless named")
_UNSET = "unset by default"
_ABSENT = "the engine has no such setting"
_PLACES = {"arguments": "defaults", "environment": "variable_defaults"}


@dataclass(frozen=True)
class Defaults:
    """What moved.

    Attributes:
        changes: before, after and meaning by path (`launch.defaults.NAME`, `launch.variable_defaults.NAME`).
        details: what the values alone do not say, by the path of a change.
        not_compared: why nothing could be said.
    """

    changes: Mapping[Path, Told]
    details: Mapping[Path, str]
    not_compared: tuple[str, ...] = ()


def default_changes(
    a: Lock | OpenedLock, b: Lock | OpenedLock, changed: Mapping[Path, Any], *, same_namespace: bool
) -> Defaults:
    """Compare the defaults of two engines.

    Args:
        a: the lock before; only an opened one has files beside it.
        b: the lock after.
        changed: the changes between the two locks, by path.
        same_namespace: whether the two share one: then the engine's source is the same, and so are its defaults.
    """
    one, two = (each.lock if isinstance(each, OpenedLock) else each for each in (a, b))
    lists = one.engine.arguments, two.engine.arguments
    moved = (lists[0] and lists[0].sha256) != (lists[1] and lists[1].sha256)
    alone = [
        path
        for path, (before, after, _) in changed.items()
        if path[0] == "launch" and path[1] in _PLACES and (before is None or after is None)
    ]
    engine = ("components", one.engine.component, "source")
    other_source = any(path[:3] == engine for path in changed)
    if not moved and not (alone and lists[0]) and not (other_source and lists[0] is None):
        return Defaults({}, {})
    if one.engine.kind != two.engine.kind:
        return Defaults({}, {}, (f"{_WHAT}: {one.engine.kind} and {two.engine.kind} share none",))
    read = _read(a, b)
    if isinstance(read, str):
        return Defaults({}, {}, (f"{_WHAT}: {read}",))
    details = {path: text for path in alone if (text := _beside(path, changed[path], read)) is not None}
    if moved and same_namespace:
        why = "the two lists differ although the engines are the same, so one was not read from its engine"
        return Defaults({}, details, (f"{_WHAT}: {why}",))
    changes: dict[Path, Told] = {}
    for path, told, text in _moved(read, (one, two)):
        changes[path] = told
        if text:
            details[path] = text
    return Defaults(changes, details)


def _read(a: Lock | OpenedLock, b: Lock | OpenedLock) -> "tuple[ArgumentSchema, ArgumentSchema] | str":
    """Both lists, or why there are not both."""
    found = []
    if not (isinstance(a, OpenedLock) and isinstance(b, OpenedLock)):
        return "only the locks were given, not the files beside them"
    if a.lock.engine.arguments is None and b.lock.engine.arguments is None:
        return "neither lock lists them"
    for which, opened in (("first", a), ("second", b)):
        try:
            schema = opened.arguments()
        except PennyError as error:
            return str(error)
        if schema is None:
            return f"the {which} lock lists none"
        if schema.engine != opened.lock.engine.kind:
            return f"the list of the {which} lock is one of {schema.engine}"
        found.append(schema)
    return found[0], found[1]


def _moved(
    read: "tuple[ArgumentSchema, ArgumentSchema]", locks: tuple[Lock, Lock]
) -> Iterator[tuple[Path, Told, str | None]]:
    """Each default that is another one, or there on one side only, and that neither lock overrides."""
    for part, place in _PLACES.items():
        before, after = (_entries(schema, part) for schema in read)
        for name in {**before, **after}:
            old, new = before.get(name), after.get(name)
            if _same(old, new) or any(_names(lock, part, each) for lock in locks for each in (old, new) if each):
                continue
            meaning = _meaning(part, name, (old, new), locks)
            told = (None if old is None else _value(old), None if new is None else _value(new), meaning)
            yield ("launch", place, name), told, _absence(old, new)


def _entries(schema: "ArgumentSchema", part: str) -> "dict[str, Argument | Variable]":
    if part == "arguments":
        canonical = table_of(schema.engine).canonical
        # what the engine ignores is as good as gone
        return {canonical(each.name): each for each in schema.arguments if not each.ignored}
    return {each.name: each for each in schema.variables}


def _same(old: "Argument | Variable | None", new: "Argument | Variable | None") -> bool:
    if old is None or new is None:
        return old is new
    return repr((old.default, _required(old))) == repr(
        (new.default, _required(new))
    )  # 1, 1.0 and true are three values


def _names(lock: Lock, part: str, entry: "Argument | Variable") -> bool:
    """Whether a launch names a setting, under any of its names."""
    if part == "environment":
        return entry.name in lock.launch.environment
    canonical = table_of(lock.engine.kind).canonical
    names = {entry.name, *getattr(entry, "aliases", ())}
    names |= {f"no-{name}" for name in names}
    return any({name, canonical(name)} & names for name in lock.launch.arguments)


def _meaning(
    part: str,
    name: str,
    sides: "tuple[Argument | Variable | None, Argument | Variable | None]",
    locks: tuple[Lock, Lock],
) -> Meaning:
    """What the move costs: what the setting costs, unless it does nothing where nobody names it."""
    old, new = sides
    there = new if old is None else old
    if (old is None or new is None) and there is not None and _off(there):
        return _NEW if old is None else _GONE
    field = str(getattr(there, "field", ""))  # a variable has none
    values = [lock.launch.effective.get(field) for lock in locks]
    if None not in values and repr(values[0]) == repr(values[1]):
        return Meaning("operational", f"the engine's default moved; the effective value {field} stands for it")
    found = rule(("launch", part, name), locks[1].engine.kind)
    what = "moved" if old is not None and new is not None else "is new" if old is None else "is gone"
    return Meaning(found.consequence, f"the engine's default {what}: {found.reason}")


def _off(entry: "Argument | Variable") -> bool:
    """Whether the setting does nothing where nobody names it, as far as its default tells."""
    default = entry.default
    return not _required(entry) and default.expression is None and (default.value is None or default.value is False)


def _required(entry: "Argument | Variable") -> bool:
    return bool(getattr(entry, "required", False))


def _value(entry: "Argument | Variable") -> Any:
    """A default as plain data; one that is computed by the text that computes it."""
    if _required(entry):
        return {"required": True}
    return {"expression": entry.default.expression} if entry.default.expression is not None else entry.default.value


def _absence(old: "Argument | Variable | None", new: "Argument | Variable | None") -> str | None:
    """Which nothing it is: no value, or no such setting."""
    said = []
    for word, entry in (("before", old), ("after", new)):
        if entry is None:
            said.append(f"{word}: {_ABSENT}")
        elif _value(entry) is None:
            said.append(f"{word}: {_UNSET}")
    return "\n".join(said) or None


def _beside(path: Path, told: Told, read: "tuple[ArgumentSchema, ArgumentSchema]") -> str | None:
    """What holds on the side that does not name a setting which the other one names."""
    import json

    word, schema = ("before", read[0]) if told[0] is None else ("after", read[1])
    entry = _entries(schema, path[1]).get(path[2])
    if entry is None:
        return f"{word}: {_ABSENT}"
    value = _value(entry)
    return (
        f"{word}: {_UNSET}"
        if value is None
        else f"{word}: the engine's default {json.dumps(value, ensure_ascii=False)}"
    )

"""Why a lock would change: every fact that differs, with its key, before and after."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reproducer.documents.base import shown
from reproducer.documents.lock import Lock
from reproducer.documents.sources import Artefact

_NAMES = ("name", "path", "filename", "id", "value")


def differences(before: Lock, after: Lock) -> tuple[str, ...]:
    """One sentence for each fact that differs: key, before and after."""
    old, new = dict(_facts(before.content())), dict(_facts(after.content()))
    found = []
    for key in dict.fromkeys((*old, *new)):
        if key not in new:
            found.append(f"{key}: {shown(old[key])} is dropped")
        elif key not in old:
            found.append(f"{key}: {shown(new[key])} is new")
        elif not _same(old[key], new[key]):
            found.append(f"{key}: {shown(old[key])} becomes {shown(new[key])}")
    return tuple(found)


def package_differences(where: str, before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """One sentence for each package of an environment whose version differs."""
    found = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old != new:
            change = f"{old} becomes {new}" if old and new else f"{old} is dropped" if old else f"{new} is new"
            found.append(f"{where}: {name}: {change}")
    return tuple(found)


def moved_wheels(
    where: str, before: Mapping[str, Sequence[Artefact]], after: Mapping[str, Sequence[Artefact]]
) -> tuple[str, ...]:
    """One sentence for each wheel that has other bytes under the same name: an index replaced it."""
    old = {wheel.filename: wheel.sha256 for wheels in before.values() for wheel in wheels}
    new = {wheel.filename: wheel.sha256 for wheels in after.values() for wheel in wheels}
    return tuple(
        f"{where}: {name}: sha256 {old[name]} becomes {new[name]} under the same name"
        for name in sorted(old.keys() & new.keys())
        if old[name] != new[name]
    )


def _same(before: object, after: object) -> bool:
    """Equal in a lock's canonical form, where true is not 1 but 2 is 2.0."""
    return before == after and isinstance(before, bool) == isinstance(after, bool)


def _facts(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf with its dotted key; entries of lists go by their name where they have one."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _facts(inner, f"{key}.{name}" if key else name)
        if not value:
            yield key, {}
    elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        seen: dict[str, int] = {}
        for each in value:
            name = next((str(each[word]) for word in _NAMES if word in each), "")
            seen[name] = seen.get(name, 0) + 1
            label = name if seen[name] == 1 else f"{name}#{seen[name]}"
            yield from _facts(each, f"{key}[{label}]")
    else:
        yield key, value

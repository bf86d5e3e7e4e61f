"""Why two files are not the same bytes, in words: what a person would look for first, by name."""

import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from reproducer.binaries.content import elf_parts, entry_parts
from reproducer.binaries.device_code import normal_hash, normal_name
from reproducer.binaries.elf import Elf, Section, is_debug, is_elf, read_elf
from reproducer.binaries.fatbin import SECTIONS, device_code, in_order
from reproducer.binaries.reading import MalformedError, Window
from reproducer.binaries.volatile import Volatile
from reproducer.binaries.wheel_content import line_difference
from reproducer.documents.base import shown
from reproducer.documents.built import Difference

_LARGEST_SEARCHED = 64 << 20
_LARGEST_TEXT = 1 << 20
_MOST_NAMED = 6
_TEXTS = re.compile(rb"[\x20-\x7e]{6,}")
_VERSION = re.compile(rb"\d+\.\d+")
_OBJECT = 1


def explain(where: str, first: Window, second: Window, *, build_paths: Sequence[Path] = ()) -> tuple[Difference, ...]:
    """What differs between two files that are not the same bytes; at least one difference.

    Args:
        where: their name; each difference stands there or at `name: aspect`.
        first: the one before.
        second: the one after.
        build_paths: folders they were built in.
    """
    try:
        both = is_elf(first) and is_elf(second)
        found = list(_elf(first, second, build_paths) if both else _plain(first, second, build_paths))
    except MalformedError as error:
        found = [Difference(where="", reason=f"cannot be looked into: it {error}")]
    if not found:
        sizes = (f"{first.size} bytes", f"{second.size} bytes")
        found = [Difference(where="", expected=sizes[0], got=sizes[1], reason="other bytes")]
    name = where or "the file"
    return tuple(each.model_copy(update={"where": f"{name}: {each.where}" if each.where else name}) for each in found)


def _elf(first: Window, second: Window, build_paths: Sequence[Path]) -> Iterator[Difference]:
    one, two = read_elf(first), read_elf(second)
    if one.build_id != two.build_id:
        yield Difference(where="build id", expected=one.build_id, got=two.build_id)
    if one.comment != two.comment:
        yield _sides("compiler version", "; ".join(one.comment), "; ".join(two.comment))
    yield from _architectures(first, second)
    if debug := _debug(one, two):
        yield Difference(where="debug sections", reason=_named(debug))
    yield from _paths(first, second, build_paths)
    yield from _random_names(first, second)
    if _symbols(one) != _symbols(two):
        yield Difference(
            where="symbol table", reason="other symbols, or in another order; nothing reads it at run time"
        )
    yield from _sections(one, two, build_paths)


def _architectures(first: Window, second: Window) -> Iterator[Difference]:
    lists = []
    for window in (first, second):
        found = device_code(window)
        lists.append("none" if found is None else ", ".join(in_order({each.architecture for each in found})))
    if lists[0] != lists[1]:
        yield Difference(where="architectures", expected=lists[0], got=lists[1])


def _debug(one: Elf, two: Elf) -> list[str]:
    """Debug sections that only one has, or that differ."""
    sides = []
    for elf in (one, two):
        sections = (each for each in elf.sections if is_debug(each.name))
        sides.append({each.name: normal_hash(each.content, Volatile(names=False)) for each in sections})
    return sorted({name for name in {*sides[0], *sides[1]} if sides[0].get(name) != sides[1].get(name)})


def _paths(first: Window, second: Window, build_paths: Sequence[Path]) -> Iterator[Difference]:
    """Which build folder each names, by its number: what is written down about a build must not hold paths."""
    named = [
        ", ".join(
            f"build folder {number}" for number, each in enumerate(build_paths, 1) if _holds(window, os.fsencode(each))
        )
        for window in (first, second)
    ]
    if named[0] != named[1]:
        yield _sides("build path", *named)


def _holds(window: Window, text: bytes) -> bool:
    kept = b""
    for piece in window.pieces():
        if text in kept + piece:
            return True
        kept = piece[-len(text) :]
    return False


def _random_names(first: Window, second: Window) -> Iterator[Difference]:
    """Names by nvcc with random digits that stand in one only."""
    sides = [_names(window) for window in (first, second)]
    only = [sorted(sides[0] - sides[1]), sorted(sides[1] - sides[0])]
    if only[0] or only[1]:
        yield _sides("nvcc's random names", *(_named(each) for each in only))


def _names(window: Window) -> set[str]:
    if window.size > _LARGEST_SEARCHED:
        return set()
    return {name.decode() for name in Volatile.found(window.read(0, window.size))}


def _symbols(elf: Elf) -> list[str]:
    tables = [each for each in elf.sections if each.name in (".symtab", ".strtab")]
    return [normal_hash(each.content, Volatile(names=False)) for each in tables if elf.kind != _OBJECT]


def _sections(one: Elf, two: Elf, build_paths: Sequence[Path]) -> Iterator[Difference]:
    """What is left after everything that does not count was replaced."""
    volatile = Volatile.of(build_paths)
    sides: list[dict[str, str]] = []
    for elf in (one, two):
        parts: dict[str, str] = {}
        for name, *rest in elf_parts(elf, volatile, partial(entry_parts, volatile=volatile)):
            key = name if name not in parts else f"{name} ({len(parts)})"
            parts[key] = str(rest)
        sides.append(parts)
    for name in sorted({*sides[0], *sides[1]}):
        if sides[0].get(name) == sides[1].get(name):
            continue
        before, after = (_section(elf, name, volatile) for elf in (one, two))
        expected, got = (None if each is None else f"{each.size} bytes" for each in (before, after))
        reason = _texts(before, after, volatile)
        yield Difference(where=f"section {name}", expected=expected, got=got, reason=reason)


def _section(elf: Elf, name: str, volatile: Volatile) -> Section | None:
    return next((each for each in elf.sections if normal_name(each.name, volatile) == name), None)


def _texts(first: Section | None, second: Section | None, volatile: Volatile) -> str:
    """Readable texts that stand in one section only; versions first."""
    if (
        first is None
        or second is None
        or first.name in SECTIONS
        or max(first.content.size, second.content.size) > _LARGEST_SEARCHED
    ):
        return ""
    data = (volatile.normal(each.content.read(0, each.content.size)) for each in (first, second))
    before, after = (set(_TEXTS.findall(each)) for each in data)
    words = []
    for sign, only in (("without", before - after), ("with", after - before)):
        ordered = sorted(only, key=lambda text: (_VERSION.search(text) is None, text))
        if ordered:
            words.append(f"{sign} {_named([shown(each.decode()) for each in ordered])}")
    return "; ".join(words)


def _plain(first: Window, second: Window, build_paths: Sequence[Path]) -> Iterator[Difference]:
    yield from _architectures(first, second)
    yield from _paths(first, second, build_paths)
    if device_code(first) is not None:
        yield from _random_names(first, second)
    if max(first.size, second.size) > _LARGEST_TEXT:
        return
    volatile = Volatile.of(build_paths)
    data = [volatile.normal(window.read(0, window.size)) for window in (first, second)]
    if any(b"\0" in each for each in data):
        return
    try:
        before, after = (each.decode("utf-8") for each in data)
    except UnicodeDecodeError:
        return
    if before == after:
        return
    if sorted(before.splitlines()) == sorted(after.splitlines()):
        yield Difference(where="", reason="the same lines in another order")
    else:
        yield Difference(where="", reason=line_difference(before, after))


def _sides(where: str, expected: str, got: str) -> Difference:
    return Difference(where=where, expected=expected or None, got=got or None)


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more

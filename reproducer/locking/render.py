"""A lock as TOML text: the order of the document's own keys, one fact a line, the same bytes every time."""

from typing import Any

import tomlkit
from tomlkit.items import AoT, Table

from reproducer.documents.lock import Lock
from reproducer.documents.toml import parse_toml

HEADER = (
    "Written by `penny lock`; do not edit. Change the manifest and lock again.",
    "The lock digest is the sha256 of this content as RFC 8785 JSON: layout and comments do not count.",
)
FROZEN_HEADER = (
    "Written by `penny freeze` from a runtime that was found running; nothing in it was built.",
    HEADER[1],
)
_LEFT_OUT_EMPTY = frozenset({"environment", "parameters", "variables"})
_FREE_TABLES = frozenset({"arguments", "environment", "effective", "variables", "parameters"})


def render_lock(lock: Lock, *, header: tuple[str, ...] = HEADER) -> bytes:
    """The UTF-8 bytes of `penny.lock.toml`.

    Raises:
        ValueError: the text does not read back as the same content; a fault of penny.
    """
    content = lock.content()
    document = tomlkit.document()
    for line in header:
        document.add(tomlkit.comment(line))
    document.add(tomlkit.nl())
    _fill(document, content)
    text = tomlkit.dumps(document)
    read = Lock.from_data(parse_toml(text, where="the lock"), where="the lock", source=text)
    if read.digest != lock.digest:
        msg = "the written lock does not read back as the same content"
        raise ValueError(msg)
    return text.encode()


def _fill(table: tomlkit.TOMLDocument | Table, content: dict[str, Any], *, free: bool = False) -> None:
    """Plain values first, then tables and arrays of tables, as TOML asks for."""
    keys = sorted(content) if free else sorted(content, key=lambda key: key not in ("kind", "format"))
    for key in keys:
        if not isinstance(content[key], dict) and not _is_tables(content[key]):
            table.add(key, _value(content[key]))
    for key in keys:
        if content[key] == {} and key in _LEFT_OUT_EMPTY:
            continue
        if isinstance(content[key], dict):
            inner = tomlkit.table()
            _fill(inner, content[key], free=key in _FREE_TABLES)
            table.add(key, inner)
        elif _is_tables(content[key]):
            table.add(key, _tables(content[key]))


def _tables(entries: list[dict[str, Any]]) -> AoT:
    array = tomlkit.aot()
    for entry in entries:
        inner = tomlkit.table()
        _fill(inner, entry)
        array.append(inner)
    return array


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _value(value: Any) -> Any:
    """A value as TOML writes it; long lists get a line for each entry."""
    if not isinstance(value, list):
        return value
    array = tomlkit.array()
    array.extend(value)
    return array.multiline(multiline=len(value) > 1)

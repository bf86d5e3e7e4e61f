"""Reading a harness's file: a plain file of bounded size, then JSON or one JSON object a line.

Harnesses write `NaN` and `Infinity`, which are not JSON. They are kept as what they are and are numbers nowhere.
"""

import json
import os
import stat
from pathlib import Path
from typing import Any

from reproducer.documents.base import shown
from reproducer.documents.bounds import refuse_deep, refuse_many
from reproducer.errors import InvalidDocumentError, UnsafeInputError, UsageError

LARGEST = 64 << 20
MOST_VALUES = 4_000_000
MOST_LINES = 50_000


class NotFinite(str):
    """`NaN`, `Infinity` or `-Infinity`, where a harness wrote one as a number."""

    __slots__ = ()


def read_original(path: Path) -> bytes:
    """The bytes of a result.

    Raises:
        UsageError: there is no such file, or it cannot be read.
        UnsafeInputError: a pipe, a device or a folder; nothing was read from it.
        InvalidDocumentError: too large.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UnsafeInputError("is not a regular file", where=str(path))
            data = file.read(LARGEST + 1)
    except FileNotFoundError as error:
        raise UsageError("there is no result here", where=str(path), todo="name the file") from error
    except IsADirectoryError as error:
        raise UnsafeInputError("is a folder", where=str(path), todo="name the harness's file in it") from error
    except OSError as error:
        raise UsageError("the result cannot be read", where=str(path), why=error.strerror or str(error)) from error
    if len(data) > LARGEST:
        raise InvalidDocumentError(f"the result is larger than {LARGEST} bytes", where=str(path))
    return data


def parse_documents(data: bytes, *, where: str) -> list[dict[str, Any]]:
    """The objects in a file: one, or one a line.

    Raises:
        InvalidDocumentError: not UTF-8, not JSON, not objects, too many or too deep.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InvalidDocumentError(f"line {line}: the result is not UTF-8", where=where) from error
    refuse_many(text, where=where, most=MOST_VALUES)
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if len(lines) > 1 and _is_whole(lines[0][1]):
        if len(lines) > MOST_LINES:
            raise InvalidDocumentError(f"holds more than {MOST_LINES} lines", where=where)
        found = [parse_foreign(line, where=f"{where}: line {number}") for number, line in lines]
    else:
        found = [parse_foreign(text, where=where)]
    for each in found:
        if not isinstance(each, dict):
            raise InvalidDocumentError("is no object", where=where, why="a harness writes one, or one a line")
    return found


def parse_foreign(text: str | bytes, *, where: str) -> Any:
    """One JSON value of a harness, `NaN` and `Infinity` as `NotFinite`.

    Raises:
        InvalidDocumentError: not JSON, a key twice, or nested too deep.
    """

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in items:
            if key in found:
                raise InvalidDocumentError(f"key {shown(key)} stands twice in one object", where=where)
            found[key] = value
        return found

    try:
        data = json.loads(text, object_pairs_hook=pairs, parse_constant=NotFinite)
    except (ValueError, RecursionError) as error:
        raise InvalidDocumentError("is not JSON", where=where, why=str(error)) from error
    refuse_deep(data, where=where)
    return data


def _is_whole(line: str) -> bool:
    """Whether the first line alone is an object, as in a file of one object a line."""
    if not line.lstrip().startswith("{"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False

"""How much a document from a stranger may hold, judged before and right after it is parsed.

Bytes alone bound nothing: three of them (`[],`) become a hundred in memory, and every value is validated one by one.
"""

import re
from typing import Any

from reproducer.errors import InvalidDocumentError

MOST_VALUES = 500_000
DEEPEST = 64
_MOST_DOTS = 200
_QUOTED = re.compile(r'"[^"]*"|\'[^\']*\'')


def values_in(text: str | bytes) -> int:
    """At most how many values JSON or TOML text holds, by punctuation and lines; what stands in strings counts too."""
    if isinstance(text, bytes):
        return text.count(b",") + text.count(b"[") + text.count(b"{") + text.count(b"\n")
    return text.count(",") + text.count("[") + text.count("{") + text.count("\n")


def refuse_many(text: str | bytes, *, where: str, most: int = MOST_VALUES) -> None:
    """Refuse text that may hold more than `most` values.

    Raises:
        InvalidDocumentError: it does.
    """
    if values_in(text) > most:
        raise InvalidDocumentError(f"holds more than {most} values", where=where)


def refuse_deep(data: Any, *, where: str) -> None:
    """Refuse parsed data whose lists and objects lie in each other more than `DEEPEST` deep.

    Raises:
        InvalidDocumentError: they do.
    """
    level = [data]
    for _ in range(DEEPEST + 1):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise InvalidDocumentError(f"is nested more than {DEEPEST} deep", where=where)


def refuse_long_keys(text: str, *, where: str) -> None:
    """Refuse TOML whose dotted keys would keep a parser busy: its work grows with the square of their parts.

    Raises:
        InvalidDocumentError: a line with more dots outside quotes than any key has.
    """
    for number, line in enumerate(text.splitlines(), start=1):
        if line.count(".") > _MOST_DOTS and _QUOTED.sub("", line).count(".") > _MOST_DOTS:
            raise InvalidDocumentError(f"line {number}: holds a key of more than {_MOST_DOTS} parts", where=where)

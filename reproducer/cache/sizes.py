"""Sizes as a person writes them: `10GiB`, `500MB`, `1024`."""

import re

from reproducer.documents.base import shown
from reproducer.errors import UsageError

_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,6})?)\s*([kKMGTP]?)(i?)[bB]?")
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


def parse_size(text: str) -> int:
    """Bytes of a size; units with an i are powers of 1024, the others of 1000.

    Raises:
        UsageError: it is no size.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or (match[3] and not match[2]):
        raise UsageError(f"{shown(text)} is no size", todo="write it as 10GiB, 500MB or a number of bytes")
    whole, _, part = match[1].partition(".")
    unit: int = (1024 if match[3] else 1000) ** _POWERS[match[2]]
    return int(whole) * unit + (int(part) * unit // 10 ** len(part) if part else 0)

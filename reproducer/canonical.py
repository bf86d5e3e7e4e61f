"""Canonical bytes and digests of documents.

RFC 8785 (JSON Canonicalization Scheme): one content, one byte string, so that layout and comments do not count.
"""

import hashlib
import json
import re
from typing import Any

import rfc8785

from reproducer.errors import InvalidDocumentError

_PLAIN = re.compile(r"[ -~]*")


def canonical_bytes(content: Any) -> bytes:
    """The RFC 8785 bytes of a JSON-compatible value.

    Raises:
        InvalidDocumentError: the value holds what JSON cannot carry exactly (NaN, integers beyond 2**53, other types).
    """
    if _is_plain(content):
        return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    try:
        return rfc8785.dumps(content)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError) as error:
        raise InvalidDocumentError("a value has no canonical JSON form", why=str(error)) from error


def _is_plain(content: Any) -> bool:
    """Whether this is one object of printable ASCII text, whose canonical bytes the standard library gives, and faster.

    Lists of files are such objects, with tens of thousands of keys.
    """
    return isinstance(content, dict) and all(
        isinstance(key, str) and isinstance(value, str) and _PLAIN.fullmatch(key) and _PLAIN.fullmatch(value)
        for key, value in content.items()
    )


def content_digest(content: Any) -> str:
    """Hex sha256 over the canonical bytes of `content`."""
    return hashlib.sha256(canonical_bytes(content)).hexdigest()

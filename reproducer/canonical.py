"""Canonical bytes and digests of documents.

RFC 8785 (JSON Canonicalization Scheme): one content, one byte string, so that layout and comments do not count.
"""

import hashlib
from typing import Any

import rfc8785

from reproducer.errors import InvalidDocumentError


def canonical_bytes(content: Any) -> bytes:
    """The RFC 8785 bytes of a JSON-compatible value.

    Raises:
        InvalidDocumentError: the value holds what JSON cannot carry exactly (NaN, integers beyond 2**53, other types).
    """
    try:
        return rfc8785.dumps(content)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError) as error:
        raise InvalidDocumentError("a value has no canonical JSON form", why=str(error)) from error


def content_digest(content: Any) -> str:
    """Hex sha256 over the canonical bytes of `content`."""
    return hashlib.sha256(canonical_bytes(content)).hexdigest()

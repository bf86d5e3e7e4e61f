"""The canonical encoding of a set of factors, and the digest over it.

Every name and value is written with a tag for its type and its length in bytes, so one encoding is read back in exactly
one way. Specified in docs/namespace.md, with test vectors.
"""

import hashlib
import struct
from collections.abc import Mapping

from reproducer.errors import InvalidDocumentError
from reproducer.identity.factors import Factor, Kind

DOMAIN = "penny-namespace/1"
_TAGS: dict[Kind, bytes] = {
    "text": b"t",
    "integer": b"i",
    "float": b"f",
    "boolean": b"b",
    "digest": b"d",
    "list": b"l",
    "unset": b"u",
    "unknown": b"x",
}


def encode(factors: Mapping[str, Factor]) -> bytes:
    """The canonical bytes of a set of factors, by name.

    Raises:
        InvalidDocumentError: text that is not Unicode (half of a surrogate pair).
    """
    named = sorted((_utf8(name), factor) for name, factor in factors.items())
    return DOMAIN.encode() + b"\n" + b"".join(_framed(b"n", name) + encode_value(each) for name, each in named)


def encode_value(factor: Factor) -> bytes:
    """The canonical bytes of one value; raises as `encode` does."""
    return _framed(_TAGS[factor.kind], _payload(factor))


def digest(factors: Mapping[str, Factor]) -> str:
    """Hex sha256 over the canonical bytes."""
    return hashlib.sha256(encode(factors)).hexdigest()


def _payload(factor: Factor) -> bytes:
    payload = b""
    match factor.kind, factor.value:
        case "unset", None:
            pass
        case "boolean", bool() as value:
            payload = b"true" if value else b"false"
        case "integer", int() as value if not isinstance(value, bool):
            payload = str(value).encode()
        case "float", float() as value:
            payload = struct.pack(">d", value).hex().encode()
        case "digest" | "unknown", str() as value:
            payload = f"sha256:{value}".encode()
        case "text", str() as value:
            payload = _utf8(value)
        case "list", tuple() as values:
            payload = b"".join(encode_value(each) for each in values)
        case _:
            raise TypeError(factor)
    return payload


def _framed(tag: bytes, payload: bytes) -> bytes:
    return b"%b%d:%b," % (tag, len(payload), payload)


def _utf8(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidDocumentError(f"{text!r} is not Unicode text", why=str(error)) from error

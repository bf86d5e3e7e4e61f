"""What every answer is read from: events and JSON of an exchange, and the record that comes of them.

The server's answer is input from outside: whatever is wrong with it becomes the record's error, never an exception.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from reproducer.documents.base import shown
from reproducer.documents.measured import RequestRecord
from reproducer.qualify.client import Call, Exchange

_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_LONGEST_BLANK_LINE = 4
_LARGEST_COUNT = 2**31


class MalformedError(Exception):
    """The answer is not what the protocol says."""


class UntoldError(Exception):
    """The answer is whole, and the server does not tell what a measure needs: it can never be taken there."""


def recorded(
    call: Call, exchange: Exchange, origin: int, read: Callable[[Exchange, int], dict[str, Any]]
) -> RequestRecord:
    """Read an answer; where that fails, what is known stays and the error says why."""
    fields: dict[str, Any] = {
        "events": (),
        "prompt_tokens": 0,
        "output_tokens": 0,
        "cached_tokens": 0,
        "finish_reason": "none",
        "error": exchange.error,
    }
    try:
        fields.update(read(exchange, origin))
    except MalformedError as error:
        fields["error"] = exchange.error or str(error)
    return RequestRecord(
        sent_ns=exchange.sent_ns - origin,
        finished_ns=exchange.finished_ns - origin,
        prompt_sha256=call.prompt_sha256,
        **fields,
    )


def bodies(exchange: Exchange) -> Iterator[tuple[int, dict[str, Any]]]:
    """(time of the last byte, parsed data) of each event before the `[DONE]` that ends the stream."""
    done = False
    for when, data in _sse(exchange):
        if done:
            raise MalformedError("the stream goes on after [DONE]")
        if data == b"[DONE]":
            done = True
            continue
        body = _json_table(data)
        if "error" in body:
            raise MalformedError(f"the server answered an error: {shown(body['error'])}")
        yield when, body
    if not done and exchange.fault is None:
        raise MalformedError("the stream ended without [DONE]")


def _sse(exchange: Exchange) -> Iterator[tuple[int, bytes]]:
    """(time of the last byte, data) of each server-sent event.

    What has come of an event that is not whole is never searched again: an endless one costs what its bytes do.
    """
    rest = b""
    pieces: list[bytes] = []
    for when, chunk in exchange.chunks:
        pieces.append(chunk)
        seam = rest[-_LONGEST_BLANK_LINE + 1 :] + chunk
        if _BLANK_LINE.search(seam) is None:
            rest = seam
            continue
        *whole, rest = _BLANK_LINE.split(b"".join(pieces))
        pieces = [rest]
        for block in whole:
            lines = [line.removesuffix(b"\r") for line in block.split(b"\n")]
            data = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
            if data:
                yield when, b"\n".join(data)
            elif any(line and not line.startswith((b":", b"event:", b"id:", b"retry:")) for line in lines):
                raise MalformedError(f"not a server-sent event: {shown(block[:60])}")
    rest = b"".join(pieces)
    if rest.strip() and exchange.fault is None:
        raise MalformedError(f"the stream ends inside an event: {shown(rest[:60])}")


def whole_body(exchange: Exchange) -> dict[str, Any]:
    """The one JSON object of an answer that came whole."""
    if exchange.error is not None:
        raise MalformedError(exchange.error)
    return _json_table(b"".join(chunk for _, chunk in exchange.chunks))


def _json_table(data: bytes) -> dict[str, Any]:
    try:
        body = json.loads(data, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"not JSON: {shown(data[:60])}") from error
    if not isinstance(body, dict):
        raise MalformedError(f"not a JSON object: {shown(data[:60])}")
    return body


def table(body: dict[str, Any], key: str) -> dict[str, Any]:
    """The object that stands under a key."""
    value = body.get(key)
    if not isinstance(value, dict):
        raise MalformedError(f"the answer has no object {key!r}")
    return value


def counted(body: dict[str, Any], key: str) -> int:
    """The count that stands under a key."""
    value = body.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LARGEST_COUNT:
        raise MalformedError(f"{key} is not a count: {shown(value)}")
    return value


def share(value: Any) -> float | None:
    """A number that a mean or a share may be; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _LARGEST_COUNT:
        return None
    return float(value)


def reason_of(value: object) -> str:
    """Why an answer ended, in the server's words."""
    return "none" if value is None else plain(str(value))[:100]


def plain(value: str) -> str:
    """Text as a document may hold it: bounded, without NUL, valid Unicode."""
    return value.encode(errors="replace").decode().replace("\x00", "\N{REPLACEMENT CHARACTER}")[:65536]

"""What an exchange says, as a RequestRecord: SSE and JSON of SGLang's native endpoint, JSON of the chat endpoint.

The server's answer is input from outside: whatever is wrong with it becomes the record's error, never an exception.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from reproducer.documents.base import shown
from reproducer.documents.receipts import Candidate, RequestRecord
from reproducer.qualify.client import Call, Exchange

_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_TIERS = ("device", "host", "storage")
_LARGEST_COUNT = 2**31


class _Malformed(Exception):  # noqa: N818  never leaves this module
    """The answer is not what the protocol says."""


def generated(call: Call, exchange: Exchange, origin: int) -> RequestRecord:
    """The record of a streamed `/generate`; events carry the time at which their last byte arrived.

    Args:
        call: what was sent.
        exchange: what came back.
        origin: time.monotonic_ns that the record's times are relative to.
    """
    return _record(call, exchange, origin, _read_stream)


def generated_whole(call: Call, exchange: Exchange, origin: int) -> RequestRecord:
    """The record of a `/generate` that was answered in one piece, with the likeliest tokens where they were asked for.

    Its one event is the end of the answer.
    """
    return _record(call, exchange, origin, _read_whole)


def chatted(call: Call, exchange: Exchange, origin: int) -> tuple[RequestRecord, int]:
    """The record of a chat completion that was answered in one piece, and the total that its usage names."""
    total = 0

    def read(exchange: Exchange, origin: int) -> dict[str, Any]:
        nonlocal total
        fields, total = _read_chat(exchange, origin)
        return fields

    return _record(call, exchange, origin, read), total


def _record(
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
    except _Malformed as error:
        fields["error"] = exchange.error or str(error)
    return RequestRecord(
        sent_ns=exchange.sent_ns - origin,
        finished_ns=exchange.finished_ns - origin,
        prompt_sha256=call.prompt_sha256,
        **fields,
    )


def _read_stream(exchange: Exchange, origin: int) -> dict[str, Any]:
    """The fields of a streamed answer; one that broke off still gives the events that came."""
    events: list[tuple[int, int]] = []
    ids: tuple[int, ...] = ()
    last: dict[str, Any] = {}
    fault: str | None = None
    try:
        for when, body in _bodies(exchange):
            last = _object(body, "meta_info")
            count = _count(last, "completion_tokens")
            ids = _grown(ids, _ids(body), count)
            if count > (events[-1][1] if events else 0):
                events.append((when - origin, count))
    except _Malformed as error:
        if not events:
            raise
        fault = str(error)
    fields = _meta(last) if last else {}
    if fault is None and exchange.error is None and not last:
        fault = "the stream brought no token"
    return fields | {"events": tuple(events), "output_ids": ids, "error": exchange.error or fault}


def _read_whole(exchange: Exchange, origin: int) -> dict[str, Any]:
    body = _body(exchange)
    meta = _object(body, "meta_info")
    fields = _meta(meta)
    top = meta.get("output_top_logprobs")
    when = exchange.chunks[-1][0] - origin
    return fields | {
        "events": ((when, fields["output_tokens"]),),
        "output_ids": _grown((), _ids(body), fields["output_tokens"]),
        "top_logprobs": None if top is None else _top(top),
    }


def _read_chat(exchange: Exchange, origin: int) -> tuple[dict[str, Any], int]:
    body = _body(exchange)
    choices = body.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise _Malformed("the chat answer does not hold one choice")
    usage = _object(body, "usage")
    text = _object(choices[0], "message").get("content")
    details = usage.get("prompt_tokens_details")
    output = _count(usage, "completion_tokens")
    fields = {
        "events": ((exchange.chunks[-1][0] - origin, output),),
        "prompt_tokens": _count(usage, "prompt_tokens"),
        "output_tokens": output,
        "cached_tokens": _count(details, "cached_tokens") if isinstance(details, dict) else 0,
        "output_text": _text(text) if isinstance(text, str) else "",
        "finish_reason": _reason(choices[0].get("finish_reason")),
    }
    return fields, _count(usage, "total_tokens")


def _bodies(exchange: Exchange) -> Iterator[tuple[int, dict[str, Any]]]:
    """(time of the last byte, parsed data) of each event before the `[DONE]` that ends the stream."""
    done = False
    for when, data in _sse(exchange):
        if done:
            raise _Malformed("the stream goes on after [DONE]")
        if data == b"[DONE]":
            done = True
            continue
        body = _json_object(data)
        if "error" in body:
            raise _Malformed(f"the server answered an error: {shown(body['error'])}")
        yield when, body
    if not done and exchange.fault is None:
        raise _Malformed("the stream ended without [DONE]")


def _sse(exchange: Exchange) -> Iterator[tuple[int, bytes]]:
    """(time of the last byte, data) of each server-sent event."""
    rest = b""
    for when, chunk in exchange.chunks:
        *whole, rest = _BLANK_LINE.split(rest + chunk)
        for block in whole:
            lines = [line.removesuffix(b"\r") for line in block.split(b"\n")]
            data = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
            if data:
                yield when, b"\n".join(data)
            elif any(line and not line.startswith((b":", b"event:", b"id:", b"retry:")) for line in lines):
                raise _Malformed(f"not a server-sent event: {shown(block[:60])}")
    if rest.strip() and exchange.fault is None:
        raise _Malformed(f"the stream ends inside an event: {shown(rest[:60])}")


def _body(exchange: Exchange) -> dict[str, Any]:
    """The one JSON object of an answer that came whole."""
    if exchange.error is not None:
        raise _Malformed(exchange.error)
    return _json_object(b"".join(chunk for _, chunk in exchange.chunks))


def _json_object(data: bytes) -> dict[str, Any]:
    try:
        body = json.loads(data, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise _Malformed(f"not JSON: {shown(data[:60])}") from error
    if not isinstance(body, dict):
        raise _Malformed(f"not a JSON object: {shown(data[:60])}")
    return body


def _object(body: dict[str, Any], key: str) -> dict[str, Any]:
    value = body.get(key)
    if not isinstance(value, dict):
        raise _Malformed(f"the answer has no object {key!r}")
    return value


def _count(body: dict[str, Any], key: str) -> int:
    value = body.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LARGEST_COUNT:
        raise _Malformed(f"{key} is not a count: {shown(value)}")
    return value


def _ids(body: dict[str, Any]) -> tuple[int, ...]:
    ids = body.get("output_ids")
    if not isinstance(ids, list) or any(isinstance(each, bool) or not isinstance(each, int) for each in ids):
        raise _Malformed("output_ids is not a list of token ids")
    return tuple(ids)


def _grown(before: tuple[int, ...], ids: tuple[int, ...], count: int) -> tuple[int, ...]:
    """All output ids so far, whether the server repeats the ones before or sends the new ones only."""
    for candidate in (ids, before + ids):
        if len(candidate) == count:
            return candidate
    raise _Malformed(f"completion_tokens is {count}, but {len(ids)} output_ids came after {len(before)}")


def _meta(meta: dict[str, Any]) -> dict[str, Any]:
    """The counts and the reason of a native answer."""
    details = meta.get("cached_tokens_details")
    reason = meta.get("finish_reason")
    tiers = details if isinstance(details, dict) else {}
    return {
        "prompt_tokens": _count(meta, "prompt_tokens"),
        "output_tokens": _count(meta, "completion_tokens"),
        "cached_tokens": _count(meta, "cached_tokens"),
        "cached_by_tier": {tier: _count(tiers, tier) for tier in _TIERS if tier in tiers},
        "finish_reason": _reason(reason.get("type") if isinstance(reason, dict) else reason),
    }


def _reason(value: object) -> str:
    return "none" if value is None else _text(str(value))[:100]


def _text(value: str) -> str:
    """Text as a document may hold it: bounded, without NUL, valid Unicode."""
    return value.encode(errors="replace").decode().replace("\x00", "\N{REPLACEMENT CHARACTER}")[:65536]


def _top(positions: Any) -> tuple[tuple[Candidate, ...], ...]:
    """The likeliest tokens of each output position, as [logprob, id, text] lists; unbounded logprobs are left out."""
    try:
        return tuple(
            tuple(
                Candidate(token=each[1], logprob=float(each[0]))
                for each in position
                if each[0] is not None and math.isfinite(each[0])
            )
            for position in positions
        )
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise _Malformed("output_top_logprobs is not a list of candidates for each position") from error

"""What an exchange says, as a RequestRecord: SSE and JSON of SGLang's native endpoint, JSON of the chat endpoint."""

import math
from typing import Any

from reproducer.documents.measured import Candidate, RequestRecord, Speculated
from reproducer.qualify.client import Call, Exchange
from reproducer.qualify.exchanges import (
    MalformedError,
    bodies,
    counted,
    plain,
    reason_of,
    recorded,
    share,
    table,
    whole_body,
)

_TIERS = ("device", "host", "storage")


def generated(call: Call, exchange: Exchange, origin: int) -> RequestRecord:
    """The record of a streamed `/generate`; events carry the time at which their last byte arrived.

    Args:
        call: what was sent.
        exchange: what came back.
        origin: time.monotonic_ns that the record's times are relative to.
    """
    return recorded(call, exchange, origin, _read_stream)


def generated_whole(call: Call, exchange: Exchange, origin: int) -> RequestRecord:
    """The record of a `/generate` that was answered in one piece, with the likeliest tokens where they were asked for.

    Its one event is the end of the answer.
    """
    return recorded(call, exchange, origin, _read_whole)


def chatted(call: Call, exchange: Exchange, origin: int) -> tuple[RequestRecord, int]:
    """The record of a chat completion that was answered in one piece, and the total that its usage names."""
    total = 0

    def read(exchange: Exchange, origin: int) -> dict[str, Any]:
        nonlocal total
        fields, total = _read_chat(exchange, origin)
        return fields

    return recorded(call, exchange, origin, read), total


def _read_stream(exchange: Exchange, origin: int) -> dict[str, Any]:
    """The fields of a streamed answer; one that broke off still gives the events that came."""
    events: list[tuple[int, int]] = []
    ids: tuple[int, ...] = ()
    last: dict[str, Any] = {}
    fault: str | None = None
    try:
        for when, body in bodies(exchange):
            last = table(body, "meta_info")
            number = counted(last, "completion_tokens")
            ids = _grown(ids, _ids(body), number)
            if number > (events[-1][1] if events else 0):
                events.append((when - origin, number))
    except MalformedError as error:
        if not events:
            raise
        fault = str(error)
    fields = _meta(last) if last else {}
    if fault is None and exchange.error is None and not last:
        fault = "the stream brought no token"
    return fields | {"events": tuple(events), "output_ids": ids, "error": exchange.error or fault}


def _read_whole(exchange: Exchange, origin: int) -> dict[str, Any]:
    body = whole_body(exchange)
    meta = table(body, "meta_info")
    fields = _meta(meta)
    top = meta.get("output_top_logprobs")
    when = exchange.chunks[-1][0] - origin
    return fields | {
        "events": ((when, fields["output_tokens"]),),
        "output_ids": _grown((), _ids(body), fields["output_tokens"]),
        "top_logprobs": None if top is None else _top(top),
    }


def _read_chat(exchange: Exchange, origin: int) -> tuple[dict[str, Any], int]:
    body = whole_body(exchange)
    choices = body.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise MalformedError("the chat answer does not hold one choice")
    usage = table(body, "usage")
    text = table(choices[0], "message").get("content")
    details = usage.get("prompt_tokens_details")
    output = counted(usage, "completion_tokens")
    fields = {
        "events": ((exchange.chunks[-1][0] - origin, output),),
        "prompt_tokens": counted(usage, "prompt_tokens"),
        "output_tokens": output,
        "cached_tokens": counted(details, "cached_tokens") if isinstance(details, dict) else 0,
        "output_text": plain(text) if isinstance(text, str) else "",
        "finish_reason": reason_of(choices[0].get("finish_reason")),
    }
    return fields, counted(usage, "total_tokens")


def _ids(body: dict[str, Any]) -> tuple[int, ...]:
    ids = body.get("output_ids")
    if not isinstance(ids, list) or any(isinstance(each, bool) or not isinstance(each, int) for each in ids):
        raise MalformedError("output_ids is not a list of token ids")
    return tuple(ids)


def _grown(before: tuple[int, ...], ids: tuple[int, ...], count: int) -> tuple[int, ...]:
    """All output ids so far, whether the server repeats the ones before or sends the new ones only."""
    for candidate in (ids, before + ids):
        if len(candidate) == count:
            return candidate
    raise MalformedError(f"completion_tokens is {count}, but {len(ids)} output_ids came after {len(before)}")


def _meta(meta: dict[str, Any]) -> dict[str, Any]:
    """The counts and the reason of a native answer."""
    details = meta.get("cached_tokens_details")
    reason = meta.get("finish_reason")
    tiers = details if isinstance(details, dict) else {}
    return {
        "prompt_tokens": counted(meta, "prompt_tokens"),
        "output_tokens": counted(meta, "completion_tokens"),
        "cached_tokens": counted(meta, "cached_tokens"),
        "cached_by_tier": {tier: counted(tiers, tier) for tier in _TIERS if tier in tiers},
        "finish_reason": reason_of(reason.get("type") if isinstance(reason, dict) else reason),
        "speculation": _speculated(meta) if "spec_verify_ct" in meta else None,
    }


# SGLang renamed them between 0.5.10 and 0.5.17, and says that the names between those go away again.
_ACCEPTED = ("spec_accept_token_num", "spec_num_correct_drafts", "spec_accepted_drafts")
_PROPOSED = ("spec_draft_token_num", "spec_num_proposed_drafts", "spec_proposed_drafts")


def _speculated(meta: dict[str, Any]) -> Speculated | None:
    """What SGLang counts of a request's drafted tokens; None where it counts them by names that penny does not know."""
    accepted, proposed = (next((name for name in names if name in meta), None) for names in (_ACCEPTED, _PROPOSED))
    if accepted is None or proposed is None:
        return None
    shares = [share(meta.get(name)) for name in ("spec_accept_length", "spec_accept_rate")]
    if None in shares:
        raise MalformedError("spec_accept_length and spec_accept_rate are not both numbers")
    rows = meta.get("spec_accept_histogram", meta.get("spec_correct_drafts_histogram"))
    if rows is not None and not isinstance(rows, list):
        raise MalformedError("spec_accept_histogram is not a list")
    return Speculated(
        verify_steps=counted(meta, "spec_verify_ct"),
        accepted_tokens=counted(meta, accepted),
        drafted_tokens=counted(meta, proposed),
        accept_length=shares[0] or 0.0,
        accept_rate=shares[1] or 0.0,
        accepted_in_steps=None if rows is None else tuple(counted({"steps": each}, "steps") for each in rows),
    )


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
        raise MalformedError("output_top_logprobs is not a list of candidates for each position") from error

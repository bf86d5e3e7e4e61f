"""What an exchange with `/v1/completions` says, as a RequestRecord.

The protocol knows no token ids and counts tokens only at the end. Servers tell more when they are asked: vLLM counts
with each piece and gives ids and cached tokens, others give some of it. What a server does not tell is not made up:
`UntoldError` says what is missing.
"""

import math
from typing import Any

from reproducer.documents.measured import Candidate, RequestRecord
from reproducer.qualify.client import Call, Exchange
from reproducer.qualify.exchanges import (
    MalformedError,
    UntoldError,
    bodies,
    counted,
    reason_of,
    recorded,
    table,
    whole_body,
)

_LONGEST_ID = 10
_TOKEN = "token_id:"  # noqa: S105  how vLLM spells a token by its id


def completed(call: Call, exchange: Exchange, origin: int) -> RequestRecord:
    """The record of a streamed completion; events carry the time at which their last byte arrived.

    Args:
        call: what was sent.
        exchange: what came back.
        origin: time.monotonic_ns that the record's times are relative to.

    Raises:
        UntoldError: the server does not count tokens while it streams, or not the cached ones.
    """
    return recorded(call, exchange, origin, _read_stream)


def completed_whole(call: Call, exchange: Exchange, origin: int) -> RequestRecord:
    """The record of a completion that was answered in one piece, with ids and likeliest tokens; raises as `completed`.

    Its one event is the end of the answer.
    """
    return recorded(call, exchange, origin, _read_whole)


def _read_stream(exchange: Exchange, origin: int) -> dict[str, Any]:
    """The fields of a streamed answer; one that broke off still gives the events that came."""
    stream = _Stream()
    fault: str | None = None
    try:
        for when, body in bodies(exchange):
            stream.take(when - origin, body)
    except MalformedError as error:
        if not stream.events:
            raise
        fault = str(error)
    fields: dict[str, Any] = {"events": tuple(stream.events), "error": exchange.error or fault}
    if exchange.error is None and fault is None:
        fields |= stream.finished()
    return fields


class _Stream:
    """One streamed answer, event by event.

    Attributes:
        events: (time, tokens so far) where the server counted with the piece, or gave its ids.
        bare: times of the pieces of text that came without a count.
    """

    def __init__(self) -> None:
        self.events: list[tuple[int, int]] = []
        self.bare: list[int] = []
        self.ids: list[int] = []
        self.has_ids = True
        self.usage: dict[str, Any] | None = None
        self.reason: object = None

    def take(self, when: int, body: dict[str, Any]) -> None:
        """One event."""
        usage = body.get("usage")
        if isinstance(usage, dict):
            self.usage = usage
        choice = _choice(body)
        if choice is None:
            return
        self.reason = choice.get("finish_reason") or self.reason
        ids = _ids(choice)
        if ids is not None:
            self.ids += ids
        text = bool(choice.get("text"))
        self.has_ids = self.has_ids and (ids is not None or not text)
        if isinstance(usage, dict):
            number = counted(usage, "completion_tokens")
        elif ids is not None and self.has_ids:
            number = len(self.ids)
        else:
            self.bare += [when] if text else []
            return
        if number > (self.events[-1][1] if self.events else 0):
            self.events.append((when, number))

    def finished(self) -> dict[str, Any]:
        """The fields of the whole answer."""
        if self.usage is None:
            raise UntoldError("the server does not count the tokens of a streamed answer")
        total = counted(self.usage, "completion_tokens")
        if self.bare and not self.events:
            # As many pieces as tokens: each piece is one. Any other number says nothing about when a token came.
            if len(self.bare) != total:
                pieces = f"{len(self.bare)} pieces came for {total} tokens"
                raise UntoldError(f"the server does not count tokens while it streams, and {pieces}")
            self.events = [(when, number) for number, when in enumerate(self.bare, start=1)]
        if not self.events:
            raise MalformedError("the stream brought no token")
        ids = tuple(self.ids) if self.has_ids and self.ids else None
        return {"events": tuple(self.events), "output_ids": ids, **usage_of(self.usage, self.reason)}


def _read_whole(exchange: Exchange, origin: int) -> dict[str, Any]:
    body = whole_body(exchange)
    choice = _choice(body)
    if choice is None:
        raise MalformedError("the answer does not hold one choice")
    fields = usage_of(table(body, "usage"), choice.get("finish_reason"))
    ids = _ids(choice)
    if ids is None:
        raise UntoldError("the server does not tell the ids of the tokens it made")
    return fields | {
        "events": ((exchange.chunks[-1][0] - origin, fields["output_tokens"]),),
        "output_ids": tuple(ids),
        "top_logprobs": _top(choice.get("logprobs")),
    }


def _choice(body: dict[str, Any]) -> dict[str, Any] | None:
    """The one choice; None in an event that only counts."""
    choices = body.get("choices")
    if not isinstance(choices, list) or len(choices) > 1 or any(not isinstance(each, dict) for each in choices):
        raise MalformedError("the answer does not hold one choice")
    return choices[0] if choices else None


def _ids(choice: dict[str, Any]) -> list[int] | None:
    """The ids of the tokens in a piece; None where the server does not tell them."""
    ids = choice.get("token_ids")
    if ids is None:
        return None
    if not isinstance(ids, list) or any(isinstance(each, bool) or not isinstance(each, int) for each in ids):
        raise MalformedError("token_ids is not a list of token ids")
    return ids


def usage_of(usage: dict[str, Any], reason: object) -> dict[str, Any]:
    """The counts of a whole answer."""
    details = usage.get("prompt_tokens_details")
    if not isinstance(details, dict) or details.get("cached_tokens") is None:
        raise UntoldError("the server does not tell how many tokens of a prompt it had cached")
    return {
        "prompt_tokens": counted(usage, "prompt_tokens"),
        "output_tokens": counted(usage, "completion_tokens"),
        "cached_tokens": counted(details, "cached_tokens"),
        "finish_reason": reason_of(reason),
    }


def _top(logprobs: Any) -> tuple[tuple[Candidate, ...], ...] | None:
    """The likeliest tokens of each position, likeliest first; None where none were asked for."""
    if logprobs is None:
        return None
    positions = logprobs.get("top_logprobs") if isinstance(logprobs, dict) else None
    try:
        found = [[(str(text), float(value)) for text, value in position.items()] for position in positions or ()]
    except (AttributeError, TypeError, ValueError) as error:
        raise MalformedError("top_logprobs is not a table of candidates for each position") from error
    names = [text.removeprefix(_TOKEN) for position in found for text, _ in position]
    if not found or any(not (name.isascii() and name.isdigit() and len(name) < _LONGEST_ID) for name in names):
        raise UntoldError("the server does not tell the likeliest tokens by their ids")
    return tuple(
        tuple(
            Candidate(token=int(text.removeprefix(_TOKEN)), logprob=value)
            for text, value in sorted(position, key=lambda each: -each[1])
            if math.isfinite(value)
        )
        for position in found
    )

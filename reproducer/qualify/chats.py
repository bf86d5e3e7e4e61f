"""What a streamed chat answer says, as a RequestRecord: every piece of text with the time at which it came.

Servers that are asked for it count tokens with each piece. A token without text of its own, such as the one that ends
an answer, is counted with the event that says why the answer ended.
"""

from typing import Any

from reproducer.documents.measured import RequestRecord
from reproducer.qualify.client import Call, Exchange
from reproducer.qualify.completions import usage_of
from reproducer.qualify.exchanges import MalformedError, UntoldError, bodies, counted, plain, recorded

_TEXTS = ("content", "reasoning_content", "reasoning")


def chat_streamed(call: Call, exchange: Exchange, origin: int) -> RequestRecord:
    """The record of a streamed chat answer; events carry the time at which their last byte arrived.

    Args:
        call: what was sent.
        exchange: what came back.
        origin: time.monotonic_ns that the record's times are relative to.

    Raises:
        UntoldError: the server does not count tokens while it streams, or not the cached ones.
    """
    return recorded(call, exchange, origin, _read)


def _read(exchange: Exchange, origin: int) -> dict[str, Any]:
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
        events: (time, tokens so far) where the server counted with the piece.
        bare: times of the pieces that came without a count.
        ended: when the server said why the answer ended.
    """

    def __init__(self) -> None:
        self.events: list[tuple[int, int]] = []
        self.bare: list[int] = []
        self.text: list[str] = []
        self.usage: dict[str, Any] | None = None
        self.reason: object = None
        self.ended: int | None = None

    def take(self, when: int, body: dict[str, Any]) -> None:
        """One event."""
        usage = body.get("usage")
        if isinstance(usage, dict):
            self.usage = usage
        choices = body.get("choices")
        if not isinstance(choices, list) or len(choices) > 1 or any(not isinstance(each, dict) for each in choices):
            raise MalformedError("the answer does not hold one choice")
        for choice in choices:
            self._choice(when, choice, usage)

    def _choice(self, when: int, choice: dict[str, Any], usage: object) -> None:
        if choice.get("finish_reason") is not None:
            self.reason, self.ended = choice["finish_reason"], when
        delta = choice.get("delta")
        pieces = [delta.get(key) for key in _TEXTS] if isinstance(delta, dict) else []
        if not any(isinstance(each, str) and each for each in pieces):
            return
        if isinstance(pieces[0], str):
            self.text.append(pieces[0])
        if not isinstance(usage, dict):
            self.bare.append(when)
            return
        number = counted(usage, "completion_tokens")
        if number > (self.events[-1][1] if self.events else 0):
            self.events.append((when, number))

    def finished(self) -> dict[str, Any]:
        """The fields of the whole answer."""
        if self.usage is None:
            raise UntoldError("the server does not count the tokens of a streamed answer")
        total = counted(self.usage, "completion_tokens")
        if self.bare and not self.events:
            # As many pieces as tokens, but for the one that ends the answer: each piece is one. Any other number says
            # nothing about when a token came.
            if total - len(self.bare) not in (0, 1):
                pieces = f"{len(self.bare)} pieces came for {total} tokens"
                raise UntoldError(f"the server does not count tokens while it streams, and {pieces}")
            self.events = [(when, number) for number, when in enumerate(self.bare, start=1)]
        if self.ended is not None and total > (self.events[-1][1] if self.events else 0):
            self.events.append((self.ended, total))
        if not self.events:
            raise MalformedError("the stream brought no token")
        return {
            "events": tuple(self.events),
            "output_text": plain("".join(self.text)),
            **usage_of(self.usage, self.reason),
        }

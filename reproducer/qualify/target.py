"""The server that is measured, and the ways in which measures ask it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from reproducer.documents.receipts import RequestRecord
from reproducer.errors import NotCheckedError
from reproducer.qualify.answers import chatted
from reproducer.qualify.client import DEADLINE_S, Call, Exchange, ask, call, together
from reproducer.qualify.prompts import text_sha256
from reproducer.qualify.speech import NATIVE, Speech


class Serving(Protocol):
    """A server that answers."""

    @property
    def url(self) -> str:
        """Where it listens."""


@dataclass
class Target:
    """The server that is measured.

    Attributes:
        lost: whether a connection failed, so that the caller looks whether the server lives.
        speech: how completions of token ids are asked for.
        pid: the server's first process; None where nobody may look at it.
    """

    url: str
    deadline_s: float = DEADLINE_S
    lost: bool = False
    speech: Speech = NATIVE
    pid: int | None = None
    _model: str | None = None

    def together(self, calls: Sequence[Call]) -> tuple[Exchange, ...]:
        """Send calls at once and keep what comes back."""
        exchanges = together(self.url, calls, deadline_s=self.deadline_s)
        self.lost = self.lost or any(exchange.fault == "connection" for exchange in exchanges)
        return exchanges

    def ask(self, path: str, payload: dict[str, Any] | None = None) -> Any:
        """The JSON an endpoint answers, None where it does not exist; raises as `client.ask` does."""
        try:
            return ask(self.url, path, payload)
        except NotCheckedError:
            self.lost = True
            raise

    def tokens(self, text: str) -> tuple[int, ...] | None:
        """The token ids of a text without added special tokens; None where the server has no such endpoint."""
        answer = self.ask("/tokenize", self.speech.tokenized(text))
        ids = answer.get("tokens") if isinstance(answer, dict) else None
        if not isinstance(ids, list) or not all(isinstance(each, int) and each >= 0 for each in ids):
            return None
        return tuple(ids)

    def model(self) -> str:
        """The name under which the server offers its model; asked once."""
        if self._model is not None:
            return self._model
        answer = self.ask("/v1/models")
        try:
            self._model = str(answer["data"][0]["id"])
        except (TypeError, KeyError, IndexError) as error:
            raise NotCheckedError("the server names no model", where=f"{self.url}/v1/models") from error
        return self._model

    def completion(self, ids: Sequence[int], output_tokens: int, *, stream: bool, top: int = 0) -> Call:
        """A greedy completion of exactly so many tokens, as `Speech.completion` has it."""
        return self.speech.completion(self.model, ids, output_tokens, stream=stream, top=top)

    def streamed(self, prompts: Sequence[Sequence[int]], output_tokens: int) -> tuple[RequestRecord, ...]:
        """Send streamed completions at once; times are relative to the first one sent."""
        calls = [self.completion(prompt, output_tokens, stream=True) for prompt in prompts]
        exchanges = self.together(calls)
        origin = min(exchange.sent_ns for exchange in exchanges)
        return tuple(self.speech.streamed(each, got, origin) for each, got in zip(calls, exchanges, strict=True))

    def likeliest(self, ids: Sequence[int], output_tokens: int, top: int, origin: int) -> RequestRecord:
        """One greedy completion with the `top` likeliest tokens of each output position."""
        each = self.completion(ids, output_tokens, stream=False, top=top)
        (exchange,) = self.together([each])
        return self.speech.whole(each, exchange, origin)

    def chat(self, text: str, output_tokens: int) -> tuple[RequestRecord, int]:
        """One greedy chat answer of at most so many tokens, and the total that the server counts for it."""
        payload = {
            "model": self.model(),
            "messages": [{"role": "user", "content": text}],
            "temperature": 0,
            "max_tokens": output_tokens,
        }
        each = call("/v1/chat/completions", payload, text_sha256(text))
        (exchange,) = self.together([each])
        return chatted(each, exchange, exchange.sent_ns)

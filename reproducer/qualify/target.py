"""The server that is measured, and the ways in which measures ask it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from reproducer.documents.measured import RequestRecord
from reproducer.errors import NotCheckedError
from reproducer.qualify.answers import chatted
from reproducer.qualify.chats import chat_streamed
from reproducer.qualify.client import DEADLINE_S, Call, Exchange, ask, call, together
from reproducer.qualify.flight import Flight
from reproducer.qualify.prompts import text_sha256
from reproducer.qualify.speech import NATIVE, TEMPERATURE, Speech

_USUAL_PROMPT = 8192


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
        workspace: a folder in which a measure may lay what it needs; None where there is none.
        keep: keeps a file beside the receipts, under the digest of its bytes; None where nobody keeps any.
        flight: where whoever watches sees what has arrived.
    """

    url: str
    deadline_s: float = DEADLINE_S
    lost: bool = False
    speech: Speech = NATIVE
    pid: int | None = None
    workspace: Path | None = None
    keep: Callable[[Path, str], None] | None = None
    flight: Flight = field(default_factory=Flight)
    _model: str | None = None

    def patience(self, prompt_tokens: int) -> float:
        """How long a request with so long a prompt may take: a prompt beyond the usual has its share more."""
        return self.deadline_s * max(1.0, prompt_tokens / _USUAL_PROMPT)

    def together(self, calls: Sequence[Call], *, deadline_s: float | None = None) -> tuple[Exchange, ...]:
        """Send calls at once and keep what comes back."""
        deadline_s = self.deadline_s if deadline_s is None else deadline_s
        exchanges = together(self.url, calls, deadline_s=deadline_s, flight=self.flight)
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
        exchanges = self.together(calls, deadline_s=self.patience(sum(len(prompt) for prompt in prompts)))
        origin = min(exchange.sent_ns for exchange in exchanges)
        return tuple(self.speech.streamed(each, got, origin) for each, got in zip(calls, exchanges, strict=True))

    def likeliest(self, ids: Sequence[int], output_tokens: int, top: int, origin: int) -> RequestRecord:
        """One greedy completion with the `top` likeliest tokens of each output position."""
        each = self.completion(ids, output_tokens, stream=False, top=top)
        (exchange,) = self.together([each], deadline_s=self.patience(len(ids)))
        return self.speech.whole(each, exchange, origin)

    def context_tokens(self) -> int | None:
        """How many tokens prompt and output may have together, as the server states it; None where it does not."""
        answer = self.ask("/v1/models")
        try:
            stated = answer["data"][0]["max_model_len"]
        except (TypeError, KeyError, IndexError):
            return None
        return stated if isinstance(stated, int) and not isinstance(stated, bool) and stated > 0 else None

    def whole(self, ids: Sequence[int], output_tokens: int, origin: int) -> RequestRecord:
        """One greedy completion that comes in one piece."""
        return self.likeliest(ids, output_tokens, 0, origin)

    def chat_streamed(self, text: str, output_tokens: int, *, deadline_s: float | None = None) -> RequestRecord:
        """One greedy chat answer of at most so many tokens, token by token; times are relative to its sending."""
        payload = {
            "model": self.model(),
            "messages": [{"role": "user", "content": text}],
            "temperature": TEMPERATURE,
            "max_tokens": output_tokens,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        }
        each = call("/v1/chat/completions", payload, text_sha256(text))
        (exchange,) = self.together([each], deadline_s=deadline_s)
        return chat_streamed(each, exchange, exchange.sent_ns)

    def chat(self, text: str, output_tokens: int) -> tuple[RequestRecord, int]:
        """One greedy chat answer of at most so many tokens, and the total that the server counts for it."""
        payload = {
            "model": self.model(),
            "messages": [{"role": "user", "content": text}],
            "temperature": TEMPERATURE,
            "max_tokens": output_tokens,
        }
        each = call("/v1/chat/completions", payload, text_sha256(text))
        (exchange,) = self.together([each])
        return chatted(each, exchange, exchange.sent_ns)

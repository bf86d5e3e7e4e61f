"""What each measure sends, and what it keeps: one function a measure, from a running server to a raw observation."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from reproducer.documents.base import shown
from reproducer.documents.lock import Scalar
from reproducer.documents.receipts import FidelityReference, RequestRecord
from reproducer.errors import NotCheckedError, UsageError
from reproducer.qualify.answers import chatted
from reproducer.qualify.client import DEADLINE_S, Call, Exchange, ask, call, together
from reproducer.qualify.prompts import QUESTION, needle_prompt, text_sha256, token_prompt
from reproducer.qualify.speech import NATIVE, Speech
from reproducer.qualify.validity import Parameters, number, prompt_seed, whole

_SENTENCES_TRIED = 6


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
    """

    url: str
    deadline_s: float = DEADLINE_S
    lost: bool = False
    speech: Speech = NATIVE
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


@dataclass(frozen=True)
class Observed:
    """The raw requests of one sample, and what was seen beside them."""

    requests: tuple[RequestRecord, ...]
    facts: dict[str, Scalar] = field(default_factory=dict)


Probe = Callable[[Target, Parameters, str], Observed]


def _streamed(target: Target, prompts: Sequence[Sequence[int]], output_tokens: int) -> tuple[RequestRecord, ...]:
    """Send streamed completions at once; times are relative to the first one sent."""
    calls = [target.completion(prompt, output_tokens, stream=True) for prompt in prompts]
    exchanges = target.together(calls)
    origin = min(exchange.sent_ns for exchange in exchanges)
    return tuple(target.speech.streamed(each, got, origin) for each, got in zip(calls, exchanges, strict=True))


def _prompts(parameters: Parameters, measure: str, nonce: str, count: int = 1) -> list[tuple[int, ...]]:
    length = whole(parameters, "prompt_tokens")
    return [token_prompt(prompt_seed(nonce, measure, position), length) for position in range(count)]


def _decode_single(target: Target, parameters: Parameters, nonce: str) -> Observed:
    output = whole(parameters, "output_tokens")
    (prompt,) = _prompts(parameters, "decode.single/1", nonce)
    return Observed(_streamed(target, [prompt], output))


def _decode_concurrent(target: Target, parameters: Parameters, nonce: str) -> Observed:
    output = whole(parameters, "output_tokens")
    prompts = _prompts(parameters, "decode.concurrent/1", nonce, whole(parameters, "concurrency"))
    return Observed(_streamed(target, prompts, output))


def _prefill(target: Target, parameters: Parameters, nonce: str) -> Observed:
    (prompt,) = _prompts(parameters, "prefill.cold/1", nonce)
    return Observed(_streamed(target, [prompt], 1))


def _reuse(target: Target, parameters: Parameters, nonce: str) -> Observed:
    """The same prompt twice, one after the other; all times are relative to the first one sent."""
    (prompt,) = _prompts(parameters, "prefix.reuse/1", nonce)
    each, read = target.completion(prompt, 1, stream=True), target.speech.streamed
    (cold,) = target.together([each])
    (warm,) = target.together([each])
    return Observed((read(each, cold, cold.sent_ns), read(each, warm, cold.sent_ns)))


def restore_half(target: Target, parameters: Parameters, nonce: str) -> Observed:
    """One half of `restore.restart`: the prompt once. The same nonce gives the same prompt in the next boot."""
    output = whole(parameters, "output_tokens")
    (prompt,) = _prompts(parameters, "restore.restart/1", nonce)
    return Observed(_streamed(target, [prompt], output))


def _needle(target: Target, parameters: Parameters, nonce: str) -> Observed:
    sentences = _fitting(target, parameters, nonce)
    needle = needle_prompt(prompt_seed(nonce, "needle.short/1"), sentences=sentences, depth=number(parameters, "depth"))
    record, _ = _chat(target, needle.text, whole(parameters, "output_tokens"))
    return Observed((record,), {"sentences": sentences})


def _fitting(target: Target, parameters: Parameters, nonce: str) -> int:
    """How many sentences make about the length asked for, by the server's own tokenizer where there is one."""
    wanted, depth = whole(parameters, "prompt_tokens"), number(parameters, "depth")
    sentences = max(round(wanted / 14), 1)
    for _ in range(_SENTENCES_TRIED):
        text = needle_prompt(prompt_seed(nonce, "needle.short/1"), sentences=sentences, depth=depth).text
        ids = target.tokens(text)
        if not ids or abs(len(ids) - wanted) <= wanted // 50:
            break
        better = min(max(math.floor(sentences * wanted / len(ids)), 1), wanted)
        if better == sentences:
            break
        sentences = better
    return sentences


def _smoke(target: Target, parameters: Parameters, nonce: str) -> Observed:
    del nonce
    record, total = _chat(target, QUESTION, whole(parameters, "output_tokens"))
    counted = target.tokens(record.output_text or "") if record.error is None else None
    return Observed((record,), {"usage_total": total, "answer_tokens": -1 if counted is None else len(counted)})


def _chat(target: Target, text: str, output_tokens: int) -> tuple[RequestRecord, int]:
    payload = {
        "model": target.model(),
        "messages": [{"role": "user", "content": text}],
        "temperature": 0,
        "max_tokens": output_tokens,
    }
    each = call("/v1/chat/completions", payload, text_sha256(text))
    (exchange,) = target.together([each])
    return chatted(each, exchange, exchange.sent_ns)


def fidelity(target: Target, reference: FidelityReference) -> Observed:
    """Every prompt of the reference, one at a time: another batch may give other tokens."""
    origin = time.monotonic_ns()
    return Observed(
        tuple(
            likeliest(target, prompt.prompt_ids, len(prompt.output_ids), reference.top, origin)
            for prompt in reference.prompts
        )
    )


def likeliest(target: Target, ids: Sequence[int], output_tokens: int, top: int, origin: int) -> RequestRecord:
    """One greedy completion with the `top` likeliest tokens of each output position."""
    each = target.completion(ids, output_tokens, stream=False, top=top)
    (exchange,) = target.together([each])
    return target.speech.whole(each, exchange, origin)


PROBES: Mapping[str, Probe] = {
    "decode.single/1": _decode_single,
    "decode.concurrent/1": _decode_concurrent,
    "prefill.cold/1": _prefill,
    "prefix.reuse/1": _reuse,
    "needle.short/1": _needle,
    "chat.smoke/1": _smoke,
}


def observe(
    target: Target, measure: str, parameters: Parameters, nonce: str, reference: FidelityReference | None
) -> Observed:
    """Take one sample of a measure that lies within one boot.

    Raises:
        NotCheckedError: the server does not answer the untimed questions.
        UsageError: `fidelity` without a reference.
    """
    if measure == "fidelity/1":
        if reference is None:
            raise UsageError(f"{shown(measure)} needs a reference")
        return fidelity(target, reference)
    return PROBES[measure](target, parameters, nonce)

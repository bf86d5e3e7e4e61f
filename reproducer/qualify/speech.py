"""How completions of token ids are asked for: one way for each protocol, and the same record of what came back.

The measures are the same on every engine. Only the words differ, and what a server tells of its own accord.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reproducer.documents.lock import Scalar
from reproducer.documents.measured import RequestRecord
from reproducer.engines.interface import Speech as Name
from reproducer.qualify.answers import generated, generated_whole
from reproducer.qualify.client import Call, Exchange, call
from reproducer.qualify.completions import completed, completed_whole
from reproducer.qualify.exchanges import UntoldError, plain, share
from reproducer.qualify.prompts import ids_sha256

Model = Callable[[], str]
TEMPERATURE = 0  # of every request of a measure: the likeliest token, each time
_SPECULATIVE = (
    "speculative_algorithm",
    "speculative_num_draft_tokens",
    "speculative_num_steps",
    "speculative_eagle_topk",
)


class Speech(ABC):
    """One protocol."""

    @abstractmethod
    def completion(self, model: Model, ids: Sequence[int], output_tokens: int, *, stream: bool, top: int = 0) -> Call:
        """A greedy completion of exactly so many tokens, end-of-text or not.

        Args:
            model: gives the name under which the server offers its model.
            ids: the prompt.
            output_tokens: length of the output.
            stream: token by token, or in one piece.
            top: how many of the likeliest tokens of each position are asked for.
        """

    @abstractmethod
    def streamed(self, each: Call, exchange: Exchange, origin: int) -> RequestRecord:
        """The record of a streamed completion."""

    @abstractmethod
    def whole(self, each: Call, exchange: Exchange, origin: int) -> RequestRecord:
        """The record of a completion that came in one piece."""

    def tokenized(self, text: str) -> dict[str, Any]:
        """What `/tokenize` is asked for the ids of a text without added special tokens."""
        return {"prompt": text, "add_special_tokens": False}

    def speculating(self, ask: Callable[[str], Any]) -> dict[str, Scalar]:
        """What the server says of how it speculates, under the names of its effective values.

        Args:
            ask: gives the JSON that an endpoint answers, None where it does not exist.

        Raises:
            UntoldError: the protocol has no word for it.
        """
        del ask
        raise UntoldError("the protocol does not tell how many tokens are drafted")


class _Native(Speech):
    """SGLang's `/generate`."""

    def completion(self, model: Model, ids: Sequence[int], output_tokens: int, *, stream: bool, top: int = 0) -> Call:
        del model
        sampling = {"temperature": TEMPERATURE, "max_new_tokens": output_tokens, "ignore_eos": True}
        payload: dict[str, Any] = {"input_ids": list(ids), "sampling_params": sampling}
        if stream:
            payload["stream"] = True
        if top:
            payload |= {"return_logprob": True, "top_logprobs_num": top}
        return call("/generate", payload, ids_sha256(ids))

    def speculating(self, ask: Callable[[str], Any]) -> dict[str, Scalar]:
        info = ask("/server_info")
        if not isinstance(info, dict):
            raise UntoldError("the server has no /server_info")
        found: dict[str, Scalar] = {}
        for name in _SPECULATIVE:
            value = info.get(name)
            if isinstance(value, str):
                found[name] = plain(value)[:100]
            elif isinstance(value, int) and share(value) is not None:
                found[name] = value
        states = info.get("internal_states")
        first = states[0] if isinstance(states, list) and states and isinstance(states[0], dict) else {}
        if (length := share(first.get("avg_spec_accept_length"))) is not None:
            found["server_accept_length"] = length
        return found

    def streamed(self, each: Call, exchange: Exchange, origin: int) -> RequestRecord:
        return generated(each, exchange, origin)

    def whole(self, each: Call, exchange: Exchange, origin: int) -> RequestRecord:
        return generated_whole(each, exchange, origin)


class _Completions(Speech):
    """`/v1/completions` with the extensions that servers understand or pass over."""

    def completion(self, model: Model, ids: Sequence[int], output_tokens: int, *, stream: bool, top: int = 0) -> Call:
        payload: dict[str, Any] = {
            "model": model(),
            "prompt": list(ids),
            "max_tokens": output_tokens,
            "temperature": TEMPERATURE,
            "ignore_eos": True,
            "return_token_ids": True,
        }
        if stream:
            payload |= {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
        if top:
            payload |= {"logprobs": top, "return_tokens_as_token_ids": True}
        return call("/v1/completions", payload, ids_sha256(ids))

    def tokenized(self, text: str) -> dict[str, Any]:
        return {**super().tokenized(text), "content": text, "add_special": False}  # vLLM's keys, and llama.cpp's

    def streamed(self, each: Call, exchange: Exchange, origin: int) -> RequestRecord:
        return completed(each, exchange, origin)

    def whole(self, each: Call, exchange: Exchange, origin: int) -> RequestRecord:
        return completed_whole(each, exchange, origin)


NATIVE: Speech = _Native()
SPEECHES: Mapping[Name, Speech] = {"sglang": NATIVE, "openai": _Completions()}

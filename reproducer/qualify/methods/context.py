"""How long a prompt the server admits, and how it says no to a longer one."""

import re
import time
from typing import TYPE_CHECKING

from reproducer.documents.measured import RequestRecord, Sample
from reproducer.documents.receipts import FidelityReference
from reproducer.measures.quantities import Count, Fact
from reproducer.qualify.exchanges import UntoldError
from reproducer.qualify.methods.method import Faults, Found, Method, Observed, Parameters
from reproducer.qualify.methods.rules import ended_by_length, prompt_seed, seed, whole
from reproducer.qualify.prompts import ids_sha256, token_prompt

if TYPE_CHECKING:
    from reproducer.qualify.target import Target

MOST_CONTEXT = 4_000_000
_OUTPUT = 1
_ALIVE_TOKENS = 16
_REFUSED = re.compile(r"HTTP status 4[0-9][0-9]: .*\S", re.DOTALL)
_ANSWERED = re.compile(r"HTTP status [0-9]{3}: ", re.DOTALL)


class ContextAdmission(Method):
    """Prompts from one token beyond the stated context length downwards, until one is admitted."""

    id = "context.admission/1"
    counts_errors = True

    def observe(
        self, target: "Target", parameters: Parameters, nonce: str, reference: FidelityReference | None
    ) -> Observed:
        """Refusals cost nothing, so they come first; the one that is admitted is computed; a short one ends it."""
        del reference
        stated = target.context_tokens()
        limit = whole(parameters, "context_tokens") or stated
        if limit is None:
            raise UntoldError("the server does not state its context length, and the lock names none")
        if limit > MOST_CONTEXT:
            raise UntoldError(f"the server states a context of {limit} tokens, {MOST_CONTEXT} are tried at most")
        longest = token_prompt(prompt_seed(nonce, self.id), limit + 1)
        origin, requests = time.monotonic_ns(), list[RequestRecord]()
        for length in _lengths(parameters, limit):
            requests.append(target.whole(longest[:length], _OUTPUT, origin))
            if not _refused(requests[-1]):
                break
        requests.append(target.whole(longest[-_ALIVE_TOKENS:], _OUTPUT, origin))
        return Observed(tuple(requests), {"context_tokens": limit, "stated_tokens": -1 if stated is None else stated})

    def faults(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Faults:
        """Other prompts than the nonce's, another limit than the lock's, or a request that nobody answered."""
        del reference
        limit = whole(sample.facts, "context_tokens")
        if fault := _wrong_limit(parameters, limit, whole(sample.facts, "stated_tokens")):
            yield fault
            return
        lengths = _lengths(parameters, limit)
        if not 1 < len(sample.requests) <= len(lengths) + 1:
            yield f"{len(sample.requests)} requests, from 2 to {len(lengths) + 1} make a sample"
            return
        *tried, last = sample.requests
        longest = token_prompt(seed(sample, self.id), limit + 1)
        prompts = [*(longest[:length] for length in lengths[: len(tried)]), longest[-_ALIVE_TOKENS:]]
        for position, (request, prompt) in enumerate(zip((*tried, last), prompts, strict=True)):
            if request.prompt_sha256 != ids_sha256(prompt):
                yield f"request {position}: the prompt is not the one of the nonce"
            if request.error is not None and not _ANSWERED.match(request.error):
                yield f"request {position}: {request.error}"
        yield from _out_of_order(tried, len(lengths))

    def values(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Found:
        """The limit, the longest prompt that was admitted whole, and how longer ones were answered."""
        del reference
        limit = whole(sample.facts, "context_tokens")
        *tried, last = sample.requests
        lengths = _lengths(parameters, limit)
        sent = list(zip(tried, lengths, strict=False))
        admitted = next((length for request, length in sent if _admitted(request, length)), None)
        yield "context_tokens", Count(limit, "tokens")
        yield "admitted_tokens", None if admitted is None else Count(admitted, "tokens")
        yield "reserved_tokens", None if admitted is None else Count(limit - admitted, "tokens")
        beyond = [request for request, length in sent if length + _OUTPUT > limit]
        cleanly = all(_refused(request) for request in beyond) and all(
            _refused(request) or _admitted(request, length) for request, length in sent
        )
        yield "refused_cleanly", Fact(cleanly, "bool")
        truncated = any(request.error is None and not _admitted(request, length) for request, length in sent)
        yield "never_truncated", Fact(not truncated, "bool")
        yield "alive", Fact(_admitted(last, _ALIVE_TOKENS), "bool")


def _wrong_limit(parameters: Parameters, limit: int, stated: int) -> str:
    """Why the limit is not the one that was to be tried; empty where it is."""
    if not 0 < limit <= MOST_CONTEXT:
        return "the fact 'context_tokens' is no context length"
    if (asked := whole(parameters, "context_tokens")) and limit != asked:
        return f"the limit was {limit} tokens, the lock says {asked}"
    if stated not in (-1, limit):
        return f"the server states a context of {stated} tokens, the limit was {limit}"
    return ""


def _out_of_order(tried: list[RequestRecord], lengths: int) -> Faults:
    """Shorter prompts are sent while longer ones are refused, and no longer."""
    for position, request in enumerate(tried[:-1]):
        if not _refused(request):
            yield f"request {position}: it was not refused, and a shorter one was sent all the same"
    if len(tried) < lengths and _refused(tried[-1]):
        yield "it ended at a refusal, though shorter prompts were left"


def _lengths(parameters: Parameters, limit: int) -> range:
    """The lengths that are tried, the longest one first: one beyond the limit, and down to `reserve` below it."""
    return range(limit + 1, max(limit - whole(parameters, "reserve"), _ALIVE_TOKENS) - 1, -1)


def _refused(request: RequestRecord) -> bool:
    """Whether the server said no: an error of the client's with words, and no token."""
    return request.error is not None and _REFUSED.match(request.error) is not None and not request.events


def _admitted(request: RequestRecord, length: int) -> bool:
    """Whether the server took the whole prompt and made the token that was asked for."""
    whole_prompt = request.error is None and request.prompt_tokens == length
    return whole_prompt and request.output_tokens == _OUTPUT and not any(ended_by_length(request))

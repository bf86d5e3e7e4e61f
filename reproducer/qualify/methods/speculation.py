"""What drafted tokens are worth, by the engine's own counts, and whether those can be true."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reproducer.documents.measured import RequestRecord, Sample, Speculated
from reproducer.documents.receipts import FidelityReference
from reproducer.measures.quantities import Agreement, Count, Fact
from reproducer.qualify.divergence import matched
from reproducer.qualify.exchanges import UntoldError
from reproducer.qualify.methods.method import Faults, Found, Method, Observed, Parameters
from reproducer.qualify.methods.rules import ended_by_length, number, whole
from reproducer.qualify.prompts import REFERENCE_PROMPTS, ids_sha256

if TYPE_CHECKING:
    from reproducer.qualify.target import Target

DRAFTED = "speculative_num_draft_tokens"
SERVER_LENGTH = "server_accept_length"
_CLOSE = 1e-6


class Speculation(Method):
    """Natural prompts one at a time, and what the engine counts of drafted tokens for each."""

    id = "speculation/1"

    def observe(
        self, target: "Target", parameters: Parameters, nonce: str, reference: FidelityReference | None
    ) -> Observed:
        """Every prompt of the reference, or of penny's own where there is none, and the server's view of itself."""
        del nonce
        origin, output = time.monotonic_ns(), whole(parameters, "output_tokens")
        requests = tuple(target.likeliest(prompt, output, 0, origin) for prompt in self._prompts(target, reference))
        if all(request.error is None and request.speculation is None for request in requests):
            raise UntoldError("the server counts no step in which drafted tokens were verified")
        return Observed(requests, target.speech.speculating(target.ask))

    @staticmethod
    def _prompts(target: "Target", reference: FidelityReference | None) -> Sequence[Sequence[int]]:
        if reference is not None:
            return [prompt.prompt_ids for prompt in reference.prompts]
        found = [target.tokens(text) for text in REFERENCE_PROMPTS]
        known = [ids for ids in found if ids]
        if len(known) < len(found):
            raise UntoldError("the server does not turn text into tokens")
        return known

    def faults(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Faults:
        """Other prompts or lengths, and counts that contradict one another or the tokens that came."""
        wanted = len(reference.prompts) if reference is not None else len(REFERENCE_PROMPTS)
        if len(sample.requests) != wanted:
            yield f"{len(sample.requests)} requests instead of {wanted}"
        for position, prompt in enumerate(reference.prompts if reference is not None else ()):
            if sample.requests[position].prompt_sha256 != ids_sha256(prompt.prompt_ids):
                yield f"request {position}: the prompt is not the reference's"
            if sample.requests[position].prompt_tokens != len(prompt.prompt_ids):
                counted = sample.requests[position].prompt_tokens
                sent = len(prompt.prompt_ids)
                yield f"request {position}: the server counts {counted} prompt tokens, {sent} were sent"
        drafted = whole(sample.facts, DRAFTED)
        if drafted <= 1:
            yield "the server does not say how many tokens it drafts"
        output = whole(parameters, "output_tokens")
        for position, request in enumerate(sample.requests):
            if request.output_tokens != output or request.output_ids is None:
                yield f"request {position}: {request.output_tokens} output tokens instead of {output}"
            yield from (f"request {position}: {fault}" for fault in ended_by_length(request))
            if request.speculation is None:
                yield f"request {position}: the server counts no drafted tokens"
            else:
                yield from (f"request {position}: {fault}" for fault in _contradictions(request, drafted - 1))

    def values(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Found:
        """Length and rate over all requests, what was scheduled and verified, and whether the output is as without."""
        del parameters
        ahead = whole(sample.facts, DRAFTED) - 1
        counts = [request.speculation for request in sample.requests if request.speculation is not None]
        steps = sum(each.verify_steps for each in counts)
        accepted, drafted = sum(each.accepted_tokens for each in counts), sum(each.drafted_tokens for each in counts)
        later = sum(request.output_tokens - 1 for request in sample.requests)
        yield "accept_length", Fact(later / steps, "tokens")
        yield "accept_rate", Fact(accepted / drafted, "ratio") if drafted else None
        yield "verify_steps", Count(steps, "count")
        yield "accepted_tokens", Count(accepted, "tokens")
        yield "drafted_tokens", Count(drafted, "tokens")
        yield "scheduled_tokens", Count(steps * ahead, "tokens")
        yield "ran_as_said", Fact(all(_as_said(each, ahead) for each in counts), "bool")
        told = number(sample.facts, SERVER_LENGTH)
        yield "server_accept_length", Fact(told, "tokens") if told >= 0 else None
        if reference is None:
            return
        same = total = 0
        for request, prompt in zip(sample.requests, reference.prompts, strict=True):
            length = min(len(prompt.output_ids), request.output_tokens)
            same += min(matched(prompt.output_ids, request.output_ids or ()), length)
            total += length
        yield "agreement", Agreement(same / total, "ratio")
        yield "same_output", Agreement(same == total, "bool")


def _contradictions(request: RequestRecord, ahead: int) -> Faults:
    """Why the counts of one request cannot all be true, whatever the engine drafted.

    The prompt gives the first token, each step one more and those of the draft that it accepts; only what the last step
    gives beyond the length asked for is cut off.
    """
    counts = request.speculation
    if counts is None:
        return
    steps, accepted = counts.verify_steps, counts.accepted_tokens
    if steps < 1:
        yield "no step verified anything"
        return
    beyond = 1 + steps + accepted - request.output_tokens
    if not 0 <= beyond <= ahead:
        yield f"{request.output_tokens} output tokens do not follow from {steps} steps that accepted {accepted}"
    if accepted > counts.drafted_tokens:
        yield f"{accepted} tokens were accepted of {counts.drafted_tokens} drafted ones"
    rate = accepted / counts.drafted_tokens if counts.drafted_tokens else 0.0
    if abs(counts.accept_rate - rate) > _CLOSE:
        yield f"the server says accept rate {counts.accept_rate:.6g}, its counts give {rate:.6g}"
    lengths = (request.output_tokens / steps, 1 + accepted / steps)
    if all(abs(counts.accept_length - length) > _CLOSE for length in lengths):
        yield f"the server says accept length {counts.accept_length:.6g}, its counts give {lengths[0]:.6g}"
    rows = counts.accepted_in_steps
    if rows is not None and (sum(rows), sum(n * times for n, times in enumerate(rows))) != (steps, accepted):
        yield "the steps by accepted tokens do not add up to the steps and the accepted tokens"


def _as_said(counts: Speculated, ahead: int) -> bool:
    """Whether each step verified as many drafted tokens as the server says it drafts, and none accepted more."""
    rows = counts.accepted_in_steps or ()
    most = max((n for n, times in enumerate(rows) if times), default=0)
    return counts.drafted_tokens == counts.verify_steps * ahead and most <= ahead

"""Whether the runtime says what the lock's reference says."""

import time
from typing import TYPE_CHECKING

from reproducer.documents.base import shown
from reproducer.documents.measured import Sample
from reproducer.documents.receipts import FidelityReference
from reproducer.errors import UsageError
from reproducer.measures.quantities import Agreement, Count, Divergence
from reproducer.qualify.divergence import divergence, matched
from reproducer.qualify.methods.method import Faults, Found, Method, Observed, Parameters
from reproducer.qualify.prompts import ids_sha256

if TYPE_CHECKING:
    from reproducer.qualify.target import Target

_WHOLE = ("length", "stop")  # receipts of the first format say the second


class Fidelity(Method):
    """The prompts of the reference, greedy tokens and log-probabilities compared."""

    id = "fidelity/1"

    def observe(
        self, target: "Target", parameters: Parameters, nonce: str, reference: FidelityReference | None
    ) -> Observed:
        """Every prompt of the reference, one at a time: another batch may give other tokens."""
        del parameters, nonce
        if reference is None:
            raise UsageError(f"{self.id} needs a reference")
        origin = time.monotonic_ns()
        return Observed(
            tuple(
                target.likeliest(prompt.prompt_ids, len(prompt.output_ids), reference.top, origin)
                for prompt in reference.prompts
            )
        )

    def faults(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Faults:
        """Other prompts than the reference's, other lengths, or missing log-probabilities."""
        del parameters
        if reference is None:
            yield "there is no reference"
            return
        if len(sample.requests) != len(reference.prompts):
            yield f"{len(sample.requests)} requests instead of {len(reference.prompts)}"
        if not reference.prompts or any(
            not 0 < len(prompt.output_ids) == len(prompt.top_logprobs) for prompt in reference.prompts
        ):
            yield "the reference does not hold log-probabilities for each output token of each prompt"
        for position, (request, prompt) in enumerate(zip(sample.requests, reference.prompts, strict=True)):
            if request.prompt_sha256 != ids_sha256(prompt.prompt_ids):
                yield f"request {position}: the prompt is not the reference's"
            if request.prompt_tokens != len(prompt.prompt_ids):
                sent = len(prompt.prompt_ids)
                yield f"request {position}: the server counts {request.prompt_tokens} prompt tokens, {sent} were sent"
            if request.output_tokens != len(prompt.output_ids) or request.output_ids is None:
                yield f"request {position}: {request.output_tokens} output tokens instead of {len(prompt.output_ids)}"
            if request.finish_reason not in _WHOLE:
                yield f"request {position}: it ended by {shown(request.finish_reason)}"
            top = request.top_logprobs or ()
            if len(top) != request.output_tokens or any(len(each) < reference.top for each in top):
                yield f"request {position}: not every token has its {reference.top} log-probabilities"

    def values(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Found:
        """Agreement over all prompts, and divergence at every position that both sides reached by the same tokens."""
        del parameters
        if reference is None:
            return
        shares: list[float] = []
        divergences: list[float] = []
        same = total = 0
        for request, prompt in zip(sample.requests, reference.prompts, strict=True):
            count = matched(prompt.output_ids, request.output_ids or ())
            same, total = same + count, total + len(prompt.output_ids)
            shares.append(count / len(prompt.output_ids))
            compared = list(zip(prompt.top_logprobs, request.top_logprobs or (), strict=False))[: count + 1]
            divergences.extend(
                divergence(expected[: reference.top], got[: reference.top]) for expected, got in compared
            )
        yield "agreement", Agreement(same / total, "ratio")
        yield "agreement_worst", Agreement(min(shares), "ratio")
        yield "kl_mean", Divergence(sum(divergences) / len(divergences), "nats")
        yield "kl_worst", Divergence(max(divergences), "nats")
        yield "positions", Count(len(divergences), "count")

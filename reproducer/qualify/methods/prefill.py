"""How fast prompts are read."""

from typing import TYPE_CHECKING

from reproducer.documents.measured import Sample
from reproducer.documents.receipts import FidelityReference
from reproducer.measures.quantities import Duration, PrefillRate
from reproducer.qualify.methods.method import Faults, Found, Method, Observed, Parameters
from reproducer.qualify.methods.rules import cold, prompts, requests_as_asked, to_first

if TYPE_CHECKING:
    from reproducer.qualify.target import Target


class PrefillCold(Method):
    """One request with a unique prompt and one output token."""

    id = "prefill.cold/1"

    def observe(
        self, target: "Target", parameters: Parameters, nonce: str, reference: FidelityReference | None
    ) -> Observed:
        """One request for one token."""
        del reference
        return Observed(target.streamed(prompts(parameters, self.id, nonce), 1))

    def faults(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Faults:
        """Another prompt or length, or a cached token: the server's count is the proof that it was cold."""
        del reference
        yield from requests_as_asked(parameters, sample, self.id, requests=1, output=1)
        yield from cold(sample.requests)

    def values(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Found:
        """Prompt tokens over the time to the first token."""
        del parameters, reference
        (request,) = sample.requests
        yield "prefill_rate", PrefillRate.over(request.prompt_tokens, to_first(request))
        yield "ttft_s", Duration.of(to_first(request))

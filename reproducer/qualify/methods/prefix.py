"""Prompts that need not be computed again: from memory in one boot, from storage in the next."""

from typing import TYPE_CHECKING

from reproducer.documents.measured import Sample
from reproducer.documents.receipts import FidelityReference
from reproducer.measures.quantities import Agreement, Count, Duration, Fact, RestoredPrefixRate
from reproducer.qualify.methods.method import Faults, Found, Method, Observed, Parameters
from reproducer.qualify.methods.rules import cold, number, prompts, requests_as_asked, to_first, whole

if TYPE_CHECKING:
    from reproducer.qualify.target import Target


class PrefixReuse(Method):
    """The same unique prompt twice in one boot."""

    id = "prefix.reuse/1"

    def observe(
        self, target: "Target", parameters: Parameters, nonce: str, reference: FidelityReference | None
    ) -> Observed:
        """The same prompt twice, one after the other; all times are relative to the first one sent."""
        del reference
        (prompt,) = prompts(parameters, self.id, nonce)
        each, read = target.completion(prompt, 1, stream=True), target.speech.streamed
        (cold_one,) = target.together([each])
        (warm_one,) = target.together([each])
        return Observed((read(each, cold_one, cold_one.sent_ns), read(each, warm_one, cold_one.sent_ns)))

    def faults(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Faults:
        """Another prompt or length, or a first request that was not cold."""
        del reference
        yield from requests_as_asked(parameters, sample, self.id, requests=2, output=1, one_prompt=True)
        yield from cold(sample.requests[:1])

    def values(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Found:
        """What the second request had cached, and both times to the first token."""
        del reference
        first, warm = sample.requests
        yield "reused_tokens", Count(warm.cached_tokens, "tokens")
        yield "reused_share", Fact(warm.cached_tokens / number(parameters, "prompt_tokens"), "ratio")
        yield "ttft_cold_s", Duration.of(to_first(first))
        yield "ttft_warm_s", Duration.of(to_first(warm))


class RestoreRestart(Method):
    """A unique prompt in one boot, and again in the next one, where its pages lie in storage only."""

    id = "restore.restart/1"

    def observe(
        self, target: "Target", parameters: Parameters, nonce: str, reference: FidelityReference | None
    ) -> Observed:
        """One half: the prompt once."""
        del reference
        return Observed(target.streamed(prompts(parameters, self.id, nonce), whole(parameters, "output_tokens")))

    def faults(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Faults:
        """A first request that was not cold, one boot only, or tokens from memory where only storage was left."""
        del reference
        output = whole(parameters, "output_tokens")
        yield from requests_as_asked(parameters, sample, self.id, requests=2, output=output, one_prompt=True)
        yield from cold(sample.requests[:1])
        if sample.facts.get("written_boot") in (None, sample.boot):
            yield "written and restored in one boot"
        tiers = sample.requests[1].cached_by_tier
        if kept := tiers.get("device", 0) + tiers.get("host", 0):
            yield f"{kept} tokens came from memory, though the server was started anew"

    def values(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Found:
        """What came from storage, how fast, and whether the output is the same."""
        del reference
        written, restored = sample.requests
        stored = restored.cached_by_tier.get("storage", 0)
        yield "storage_tokens", Count(stored, "tokens")
        yield "storage_share", Fact(stored / number(parameters, "prompt_tokens"), "ratio")
        yield "restored_rate", RestoredPrefixRate.over(stored, to_first(restored))
        yield "restore_s", Duration.of(to_first(restored))
        yield "cold_s", Duration.of(to_first(written))
        yield "same_output", Agreement(written.output_ids == restored.output_ids, "bool")

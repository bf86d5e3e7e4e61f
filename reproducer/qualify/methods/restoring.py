"""Several prompts that come from storage at once, and pages that another page size must not find."""

from statistics import median
from typing import TYPE_CHECKING

from reproducer.documents.measured import Sample
from reproducer.documents.receipts import FidelityReference
from reproducer.measures.definitions import Part
from reproducer.measures.quantities import (
    AggregateRestoredRate,
    Agreement,
    Count,
    Duration,
    Fact,
    RestoredPrefixRate,
)
from reproducer.qualify.methods.method import Faults, Found, Method, Observed, Parameters
from reproducer.qualify.methods.rules import (
    agreeing,
    cold,
    prompts,
    requests_as_asked,
    started_anew,
    to_first,
    whole,
)

if TYPE_CHECKING:
    from reproducer.qualify.target import Target


def stored(sample: Sample, request: int) -> int:
    """The tokens of one request that came from storage."""
    return sample.requests[request].cached_by_tier.get("storage", 0)


class RestoreConcurrent(Method):
    """Different prompts released together in one boot, and together again in the next."""

    id = "restore.concurrent/1"

    def observe(
        self, target: "Target", parameters: Parameters, nonce: str, reference: FidelityReference | None
    ) -> Observed:
        """One half: every prompt once, all at the same time."""
        del reference
        sent = prompts(parameters, self.id, nonce, whole(parameters, "concurrency"))
        return Observed(target.streamed(sent, whole(parameters, "output_tokens")))

    def faults(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Faults:
        """A first request that was not cold, one boot only, or tokens from memory where only storage was left."""
        del reference
        output, count = whole(parameters, "output_tokens"), whole(parameters, "concurrency")
        yield from requests_as_asked(parameters, sample, self.id, requests=2 * count, output=output, in_turn=count)
        yield from cold(sample.requests[:count])
        yield from started_anew(sample, ("written_boot",), sample.requests[count:])

    def values(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Found:
        """What each request had from storage, how long the slowest and the middle one took, and the rate over all."""
        del reference
        count = whole(parameters, "concurrency")
        written, restored = sample.requests[:count], sample.requests[count:]
        tokens = [stored(sample, count + place) for place in range(count)]
        times = [to_first(request) for request in restored]
        for each in tokens:
            yield "storage_tokens", Count(each, "tokens")
        yield "storage_tokens_least", Count(min(tokens), "tokens")
        for each, taken in zip(tokens, times, strict=True):
            yield "restored_rate", RestoredPrefixRate.over(each, taken)
        last = max(request.events[0][0] for request in restored)
        first = min(request.sent_ns for request in restored)
        yield "aggregate_restored_rate", AggregateRestoredRate.over(sum(tokens), last - first)
        yield "restore_median_s", Duration(median(times) / 1e9, "s")
        yield "restore_worst_s", Duration.of(max(times))
        yield "cold_worst_s", Duration.of(max(to_first(request) for request in written))
        pairs = list(zip(written, restored, strict=True))
        yield "agreement", agreeing(pairs)
        yield "same_outputs", Agreement(all(one.output_ids == other.output_ids for one, other in pairs), "bool")


class NamespaceFlip(Method):
    """A prompt whose pages are there, are not there under another page size, and are there again."""

    id = "namespace.flip/1"

    def observe(
        self, target: "Target", parameters: Parameters, nonce: str, reference: FidelityReference | None
    ) -> Observed:
        """The prompt once."""
        del reference
        return Observed(target.streamed(prompts(parameters, self.id, nonce), whole(parameters, "output_tokens")))

    def observe_part(
        self, part: Part, target: "Target", parameters: Parameters, nonce: str, reference: FidelityReference | None
    ) -> Observed:
        """The prompt twice where it is written, so that a hit is seen before the flip; once in each later boot."""
        first = self.observe(target, parameters, nonce, reference)
        if part != "write":
            return first
        return Observed((*first.requests, *self.observe(target, parameters, nonce, reference).requests))

    def faults(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Faults:
        """A first request that was not cold, one boot for two, pages of another page size, or tokens from memory."""
        del reference
        output = whole(parameters, "output_tokens")
        yield from requests_as_asked(parameters, sample, self.id, requests=4, output=output, one_prompt=True)
        yield from cold(sample.requests[:1])
        flipped, back = sample.requests[2:4]
        if found := flipped.cached_by_tier.get("storage", 0) + flipped.cached_by_tier.get("host", 0):
            yield f"{found} tokens were found under another page size: the namespaces are not apart"
        yield from started_anew(sample, ("written_boot", "flipped_boot"), (back,))

    def values(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Found:
        """Hits before, between and after, and whether the output is the same once the pages are found again."""
        del parameters, reference
        written, again, flipped, back = sample.requests
        yield "hit_tokens_before", Count(again.cached_tokens, "tokens")
        yield "missed_tokens", Count(flipped.prompt_tokens - flipped.cached_tokens, "tokens")
        yield "hit_tokens_after", Count(stored(sample, 3), "tokens")
        yield "hits_again", Fact(stored(sample, 3) > 0, "bool")
        yield "restore_s", Duration.of(to_first(back))
        yield "cold_s", Duration.of(to_first(written))
        yield "agreement_between", agreeing([(written, flipped)])
        yield "same_output", Agreement(written.output_ids == back.output_ids, "bool")

"""Whether greedy tokens depend on what else is computed, and on what was cached."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reproducer.documents.measured import RequestRecord, Sample
from reproducer.documents.receipts import FidelityReference
from reproducer.measures.quantities import Agreement, Count, Fact
from reproducer.qualify.divergence import matched
from reproducer.qualify.methods.method import Faults, Found, Method, Observed, Parameters
from reproducer.qualify.methods.rules import agreeing, cold, prompts, requests_as_asked, streamed, whole

if TYPE_CHECKING:
    from reproducer.qualify.target import Target


class Determinism(Method):
    """The same greedy prompts alone and cold, alone with their prefix cached, and all at once with it cached.

    Between the first two only the cache differs, between the last two only the batch.
    """

    id = "determinism/1"

    def observe(
        self, target: "Target", parameters: Parameters, nonce: str, reference: FidelityReference | None
    ) -> Observed:
        """Each prompt alone, each alone again, all together; each request or batch has an origin of its own."""
        del reference
        sent = prompts(parameters, self.id, nonce, whole(parameters, "concurrency"))
        output = whole(parameters, "output_tokens")
        alone = [request for prompt in sent for request in target.streamed([prompt], output)]
        cached = [request for prompt in sent for request in target.streamed([prompt], output)]
        return Observed((*alone, *cached, *target.streamed(sent, output)))

    def faults(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Faults:
        """A cold request that was not, a cached one without a cached token, or a batch that was none."""
        del reference
        output, count = whole(parameters, "output_tokens"), whole(parameters, "concurrency")
        yield from requests_as_asked(parameters, sample, self.id, requests=3 * count, output=output, in_turn=count)
        alone, cached, batch = _thirds(sample, count)
        yield from cold(alone)
        for place, (one, other) in enumerate(zip(cached, batch, strict=True)):
            if one.cached_tokens == 0:
                yield f"prompt {place}: no token of it was cached the second time"
            if one.cached_tokens != other.cached_tokens:
                yield f"prompt {place}: {one.cached_tokens} tokens cached alone, {other.cached_tokens} in the batch"
        yield from streamed(sample)
        if min(request.events[-1][0] for request in batch) <= max(request.events[0][0] for request in batch):
            yield "the requests of the batch were never all being answered at once"

    def values(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Found:
        """Agreement of each pair, the first position at which one of its outputs differs, and whether all are equal."""
        del reference
        alone, cached, batch = _thirds(sample, whole(parameters, "concurrency"))
        for name, one, other in (
            ("alone_cached", alone, cached),
            ("cached_batch", cached, batch),
            ("alone_batch", alone, batch),
        ):
            pairs = list(zip(one, other, strict=True))
            yield f"agreement_{name}", agreeing(pairs)
            yield f"first_difference_{name}", _first_difference(pairs)
        same = all(
            one.output_ids == two.output_ids == three.output_ids
            for one, two, three in zip(alone, cached, batch, strict=True)
        )
        yield "identical", Agreement(same, "bool")
        first, last = min(request.events[0][0] for request in batch), max(request.events[-1][0] for request in batch)
        both = min(request.events[-1][0] for request in batch) - max(request.events[0][0] for request in batch)
        yield "overlap", Fact(both / (last - first), "ratio")


def _thirds(
    sample: Sample, count: int
) -> tuple[Sequence[RequestRecord], Sequence[RequestRecord], Sequence[RequestRecord]]:
    requests = sample.requests
    return requests[:count], requests[count : 2 * count], requests[2 * count :]


def _first_difference(pairs: Sequence[tuple[RequestRecord, RequestRecord]]) -> Count:
    """The earliest position, from 0, at which any pair of outputs differs; the length where none does."""
    return Count(min(matched(one.output_ids or (), other.output_ids or ()) for one, other in pairs), "tokens")

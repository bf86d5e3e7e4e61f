"""How fast tokens come, alone and beside others."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from reproducer.documents.measured import RequestRecord, Sample
from reproducer.documents.receipts import FidelityReference
from reproducer.measures.quantities import AggregateMakespanRate, Duration, Fact, Quantity
from reproducer.qualify.methods.method import Faults, Found, Method, Observed, Parameters
from reproducer.qualify.methods.rules import cold, decoding, prompts, requests_as_asked, streamed, to_first, whole

if TYPE_CHECKING:
    from reproducer.qualify.target import Target

_MS = 1_000_000


class DecodeSingle(Method):
    """One streamed request alone."""

    id = "decode.single/1"

    def observe(
        self, target: "Target", parameters: Parameters, nonce: str, reference: FidelityReference | None
    ) -> Observed:
        """One request with a prompt of its own."""
        del reference
        return Observed(target.streamed(prompts(parameters, self.id, nonce), whole(parameters, "output_tokens")))

    def faults(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Faults:
        """Another prompt or length, a cached token, or no stream."""
        del reference
        output = whole(parameters, "output_tokens")
        yield from requests_as_asked(parameters, sample, self.id, requests=1, output=output)
        yield from cold(sample.requests)
        yield from streamed(sample)

    def values(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Found:
        """Its rate after the first chunk, and the time to that one."""
        del parameters, reference
        (request,) = sample.requests
        yield "decode_rate", decoding(request)
        yield "ttft_s", Duration.of(to_first(request))


class DecodeSingleMakespan(DecodeSingle):
    """The same with the whole time of the request: all of its tokens from sending to the last one."""

    id = "decode.single/2"

    def values(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Found:
        """Both rates, which are different kinds, and both times."""
        yield from super().values(parameters, sample, reference)
        yield from _makespan("makespan_rate", sample.requests)


class DecodeConcurrent(Method):
    """Several streamed requests released together."""

    id = "decode.concurrent/1"

    def observe(
        self, target: "Target", parameters: Parameters, nonce: str, reference: FidelityReference | None
    ) -> Observed:
        """Requests with different prompts, all at once."""
        del reference
        sent = prompts(parameters, self.id, nonce, whole(parameters, "concurrency"))
        return Observed(target.streamed(sent, whole(parameters, "output_tokens")))

    def faults(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Faults:
        """Other prompts or lengths, a cached token, or no stream."""
        del reference
        output, requests = whole(parameters, "output_tokens"), whole(parameters, "concurrency")
        yield from requests_as_asked(parameters, sample, self.id, requests=requests, output=output)
        yield from cold(sample.requests)
        yield from streamed(sample)

    def values(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Found:
        """Each request's rate, all tokens over the makespan, and how long all were decoding."""
        del parameters, reference
        requests = sample.requests
        for request in requests:
            yield "request_rate", decoding(request)
        last = max(request.events[-1][0] for request in requests)
        tokens = sum(request.output_tokens for request in requests)
        yield "aggregate_rate", AggregateMakespanRate.over(tokens, last - min(request.sent_ns for request in requests))
        yield "ttft_worst_s", Duration.of(max(to_first(request) for request in requests))
        first = min(request.events[0][0] for request in requests)
        both = min(request.events[-1][0] for request in requests) - max(request.events[0][0] for request in requests)
        yield "overlap", Fact(max(both, 0) / (last - first), "ratio")


class DecodeTogether(DecodeConcurrent):
    """The same with the proof that the requests were released together."""

    id = "decode.concurrent/2"

    def faults(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Faults:
        """Also requests that were sent too far apart to be called together."""
        yield from super().faults(parameters, sample, reference)
        most = whole(parameters, "start_spread_ms")
        if (apart := _start_spread(sample.requests)) > most * _MS:
            yield f"the requests were sent {apart / _MS:.1f} ms apart, together is {most} ms at most"

    def values(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Found:
        """Also the whole time, and how far apart the first and the last request were sent."""
        yield from super().values(parameters, sample, reference)
        yield from _makespan("", sample.requests)
        yield "start_spread_s", Duration.of(_start_spread(sample.requests))


def _start_spread(requests: tuple[RequestRecord, ...]) -> int:
    """Nanoseconds from the first request sent to the last one sent."""
    return max(request.sent_ns for request in requests) - min(request.sent_ns for request in requests)


def _makespan(rate: str, requests: tuple[RequestRecord, ...]) -> Iterator[tuple[str, Quantity | None]]:
    """The time from the first request sent to the last token of any, and all tokens over it where a name is given."""
    took = max(request.events[-1][0] for request in requests) - min(request.sent_ns for request in requests)
    if rate:
        yield rate, AggregateMakespanRate.over(sum(request.output_tokens for request in requests), took)
    yield "makespan_s", Duration.of(took)

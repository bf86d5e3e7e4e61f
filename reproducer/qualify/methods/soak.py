"""Long and short requests for minutes: what fails, what grows, what becomes slower."""

import time
from collections.abc import Iterator, Sequence
from itertools import count
from statistics import linear_regression, median
from typing import TYPE_CHECKING

from reproducer.documents.measured import Reading, RequestRecord, Sample
from reproducer.documents.receipts import FidelityReference
from reproducer.measures.quantities import AggregateMakespanRate, Count, Duration, Fact
from reproducer.qualify.holdings import reading
from reproducer.qualify.methods.method import Faults, Found, Method, Observed, Parameters
from reproducer.qualify.methods.rules import ended_by_length, number, prompt_seed, seed, whole
from reproducer.qualify.prompts import ids_sha256, token_prompt

if TYPE_CHECKING:
    from reproducer.qualify.target import Target

MOST_REQUESTS = 20_000
MOST_TOKENS = 40_000_000
_READINGS = 120
_UNIQUE = 8
_FEWEST = 3
_MIB_MIN = 60_000_000_000 / (1 << 20)


def rounds(parameters: Parameters, of_nonce: str) -> Iterator[tuple[tuple[tuple[int, ...], int], ...]]:
    """The rounds of a soak, without end: (prompt, output tokens) of each request, in the order they are listed in.

    Each round has the same numbers of long and short requests in another order. Every prompt begins with tokens of its
    own, so that none is cached; what follows them is the same for all of a kind.
    """
    kinds: list[tuple[tuple[int, ...], int]] = []
    for name in ("long", "short"):
        body = token_prompt(f"{of_nonce}/{name}", whole(parameters, f"{name}_prompt_tokens"))
        kinds += [(body, whole(parameters, f"{name}_output_tokens"))] * whole(parameters, name)
    for at in count():
        keys = token_prompt(f"{of_nonce}/{at}", len(kinds) * (_UNIQUE + 1))
        order = sorted(range(len(kinds)), key=lambda which: (keys[which], which))
        yield tuple(
            (keys[len(kinds) + which * _UNIQUE :][:_UNIQUE] + kinds[which][0][_UNIQUE:], kinds[which][1])
            for which in order
        )


class Soak(Method):
    """Rounds of long and short requests released together, one after the other for so many minutes."""

    id = "soak/1"
    counts_errors = True

    def observe(
        self, target: "Target", parameters: Parameters, nonce: str, reference: FidelityReference | None
    ) -> Observed:
        """Round after round, looking now and then at what the server holds; ends early where the server is lost."""
        del reference
        lasting = int(number(parameters, "minutes") * 60e9)
        origin = time.monotonic_ns()
        requests: list[RequestRecord] = []
        readings = [reading(target.pid, 0)]
        for each in rounds(parameters, prompt_seed(nonce, self.id)):
            calls = [target.completion(prompt, output, stream=False) for prompt, output in each]
            exchanges = target.together(calls)
            requests += [
                target.speech.whole(one, got, origin).model_copy(update={"output_ids": None})
                for one, got in zip(calls, exchanges, strict=True)
            ]
            now = max(exchange.finished_ns for exchange in exchanges) - origin
            if now - readings[-1].at_ns >= lasting // _READINGS:
                readings.append(reading(target.pid, now))
            lost = all(exchange.fault == "connection" for exchange in exchanges)
            sent = len(requests) // len(calls) * _tokens_of_round(parameters)
            if now >= lasting or lost or len(requests) + len(calls) > MOST_REQUESTS or sent > MOST_TOKENS:
                break
        return Observed(tuple(requests), readings=tuple(readings))

    def faults(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Faults:
        """Another schedule than the nonce's, less time than asked for, or too few rounds to compare."""
        del reference
        size = whole(parameters, "long") + whole(parameters, "short")
        if not sample.requests or len(sample.requests) % size:
            yield f"{len(sample.requests)} requests are no rounds of {size}"
        tokens = len(sample.requests) // size * _tokens_of_round(parameters)
        if len(sample.requests) > MOST_REQUESTS or tokens > 2 * MOST_TOKENS:
            yield f"more than {MOST_REQUESTS} requests or {2 * MOST_TOKENS} prompt tokens"
        schedule = rounds(parameters, seed(sample, self.id))
        before = 0
        for at, (requests, planned) in enumerate(zip(_in_rounds(parameters, sample), schedule, strict=False)):
            for place, (request, (prompt, output)) in enumerate(zip(requests, planned, strict=True)):
                if request.sent_ns < before:
                    yield f"round {at}, request {place}: it was sent before the round before it had ended"
                yield from (f"round {at}, request {place}: {each}" for each in _not_asked(request, prompt, output))
            before = max(request.finished_ns for request in requests)
        lasted, asked = before / 1e9, number(parameters, "minutes") * 60
        if lasted < asked:
            yield f"it ended after {lasted:.1f} s, {asked:g} s were asked for"
        if any(not third for third in _outer_thirds(parameters, sample)):
            yield "in its first or last third no round began"
        times = [each.at_ns for each in sample.readings or ()]
        if times != sorted(set(times)) or (times and times[-1] > before + 60_000_000_000):
            yield "the times of its readings do not rise, or lie outside of it"

    def values(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Found:
        """What failed, how fast the last third was against the first, and what the server held more and more of."""
        del reference
        good = [request for request in sample.requests if request.error is None]
        yield "requests", Count(len(sample.requests), "requests")
        yield "errors", Count(len(sample.requests) - len(good), "requests")
        first, last = (_rate(third) for third in _outer_thirds(parameters, sample))
        yield "rate_first", first
        yield "rate_last", last
        yield "kept_rate", Fact(last / first, "ratio") if first is not None and last is not None else None
        yield "request_worst_s", Duration.of(max((each.finished_ns - each.sent_ns for each in good), default=0))
        held = sample.readings or ()
        yield "resident_slope", _slope([(each.at_ns, each.resident_bytes) for each in held])
        yield "gpu_slope", _slope([(each.at_ns, each.gpu_bytes) for each in held])
        yield "open_files_growth", _growth(held)


def _tokens_of_round(parameters: Parameters) -> int:
    return sum(whole(parameters, name) * whole(parameters, f"{name}_prompt_tokens") for name in ("long", "short"))


def _not_asked(request: RequestRecord, prompt: tuple[int, ...], output: int) -> Faults:
    """In what a request is not the one of the schedule; of one that failed only the prompt is known."""
    if request.prompt_sha256 != ids_sha256(prompt):
        yield "the prompt is not the one of the nonce"
    if request.error is None and request.prompt_tokens != len(prompt):
        yield f"the server counts {request.prompt_tokens} prompt tokens, {len(prompt)} were sent"
    if request.error is None and request.output_tokens != output:
        yield f"{request.output_tokens} output tokens instead of {output}"
    if request.error is None:
        yield from ended_by_length(request)


def _in_rounds(parameters: Parameters, sample: Sample) -> list[tuple[RequestRecord, ...]]:
    size = max(whole(parameters, "long") + whole(parameters, "short"), 1)
    return [sample.requests[at : at + size] for at in range(0, len(sample.requests) - size + 1, size)]


def _outer_thirds(parameters: Parameters, sample: Sample) -> tuple[list[tuple[RequestRecord, ...]], ...]:
    """The rounds that began in the first third of the time, and those that began in the last."""
    rounds = _in_rounds(parameters, sample)
    end = max((request.finished_ns for request in sample.requests), default=0)
    begun = [(min(request.sent_ns for request in requests), requests) for requests in rounds]
    return (
        [requests for at, requests in begun if 3 * at < end],
        [requests for at, requests in begun if 3 * at >= 2 * end],
    )


def _rate(rounds: Sequence[tuple[RequestRecord, ...]]) -> AggregateMakespanRate | None:
    """Output tokens of rounds over the time that the rounds took, without what lies between them."""
    tokens = sum(request.output_tokens for requests in rounds for request in requests if request.error is None)
    taken = sum(
        max(request.finished_ns for request in requests) - min(request.sent_ns for request in requests)
        for requests in rounds
    )
    return AggregateMakespanRate.over(tokens, taken)


def _slope(points: Sequence[tuple[int, int | None]]) -> Fact | None:
    """The slope of the least-squares line through the readings after the first third; None of fewer than three."""
    known = [(at, value) for at, value in points if value is not None]
    later = [(at, value) for at, value in known if 3 * at >= known[-1][0]]
    if len(later) < _FEWEST:
        return None
    line = linear_regression([at for at, _ in later], [value for _, value in later])
    return Fact(line.slope * _MIB_MIN, "MiB/min")


def _growth(held: Sequence[Reading]) -> Fact | None:
    """Median of the open files in the last third less the one of the third before; None of too few readings."""
    known = [(each.at_ns, each.open_files) for each in held if each.open_files is not None]
    if not known:
        return None
    end = known[-1][0]
    middle = [files for at, files in known if end <= 3 * at < 2 * end]
    last = [files for at, files in known if 3 * at >= 2 * end]
    return Fact(median(last) - median(middle), "count") if middle and last else None

"""From raw samples to derived values, and from those to a status: pure functions that `verify` calls again."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from reproducer.documents.lock import Measure, Scalar, Threshold
from reproducer.documents.receipts import Derived, FidelityReference, RequestRecord, Sample, ThresholdResult
from reproducer.qualify.definitions import COUNTED, definition, resolved
from reproducer.qualify.divergence import divergence, matched
from reproducer.qualify.prompts import ANSWER, needle_prompt
from reproducer.qualify.quantities import (
    AggregateMakespanRate,
    Agreement,
    CompletedRequestRate,
    Count,
    Divergence,
    Duration,
    Fact,
    PrefillRate,
    Quantity,
    RestoredPrefixRate,
    summarise,
)
from reproducer.qualify.validity import Parameters, invalid_reason, number, seed, whole

_Found = Iterator[tuple[str, Quantity | None]]
_SHARES = frozenset({"found"})


@dataclass(frozen=True)
class Judgement:
    """What the samples of a measure amount to; `reason` says why it did not pass."""

    status: Literal["passed", "failed"]
    thresholds: tuple[ThresholdResult, ...]
    reason: str


def derive(
    measure: str,
    parameters: Mapping[str, Scalar],
    samples: Sequence[Sample],
    reference: FidelityReference | None = None,
) -> tuple[Derived, ...]:
    """Every value that a measure gives, from its raw samples alone.

    Warm-up samples and invalid ones are left out; a value that no sample gives is left out of the result.

    Args:
        measure: id of the measure.
        parameters: all of its parameters, as they stand in the receipt.
        samples: every sample of the receipt.
        reference: what `fidelity` compares with.

    Returns:
        The values in the order of the definition, then `valid_samples` and `invalid_samples`.

    Raises:
        InvalidDocumentError: the measure is not known, or the parameters are not its own.
    """
    known = definition(measure)
    parameters = resolved(measure, parameters)
    measured = [sample for sample in samples if not sample.warmup]
    valid = [sample for sample in measured if not invalid_reason(measure, parameters, sample, reference)]
    found: dict[str, list[Quantity]] = {value.name: [] for value in known.values}
    for sample in valid:
        for name, quantity in _of_sample(measure, parameters, sample, reference):
            if quantity is not None:
                found[name].append(quantity)
    found[COUNTED[0].name] = [Count(len(valid), "count")]
    found[COUNTED[1].name] = [Count(len(measured) - len(valid), "count")]
    derived = (summarise(name, quantities, share=name in _SHARES) for name, quantities in found.items())
    return tuple(each for each in derived if each is not None)


def judge(measure: Measure, samples: Sequence[Sample], derived: Sequence[Derived]) -> Judgement:
    """Whether a measure passed: every threshold holds, every sample is valid, and there are as many as the lock asks.

    A threshold on a value that was not derived has failed.
    """
    values = {each.name: each.value for each in derived}
    thresholds = tuple(_compared(threshold, values.get(threshold.value)) for threshold in measure.thresholds)
    reasons = []
    measured = sum(not sample.warmup for sample in samples)
    if invalid := int(values.get("invalid_samples", measured)):
        marks = [str(sample.facts.get("invalid", "")) for sample in samples if not sample.warmup]
        first = next((mark for mark in marks if mark), "see its record")
        reasons.append(f"{invalid} of {measured} samples are invalid: {first}")
    if values.get("valid_samples", 0) < measure.repeats:
        reasons.append(f"{int(values.get('valid_samples', 0))} valid samples, the lock asks for {measure.repeats}")
    for result in thresholds:
        if not result.passed:
            bound = result.threshold
            got = "no value" if result.got is None else f"{result.got:.6g}"
            reasons.append(f"{bound.value} is {got}, the lock asks for {bound.comparator} {bound.bound:g} {bound.unit}")
    return Judgement("failed" if reasons else "passed", thresholds, "; ".join(reasons))


def _compared(threshold: Threshold, got: float | None) -> ThresholdResult:
    holds = got is not None and (
        got >= threshold.bound
        if threshold.comparator == ">="
        else got <= threshold.bound
        if threshold.comparator == "<="
        else got == threshold.bound
    )
    return ThresholdResult(threshold=threshold, got=got, passed=holds)


def _of_sample(measure: str, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> _Found:
    if measure == "fidelity/1":
        return _fidelity(sample, reference)
    return _VALUES[measure](parameters, sample)


def _to_first(request: RequestRecord) -> int:
    """Nanoseconds from sending to the first token."""
    return request.events[0][0] - request.sent_ns


def _decoding(request: RequestRecord) -> CompletedRequestRate | None:
    """The tokens after the first chunk over the time after the first chunk."""
    (begun, first), (ended, last) = request.events[0], request.events[-1]
    return CompletedRequestRate.over(last - first, ended - begun)


def _decode_single(parameters: Parameters, sample: Sample) -> _Found:
    del parameters
    (request,) = sample.requests
    yield "decode_rate", _decoding(request)
    yield "ttft_s", Duration.of(_to_first(request))


def _decode_concurrent(parameters: Parameters, sample: Sample) -> _Found:
    del parameters
    requests = sample.requests
    for request in requests:
        yield "request_rate", _decoding(request)
    last = max(request.events[-1][0] for request in requests)
    tokens = sum(request.output_tokens for request in requests)
    yield "aggregate_rate", AggregateMakespanRate.over(tokens, last - min(request.sent_ns for request in requests))
    yield "ttft_worst_s", Duration.of(max(_to_first(request) for request in requests))
    first = min(request.events[0][0] for request in requests)
    both = min(request.events[-1][0] for request in requests) - max(request.events[0][0] for request in requests)
    yield "overlap", Fact(max(both, 0) / (last - first), "ratio")


def _prefill(parameters: Parameters, sample: Sample) -> _Found:
    del parameters
    (request,) = sample.requests
    yield "prefill_rate", PrefillRate.over(request.prompt_tokens, _to_first(request))
    yield "ttft_s", Duration.of(_to_first(request))


def _reuse(parameters: Parameters, sample: Sample) -> _Found:
    cold, warm = sample.requests
    yield "reused_tokens", Count(warm.cached_tokens, "tokens")
    yield "reused_share", Fact(warm.cached_tokens / number(parameters, "prompt_tokens"), "ratio")
    yield "ttft_cold_s", Duration.of(_to_first(cold))
    yield "ttft_warm_s", Duration.of(_to_first(warm))


def _restore(parameters: Parameters, sample: Sample) -> _Found:
    written, restored = sample.requests
    stored = restored.cached_by_tier.get("storage", 0)
    yield "storage_tokens", Count(stored, "tokens")
    yield "storage_share", Fact(stored / number(parameters, "prompt_tokens"), "ratio")
    yield "restored_rate", RestoredPrefixRate.over(stored, _to_first(restored))
    yield "restore_s", Duration.of(_to_first(restored))
    yield "cold_s", Duration.of(_to_first(written))
    yield "same_output", Agreement(written.output_ids == restored.output_ids, "bool")


def _fidelity(sample: Sample, reference: FidelityReference | None) -> _Found:
    """Agreement over all prompts, and divergence at every position that both sides reached by the same tokens."""
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
        divergences.extend(divergence(expected[: reference.top], got[: reference.top]) for expected, got in compared)
    yield "agreement", Agreement(same / total, "ratio")
    yield "agreement_worst", Agreement(min(shares), "ratio")
    yield "kl_mean", Divergence(sum(divergences) / len(divergences), "nats")
    yield "kl_worst", Divergence(max(divergences), "nats")
    yield "positions", Count(len(divergences), "count")


def _needle(parameters: Parameters, sample: Sample) -> _Found:
    (request,) = sample.requests
    sentences, depth = whole(sample.facts, "sentences"), number(parameters, "depth")
    answer = needle_prompt(seed(sample, "needle.short/1"), sentences=sentences, depth=depth).answer
    found = re.search(rf"(?<!\d){answer}(?!\d)", request.output_text or "") is not None
    yield "found", Fact(found, "ratio")
    yield "needle_tokens", Count(request.prompt_tokens, "tokens")


def _chat(parameters: Parameters, sample: Sample) -> _Found:
    (request,) = sample.requests
    yield "sensible", Fact(ANSWER in (request.output_text or ""), "bool")
    yield "finished", Fact(request.finish_reason == "stop", "bool")
    total = whole(sample.facts, "usage_total")
    counted = whole(sample.facts, "answer_tokens")
    consistent = (
        total == request.prompt_tokens + request.output_tokens
        and 0 < request.output_tokens <= whole(parameters, "output_tokens")
        and request.prompt_tokens > 0
        and (counted < 0 or counted <= request.output_tokens <= counted + 1)
    )
    yield "usage_consistent", Fact(consistent, "bool")


_VALUES: Mapping[str, Callable[[Parameters, Sample], _Found]] = {
    "decode.single/1": _decode_single,
    "decode.concurrent/1": _decode_concurrent,
    "prefill.cold/1": _prefill,
    "prefix.reuse/1": _reuse,
    "restore.restart/1": _restore,
    "needle.short/1": _needle,
    "chat.smoke/1": _chat,
}

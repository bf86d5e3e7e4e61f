"""Whether a sample measured what it was meant to: pure functions over the raw record.

An invalid sample is kept, marked in its facts and left out of every derived value but `invalid_samples`; a measure with
one has failed. `verify` asks the same functions again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise

from reproducer.documents.lock import Scalar
from reproducer.documents.receipts import FidelityReference, RequestRecord, Sample
from reproducer.qualify.prompts import QUESTION, ids_sha256, needle_prompt, text_sha256, token_prompt

NEEDLE_LENGTH_TOLERANCE = 0.1

Parameters = Mapping[str, Scalar]
_Faults = Iterator[str]


def number(values: Mapping[str, Scalar], name: str) -> float:
    """A parameter or fact as a number; -1 where it is missing or none."""
    value = values.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else -1


def whole(values: Mapping[str, Scalar], name: str) -> int:
    """A parameter or fact as a whole number; -1 where it is missing or none."""
    value = number(values, name)
    return int(value) if value == int(value) else -1


def seed(sample: Sample, measure: str, request: int = 0) -> str:
    """What the prompt of one request of a sample follows from."""
    return prompt_seed(str(sample.facts.get("nonce", "")), measure, request)


def prompt_seed(nonce: str, measure: str, request: int = 0) -> str:
    """What the prompt of one request follows from: the sample's nonce, the measure, the request's place in it."""
    return f"{nonce}/{measure}/{request}"


def invalid_reason(
    measure: str, parameters: Parameters, sample: Sample, reference: FidelityReference | None = None
) -> str:
    """Why a sample does not count; empty where it does.

    Args:
        measure: id of a known measure.
        parameters: all of its parameters, as `resolved` gives them.
        sample: the raw sample.
        reference: what `fidelity` compares with.
    """
    for position, request in enumerate(sample.requests):
        for fault in _broken(request):
            return f"request {position}: {fault}"
    faults = _fidelity(sample, reference) if measure == "fidelity/1" else _RULES[measure](parameters, sample)
    return next(faults, "")


def _broken(request: RequestRecord) -> _Faults:
    """What no request may show, whatever was measured."""
    if request.error is not None:
        yield request.error or "it failed"
    if not request.events:
        yield "no token came"
    times = [request.sent_ns, *(when for when, _ in request.events), request.finished_ns]
    if times != sorted(times):
        yield "its times do not rise"
    counts = [0, *(count for _, count in request.events)]
    if any(after <= before for before, after in pairwise(counts)):
        yield "its token counts do not rise"
    if counts[-1] != request.output_tokens:
        yield f"{counts[-1]} tokens came, the server counts {request.output_tokens}"
    if request.output_ids is not None and len(request.output_ids) != request.output_tokens:
        yield f"{len(request.output_ids)} output ids, the server counts {request.output_tokens}"
    if request.cached_by_tier and sum(request.cached_by_tier.values()) != request.cached_tokens:
        yield f"cached tokens by tier do not add up to {request.cached_tokens}"
    if request.cached_tokens > request.prompt_tokens:
        yield "more cached tokens than prompt tokens"


def _tokens(
    parameters: Parameters, sample: Sample, measure: str, *, requests: int, output: int, one_prompt: bool = False
) -> _Faults:
    """As many requests as asked for, each with the prompt of the nonce and an output of the length asked for."""
    if len(sample.requests) != requests:
        yield f"{len(sample.requests)} requests instead of {requests}"
    length = whole(parameters, "prompt_tokens")
    for position, request in enumerate(sample.requests):
        prompt = token_prompt(seed(sample, measure, 0 if one_prompt else position), length)
        if request.prompt_sha256 != ids_sha256(prompt):
            yield f"request {position}: the prompt is not the one of the nonce"
        if request.prompt_tokens != length:
            yield f"request {position}: the server counts {request.prompt_tokens} prompt tokens, {length} were sent"
        if request.output_tokens != output:
            yield f"request {position}: {request.output_tokens} output tokens instead of {output}"


def _cold(requests: Iterable[RequestRecord]) -> _Faults:
    for request in requests:
        if request.cached_tokens:
            yield f"the prompt was not cold: the server had {request.cached_tokens} of its tokens cached"


def _streamed(sample: Sample) -> _Faults:
    """Decoding can only be timed where the tokens did not come all at once."""
    if any(request.events[-1][0] == request.events[0][0] for request in sample.requests):
        yield "all tokens came at once: the answer was not streamed"


def _decode_single(parameters: Parameters, sample: Sample) -> _Faults:
    output = whole(parameters, "output_tokens")
    yield from _tokens(parameters, sample, "decode.single/1", requests=1, output=output)
    yield from _cold(sample.requests)
    yield from _streamed(sample)


def _decode_concurrent(parameters: Parameters, sample: Sample) -> _Faults:
    output, requests = whole(parameters, "output_tokens"), whole(parameters, "concurrency")
    yield from _tokens(parameters, sample, "decode.concurrent/1", requests=requests, output=output)
    yield from _cold(sample.requests)
    yield from _streamed(sample)


def _prefill(parameters: Parameters, sample: Sample) -> _Faults:
    yield from _tokens(parameters, sample, "prefill.cold/1", requests=1, output=1)
    yield from _cold(sample.requests)


def _reuse(parameters: Parameters, sample: Sample) -> _Faults:
    yield from _tokens(parameters, sample, "prefix.reuse/1", requests=2, output=1, one_prompt=True)
    yield from _cold(sample.requests[:1])


def _restore(parameters: Parameters, sample: Sample) -> _Faults:
    output = whole(parameters, "output_tokens")
    yield from _tokens(parameters, sample, "restore.restart/1", requests=2, output=output, one_prompt=True)
    yield from _cold(sample.requests[:1])
    if sample.facts.get("written_boot") in (None, sample.boot):
        yield "written and restored in one boot"
    tiers = sample.requests[1].cached_by_tier
    if kept := tiers.get("device", 0) + tiers.get("host", 0):
        yield f"{kept} tokens came from memory, though the server was started anew"


def _needle(parameters: Parameters, sample: Sample) -> _Faults:
    if len(sample.requests) != 1:
        yield f"{len(sample.requests)} requests instead of 1"
    request, length = sample.requests[0], whole(parameters, "prompt_tokens")
    sentences = whole(sample.facts, "sentences")
    if not 1 <= sentences <= length:
        yield "the fact 'sentences' is no count of sentences"
    needle = needle_prompt(seed(sample, "needle.short/1"), sentences=sentences, depth=number(parameters, "depth"))
    if request.prompt_sha256 != text_sha256(needle.text):
        yield "the prompt is not the one of the nonce"
    if abs(request.prompt_tokens - length) > NEEDLE_LENGTH_TOLERANCE * length:
        yield f"the server counts {request.prompt_tokens} prompt tokens, about {length} were asked for"
    if request.output_tokens > whole(parameters, "output_tokens"):
        yield f"{request.output_tokens} output tokens, more than were asked for"


def _chat(parameters: Parameters, sample: Sample) -> _Faults:
    del parameters
    if len(sample.requests) != 1:
        yield f"{len(sample.requests)} requests instead of 1"
    if sample.requests[0].prompt_sha256 != text_sha256(QUESTION):
        yield "the question is not the measure's"


def _fidelity(sample: Sample, reference: FidelityReference | None) -> _Faults:
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
        top = request.top_logprobs or ()
        if len(top) != request.output_tokens or any(len(each) < reference.top for each in top):
            yield f"request {position}: not every token has its {reference.top} log-probabilities"


_RULES: Mapping[str, Callable[[Parameters, Sample], _Faults]] = {
    "decode.single/1": _decode_single,
    "decode.concurrent/1": _decode_concurrent,
    "prefill.cold/1": _prefill,
    "prefix.reuse/1": _reuse,
    "restore.restart/1": _restore,
    "needle.short/1": _needle,
    "chat.smoke/1": _chat,
}

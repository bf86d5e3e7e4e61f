"""What the rules and the numbers of several measures are made of: pure functions over raw records."""

from collections.abc import Iterable, Mapping

from reproducer.documents.base import shown
from reproducer.documents.lock import Scalar
from reproducer.documents.measured import RequestRecord, Sample
from reproducer.measures.quantities import Agreement, CompletedRequestRate
from reproducer.qualify.divergence import matched
from reproducer.qualify.methods.method import Faults, Parameters
from reproducer.qualify.prompts import ids_sha256, token_prompt

LENGTH = "length"


def number(values: Mapping[str, Scalar], name: str) -> float:
    """A parameter or fact as a number; -1 where it is missing or none."""
    value = values.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else -1


def whole(values: Mapping[str, Scalar], name: str) -> int:
    """A parameter or fact as a whole number; -1 where it is missing or none."""
    value = number(values, name)
    return int(value) if value == int(value) else -1


def prompt_seed(nonce: str, measure: str, request: int = 0) -> str:
    """What the prompt of one request follows from: the sample's nonce, the measure, the request's place in it."""
    return f"{nonce}/{measure}/{request}"


def seed(sample: Sample, measure: str, request: int = 0) -> str:
    """What the prompt of one request of a sample follows from."""
    return prompt_seed(str(sample.facts.get("nonce", "")), measure, request)


def prompts(parameters: Parameters, measure: str, nonce: str, count: int = 1) -> list[tuple[int, ...]]:
    """So many prompts of the parameter `prompt_tokens`."""
    length = whole(parameters, "prompt_tokens")
    return [token_prompt(prompt_seed(nonce, measure, position), length) for position in range(count)]


def requests_as_asked(
    parameters: Parameters,
    sample: Sample,
    measure: str,
    *,
    requests: int,
    output: int,
    one_prompt: bool = False,
    in_turn: int | None = None,
) -> Faults:
    """As many requests as asked for, each with the prompt of the nonce and an output of the length asked for.

    Args:
        parameters: of the measure.
        sample: what was taken.
        measure: whose prompts they are.
        requests: how many there must be.
        output: how many tokens each must give.
        one_prompt: whether all have the first prompt.
        in_turn: after how many requests the prompts begin again; None where they do not.
    """
    again = 1 if one_prompt else in_turn or max(requests, 1)
    if len(sample.requests) != requests:
        yield f"{len(sample.requests)} requests instead of {requests}"
    length = whole(parameters, "prompt_tokens")
    for position, request in enumerate(sample.requests):
        prompt = token_prompt(seed(sample, measure, position % again), length)
        if request.prompt_sha256 != ids_sha256(prompt):
            yield f"request {position}: the prompt is not the one of the nonce"
        if request.prompt_tokens != length:
            yield f"request {position}: the server counts {request.prompt_tokens} prompt tokens, {length} were sent"
        if request.output_tokens != output:
            yield f"request {position}: {request.output_tokens} output tokens instead of {output}"
        yield from (f"request {position}: {fault}" for fault in ended_by_length(request))


def ended_by_length(request: RequestRecord) -> Faults:
    """An output of a fixed length ends because it has that length, and for no other reason."""
    if request.finish_reason != LENGTH:
        yield f"it ended by {shown(request.finish_reason)} instead of its length"


def cold(requests: Iterable[RequestRecord]) -> Faults:
    """No token of any prompt was cached."""
    for request in requests:
        if request.cached_tokens:
            yield f"the prompt was not cold: the server had {request.cached_tokens} of its tokens cached"


def streamed(sample: Sample) -> Faults:
    """Decoding can only be timed where the tokens did not come all at once."""
    if any(request.events[-1][0] == request.events[0][0] for request in sample.requests):
        yield "all tokens came at once: the answer was not streamed"


def to_first(request: RequestRecord) -> int:
    """Nanoseconds from sending to the first token."""
    return request.events[0][0] - request.sent_ns


def decoding(request: RequestRecord) -> CompletedRequestRate | None:
    """The tokens after the first chunk over the time after the first chunk."""
    (begun, first), (ended, last) = request.events[0], request.events[-1]
    return CompletedRequestRate.over(last - first, ended - begun)


def agreeing(pairs: Iterable[tuple[RequestRecord, RequestRecord]]) -> Agreement | None:
    """Output tokens before the first that differs, summed over pairs of requests, of all; None where there are none."""
    same = total = 0
    for one, other in pairs:
        same += matched(one.output_ids or (), other.output_ids or ())
        total += max(one.output_tokens, other.output_tokens)
    return Agreement(same / total, "ratio") if total else None


def started_anew(sample: Sample, boots: Iterable[str], requests: Iterable[RequestRecord]) -> Faults:
    """The earlier boots that the facts name are others than the last one, and nothing of it came from memory."""
    earlier = [sample.facts.get(fact) for fact in boots]
    if None in earlier or len({*earlier, sample.boot}) <= len(earlier):
        yield "written and restored in one boot"
    for request in requests:
        if kept := request.cached_by_tier.get("device", 0) + request.cached_by_tier.get("host", 0):
            yield f"{kept} tokens came from memory, though the server was started anew"

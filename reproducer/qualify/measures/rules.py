"""What the rules and the numbers of several measures are made of: pure functions over raw records."""

from collections.abc import Iterable, Mapping

from reproducer.documents.lock import Scalar
from reproducer.documents.receipts import RequestRecord, Sample
from reproducer.qualify.measures.method import Faults, Parameters
from reproducer.qualify.prompts import ids_sha256, token_prompt
from reproducer.qualify.quantities import CompletedRequestRate


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
    parameters: Parameters, sample: Sample, measure: str, *, requests: int, output: int, one_prompt: bool = False
) -> Faults:
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

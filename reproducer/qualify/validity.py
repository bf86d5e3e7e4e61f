"""Whether a sample measured what it was meant to: pure functions over the raw record.

An invalid sample is kept, marked in its facts and left out of every derived value but `invalid_samples`; a measure with
one has failed. `verify` asks the same functions again.
"""

from itertools import pairwise

from reproducer.documents.measured import RequestRecord, Sample
from reproducer.documents.receipts import FidelityReference
from reproducer.qualify.methods.method import Faults, Parameters
from reproducer.qualify.methods.registry import METHODS


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
    method = METHODS[measure]
    for position, request in enumerate(sample.requests):
        if method.counts_errors and request.error is not None:
            if _brought(request):
                return f"request {position}: it failed, and says what it brought"
            continue
        for fault in _broken(request):
            return f"request {position}: {fault}"
    return next(method.faults(parameters, sample, reference), "")


def _brought(request: RequestRecord) -> bool:
    """Whether a request that was to be answered in one piece, and was not, has anything of an answer."""
    counts = (request.prompt_tokens, request.output_tokens, request.cached_tokens, len(request.cached_by_tier))
    told = (request.output_ids, request.output_text, request.top_logprobs, request.speculation)
    return bool(request.events or any(counts)) or told != (None,) * len(told) or request.finish_reason != "none"


def _broken(request: RequestRecord) -> Faults:
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

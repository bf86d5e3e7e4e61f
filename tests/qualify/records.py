"""Raw samples made by hand, valid for each measure, with times that give round numbers."""

from collections.abc import Callable, Mapping
from typing import Any

from reproducer.documents.lock import Scalar
from reproducer.documents.measured import Candidate, Reading, RequestRecord, Sample, Speculated
from reproducer.documents.receipts import FidelityReference, ReferencePrompt
from reproducer.measures.checks import resolved
from reproducer.qualify.haystack import haystack_sha256, planted
from reproducer.qualify.methods.rules import prompt_seed
from reproducer.qualify.methods.soak import rounds
from reproducer.qualify.prompts import QUESTION, ids_sha256, needle_prompt, text_sha256, token_prompt

MS = 1_000_000
NONCE = "0123456789abcdef"
BOOT = "b" * 64
# what is recorded of a request that was to be answered in one piece and failed
NOTHING: Mapping[str, Any] = {
    "events": (),
    "prompt_tokens": 0,
    "output_tokens": 0,
    "output_ids": None,
    "finish_reason": "none",
}
SMALL: Mapping[str, dict[str, Scalar]] = {
    "decode.single/1": {"prompt_tokens": 8, "output_tokens": 11},
    "decode.concurrent/1": {"concurrency": 2, "prompt_tokens": 8, "output_tokens": 11},
    "prefill.cold/1": {"prompt_tokens": 100},
    "prefix.reuse/1": {"prompt_tokens": 100},
    "restore.restart/1": {"prompt_tokens": 100, "output_tokens": 3},
    "fidelity/1": {},
    "needle.short/1": {"prompt_tokens": 200, "depth": 0.5, "output_tokens": 24},
    "chat.smoke/1": {"output_tokens": 32},
    "decode.single/2": {"prompt_tokens": 8, "output_tokens": 11},
    "decode.concurrent/2": {"concurrency": 2, "prompt_tokens": 8, "output_tokens": 11, "start_spread_ms": 50},
    "needle/1": {"prompt_tokens": 300, "output_tokens": 24},
    "context.admission/1": {"reserve": 8},
    "restore.concurrent/1": {"concurrency": 2, "prompt_tokens": 100, "output_tokens": 3},
    "namespace.flip/1": {"prompt_tokens": 100, "output_tokens": 3, "page_size": 32},
    "determinism/1": {"concurrency": 2, "prompt_tokens": 40, "output_tokens": 4},
    "speculation/1": {"output_tokens": 4},
    "soak/1": {
        "minutes": 0.05,
        "long": 1,
        "short": 1,
        "long_prompt_tokens": 40,
        "long_output_tokens": 4,
        "short_prompt_tokens": 16,
        "short_output_tokens": 2,
    },
}


def parameters(measure: str) -> dict[str, Scalar]:
    """Small parameters of a measure."""
    return resolved(measure, SMALL[measure])


def request(
    prompt_sha256: str, prompt_tokens: int, output_tokens: int, *, sent: int = 0, first: int = 500, gap: int = 100
) -> RequestRecord:
    """A request whose tokens come one by one; times in milliseconds."""
    events = tuple(((sent + first + gap * number) * MS, number + 1) for number in range(output_tokens))
    return RequestRecord(
        sent_ns=sent * MS,
        finished_ns=events[-1][0] + MS,
        events=events,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        cached_tokens=0,
        prompt_sha256=prompt_sha256,
        output_ids=tuple(range(output_tokens)),
        finish_reason="length",
    )


def tokens_request(measure: str, position: int, output_tokens: int, **timing: int) -> RequestRecord:
    """A request with the prompt of the nonce."""
    length = int(parameters(measure)["prompt_tokens"])
    prompt = token_prompt(prompt_seed(NONCE, measure, position), length)
    return request(ids_sha256(prompt), length, output_tokens, **timing)


def top(token: int) -> tuple[Candidate, ...]:
    """Three likeliest tokens."""
    return tuple(Candidate(token=token + rank, logprob=-0.5 - rank) for rank in range(3))


def reference() -> FidelityReference:
    """Two prompts of four output tokens each."""
    prompts = tuple(
        ReferencePrompt(
            prompt=f"prompt {number}",
            prompt_ids=(1, 2, number),
            output_ids=(10, 20, 30, 40),
            top_logprobs=tuple(top(token) for token in (10, 20, 30, 40)),
        )
        for number in range(2)
    )
    return FidelityReference(format="penny-reference/1", checkpoint="small", top=3, prompts=prompts)


def _decode_single() -> Sample:
    return sample((tokens_request("decode.single/1", 0, 11),))


def _decode_concurrent() -> Sample:
    measure = "decode.concurrent/1"
    return sample((tokens_request(measure, 0, 11), tokens_request(measure, 1, 11, gap=150)))


def _prefill() -> Sample:
    return sample((tokens_request("prefill.cold/1", 0, 1),))


def _reuse() -> Sample:
    cold = tokens_request("prefix.reuse/1", 0, 1)
    warm = tokens_request("prefix.reuse/1", 0, 1, sent=1000, first=100)
    return sample((cold, warm.model_copy(update={"cached_tokens": 96, "cached_by_tier": {"device": 96}})))


def _restore() -> Sample:
    written = tokens_request("restore.restart/1", 0, 3)
    restored = tokens_request("restore.restart/1", 0, 3, first=240)
    tiers = {"device": 0, "host": 0, "storage": 96}
    restored = restored.model_copy(update={"cached_tokens": 96, "cached_by_tier": tiers})
    return sample((written, restored), written_boot="a" * 64)


def _fidelity() -> Sample:
    requests = tuple(
        request(ids_sha256(prompt.prompt_ids), 3, 4).model_copy(
            update={"output_ids": prompt.output_ids, "top_logprobs": prompt.top_logprobs}
        )
        for prompt in reference().prompts
    )
    return sample(requests)


def _needle() -> Sample:
    needle = needle_prompt(prompt_seed(NONCE, "needle.short/1"), sentences=14, depth=0.5)
    answer = request(text_sha256(needle.text), 205, 8).model_copy(
        update={"output_text": f"The secret code is {needle.answer}.", "output_ids": None}
    )
    return sample((answer,), sentences=14)


def _decode_makespan() -> Sample:
    return sample((tokens_request("decode.single/2", 0, 11),))


def _decode_together() -> Sample:
    measure = "decode.concurrent/2"
    return sample((tokens_request(measure, 0, 11), tokens_request(measure, 1, 11, sent=20, first=480, gap=150)))


def _three_needles() -> Sample:
    """500 ms to the first token of eight, then 100 ms a token; 50 of 300 prompt tokens cached."""
    of_text = prompt_seed(NONCE, "needle/1")
    codes = ", ".join(fact.code for fact in planted(of_text))
    answer = request(haystack_sha256(of_text, sentences=14, padding=3), 300, 8).model_copy(
        update={"output_text": f"The codes are {codes}.", "output_ids": None, "cached_tokens": 50}
    )
    return sample((answer,), sentences=14, padding=3, template_tokens=55)


def admission(limit: int = 40, reserved: int = 2) -> Sample:
    """A context of 40 tokens: 41, 40 and 39 are refused, 38 is admitted, and the server answers afterwards."""
    longest = token_prompt(prompt_seed(NONCE, "context.admission/1"), limit + 1)
    admitted = limit - reserved
    refused = [
        request(ids_sha256(longest[:length]), 0, 1, sent=10 * number, first=1).model_copy(
            update={**NOTHING, "error": "HTTP status 400: 'too long'"}
        )
        for number, length in enumerate(range(limit + 1, admitted, -1))
    ]
    taken = request(ids_sha256(longest[:admitted]), admitted, 1, sent=100)
    alive = request(ids_sha256(longest[-16:]), 16, 1, sent=700)
    return sample((*refused, taken, alive), context_tokens=limit, stated_tokens=limit)


def _stored(good: RequestRecord, tokens: int) -> RequestRecord:
    """A request of which so many tokens came from storage."""
    tiers = {"device": 0, "host": 0, "storage": tokens}
    return good.model_copy(update={"cached_tokens": tokens, "cached_by_tier": tiers})


def _restore_concurrent() -> Sample:
    """Two prompts: 500 ms cold; 240 ms and 480 ms from storage, 96 and 80 tokens."""
    measure = "restore.concurrent/1"
    written = [tokens_request(measure, place, 3) for place in range(2)]
    restored = [
        _stored(tokens_request(measure, place, 3, first=first), tokens)
        for place, first, tokens in ((0, 240, 96), (1, 480, 80))
    ]
    return sample((*written, *restored), written_boot="a" * 64)


def _flip() -> Sample:
    """Written and hit in memory in one boot, cold in the next, from storage in the last."""
    measure = "namespace.flip/1"
    cold, flipped = (tokens_request(measure, 0, 3) for _ in range(2))
    warm = tokens_request(measure, 0, 3, first=50).model_copy(
        update={"cached_tokens": 96, "cached_by_tier": {"device": 96}}
    )
    back = _stored(tokens_request(measure, 0, 3, first=240), 96)
    return sample((cold, warm, flipped, back), written_boot="a" * 64, flipped_boot="c" * 64)


def _determinism() -> Sample:
    """Two prompts; in the batch the second one says something else from its third token on."""
    measure = "determinism/1"
    alone = [tokens_request(measure, place, 4) for place in range(2)]
    cached = [each.model_copy(update={"cached_tokens": 32, "cached_by_tier": {"device": 32}}) for each in alone]
    return sample((*alone, *cached, cached[0], cached[1].model_copy(update={"output_ids": (0, 1, 8, 9)})))


def speculated(steps: int = 2, accepted: int = 1, drafted: int = 6, output: int = 4) -> Speculated:
    """Counts of a request as the engine works them out; one step accepts all of them."""
    return Speculated(
        verify_steps=steps,
        accepted_tokens=accepted,
        drafted_tokens=drafted,
        accept_length=output / steps,
        accept_rate=accepted / drafted,
        accepted_in_steps=(steps - 1, *(0 for _ in range(accepted - 1)), 1) if accepted else (steps,),
    )


def _speculation() -> Sample:
    """Two prompts of the reference, three tokens drafted ahead in each of two steps, one of them right."""
    requests = tuple(each.model_copy(update={"speculation": speculated()}) for each in _fidelity().requests)
    requests = tuple(each.model_copy(update={"top_logprobs": None}) for each in requests)
    facts: dict[str, Scalar] = {"speculative_num_draft_tokens": 4, "server_accept_length": 1.5}
    return sample(requests, **facts)


def soaked(ends: tuple[int, ...] = (500, 1000, 1500, 2000, 2500, 3000)) -> Sample:
    """Rounds of one long and one short request, each begun where the one before ended; more is held after each."""
    measure = "soak/1"
    requests: list[RequestRecord] = []
    for begun, end, planned in zip(
        (0, *ends), ends, rounds(parameters(measure), prompt_seed(NONCE, measure)), strict=False
    ):
        for prompt, output in planned:
            each = request(ids_sha256(prompt), len(prompt), output, sent=begun)
            update = {"events": ((end * MS, output),), "finished_ns": end * MS, "output_ids": None}
            requests.append(each.model_copy(update=update))
    readings = tuple(
        Reading(
            at_ns=at * MS, resident_bytes=(100 + place) << 20, open_files=10 + place, gpu_bytes=(100 + 2 * place) << 20
        )
        for place, at in enumerate((0, *ends))
    )
    return sample(tuple(requests)).model_copy(update={"readings": readings})


def _chat() -> Sample:
    answer = request(text_sha256(QUESTION), 37, 8).model_copy(
        update={"output_text": "It is Paris.", "output_ids": None, "finish_reason": "stop"}
    )
    return sample((answer,), usage_total=45, answer_tokens=7)


def sample(requests: tuple[RequestRecord, ...], **facts: Scalar) -> Sample:
    """A measured sample."""
    return Sample(index=0, boot=BOOT, warmup=False, requests=requests, facts={"nonce": NONCE, **facts})


GOOD: Mapping[str, Callable[[], Sample]] = {
    "decode.single/1": _decode_single,
    "decode.concurrent/1": _decode_concurrent,
    "prefill.cold/1": _prefill,
    "prefix.reuse/1": _reuse,
    "restore.restart/1": _restore,
    "fidelity/1": _fidelity,
    "needle.short/1": _needle,
    "chat.smoke/1": _chat,
    "decode.single/2": _decode_makespan,
    "decode.concurrent/2": _decode_together,
    "needle/1": _three_needles,
    "context.admission/1": admission,
    "restore.concurrent/1": _restore_concurrent,
    "namespace.flip/1": _flip,
    "determinism/1": _determinism,
    "speculation/1": _speculation,
    "soak/1": soaked,
}


def edited(good: Sample, request: int, **changes: Any) -> Sample:
    """A sample with one of its requests changed."""
    requests = list(good.requests)
    requests[request] = requests[request].model_copy(update=changes)
    return good.model_copy(update={"requests": tuple(requests)})

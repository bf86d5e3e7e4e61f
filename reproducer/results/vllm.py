"""`vllm bench serve --save-result`: one object, or one a line with `--append-result`; requests with `--save-detailed`.

Definitions as `calculate_metrics` and `benchmark` of vllm/benchmarks/serve.py 0.32.0 have them. The file says nothing
of the version of the client or of the server.
"""

import re
from typing import Any

from reproducer.documents.imported import ImportedRequest, ImportedRun
from reproducer.results.fields import Fields, Place
from reproducer.results.making import UNKNOWN_OF_SPEED, Making
from reproducer.results.sglang import gaps_of

READ_IN = "0.32.0"
_KEYS = frozenset({"date", "backend", "model_id", "tokenizer_id", "num_prompts", "burstiness", "request_throughput"})
_CONDITIONS = (
    "date",
    "backend",
    "label",
    "model_id",
    "tokenizer_id",
    "num_prompts",
    "request_rate",
    "burstiness",
    "max_concurrency",
    "ramp_up_strategy",
    "ramp_up_start_rps",
    "ramp_up_end_rps",
)
_TIMES = {
    "ttft": "from sending a request to the first chunk with text, over completed requests",
    "tpot": "(latency - time to first token) / (output tokens - 1) of each completed request of more than one token",
    "itl": "between chunks, over all chunks after the first; a chunk may hold several tokens",
    "e2el": "from sending a request to its last chunk, over completed requests",
    "client_queue_time": "how long the client held a request back, over completed requests",
    "e2el_including_client_queue": "e2el with the time that the client held the request back",
}
_STATISTIC = re.compile(r"(mean|median|std|p[0-9]{1,2}(?:\.[0-9]{1,4})?)_([a-z0-9_]+)_ms")
_LEFT = {
    "endpoint_type": "the same as backend, for older readers",
    "request_throughput": "requests over time, which is no kind",
    "request_goodput": "requests within limits over time, which is no kind",
    "total_token_throughput": "prompt and output tokens together, which is no kind",
    "max_output_tokens_per_s": "the fullest second of the run, which is no kind",
    "max_concurrent_requests": "the fullest second of the run, which is no kind",
    "rtfx": "seconds of audio over time, which is no kind",
    "generated_texts": "texts of the model; they stand in the original",
    "queue_times": "how long the client held each request back",
}


def is_vllm(documents: list[dict[str, Any]]) -> bool:
    """Whether these are results of `vllm bench serve`."""
    return all(each.keys() >= _KEYS for each in documents)


def read_vllm(fields: Fields, count: int, *, where: str) -> tuple[ImportedRun, ...]:
    """Its runs; raises InvalidDocumentError for numbers that cannot be."""
    return tuple(_run(fields, (at,) if count > 1 else (), at, where) for at in range(count))


def _run(fields: Fields, place: Place, at: int, where: str) -> ImportedRun:
    run = Making(fields, place, name=f"line {at + 1}", unknown=UNKNOWN_OF_SPEED, where=where)
    for key in _CONDITIONS:
        run.condition(key)
    for key, why in _LEFT.items():
        run.leave(key, why=why)
    run.duration(
        "duration", name="duration", statistic="total", how="from before the first request to after the last answer"
    )
    run.count("completed", name="completed", unit="requests", how="requests that were answered to their end")
    run.count("failed", name="failed", unit="requests", how="requests that were not")
    run.count("total_input_tokens", name="total_input_tokens", unit="tokens", how="prompts of completed requests")
    run.count(
        "total_output_tokens",
        name="total_output_tokens",
        unit="tokens",
        how="of completed requests, as the server says, else as the client's tokenizer counts the text",
    )
    run.makespan_rate(
        "output_throughput",
        name="output_throughput",
        how="output tokens of completed requests over `duration`",
        together=_together(run),
    )
    for key in sorted(fields.table(*place)):
        if (found := _STATISTIC.fullmatch(key)) and found[2] in _TIMES:
            run.duration(key, name=f"{found[2]}_ms", statistic=found[1], how=_TIMES[found[2]], ms=True)
    _requests(run)
    return run.done()


def _together(run: Making) -> str | None:
    """Why the requests are not known to have been released together; None where they were."""
    if run.at("request_rate") != "inf":
        return "requests were released one after the other, by request_rate"
    if run.at("ramp_up_strategy") is not None:
        return "requests were released by a ramp"
    most, asked = run.at("max_concurrency"), run.at("num_prompts")
    if most is None:
        return None
    if not isinstance(most, int) or not isinstance(asked, int) or most < asked:
        return "max_concurrency held requests back"
    return None


def _requests(run: Making) -> None:
    """Requests of a file with details: lists of one length, one entry for each."""
    keys = ("input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "errors")
    lists = {key: run.fields.rows(*run.place, key) for key in keys}
    length = len(lists["ttfts"])
    if not length or any(len(each) != length for each in lists.values()):
        run.leave("latencies", why="of each request, but the file does not say which failed; write --save-detailed")
        return
    starts = [run.fields.number(*run.place, "start_times", at) for at in range(length)]
    origin = min((each for each in starts if each is not None), default=0.0)
    for at in range(length):
        run.requests.append(_request(run, at, starts[at], origin))
    run.leave("errors", why="texts of errors; that a request failed is kept")


def _request(run: Making, at: int, start: float | None, origin: float) -> ImportedRequest:
    prompt, output = (run.fields.whole(*run.place, key, at) for key in ("input_lens", "output_lens"))
    sent = None if start is None else run.nanoseconds(start - origin, "start_times", at)
    failed = bool(run.at("errors", at))
    first, finished = run.seconds("ttfts", at), run.seconds("latencies", at)
    gaps = gaps_of(run, at)
    if failed or first is None or gaps is None or not first:
        return ImportedRequest(prompt_tokens=prompt, output_tokens=output, sent_ns=sent, failed=failed)
    return ImportedRequest(
        prompt_tokens=prompt,
        output_tokens=output,
        sent_ns=sent,
        first_ns=first,
        last_ns=run.nanoseconds(first / 1e9 + sum(gaps), "itls", at),
        finished_ns=finished,
        tokens_after_first=len(gaps) if output is not None and len(gaps) == output - 1 else None,
    )

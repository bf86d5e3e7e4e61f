"""`python -m sglang.bench_serving`: a line of JSON for each run, with every request where `--output-details` was given.

Definitions as `calculate_metrics` and `benchmark` of sglang/bench_serving.py 0.5.10.post1 have them. The file says
nothing of the version of the client; `server_info.version` is the server's.
"""

from typing import Any

from reproducer.documents.imported import ImportedRequest, ImportedRun
from reproducer.results.fields import Fields, Place
from reproducer.results.making import UNKNOWN_OF_SPEED, Making
from reproducer.results.reading import NotFinite

READ_IN = "0.5.10.post1"
_KEYS = frozenset({"backend", "dataset_name", "output_throughput", "total_output_tokens_retokenized", "mean_itl_ms"})
_NATIVE = frozenset({"sglang", "sglang-native"})
_CONDITIONS = (
    ("backend",),
    ("dataset_name",),
    ("request_rate",),
    ("tag",),
    ("max_concurrency",),
    ("sharegpt_output_len",),
    ("random_input_len",),
    ("random_output_len",),
    ("random_range_ratio",),
    ("server_info", "version"),
    ("server_info", "model_path"),
    ("server_info", "served_model_name"),
)
_TIMES = {
    "e2e_latency": "from sending a request to its last chunk, over completed requests",
    "ttft": "from sending a request to the first chunk with text, over completed requests",
    "tpot": "(latency - time to first token) / (output tokens - 1) of each completed request of more than one token",
    "itl": "between chunks with text, over all chunks after the first; a chunk of n tokens counts n times with 1/n of "
    "its time where the backend is sglang",
}
_STATISTICS = ("mean", "median", "std", "p90", "p95", "p99", "max")
_LEFT = {
    "request_throughput": "requests over time, which is no kind",
    "input_throughput": "prompt tokens over the whole makespan, which is no kind",
    "total_throughput": "prompt and output tokens together, which is no kind",
    "concurrency": "sum of latencies over the duration, which is no kind",
    "max_output_tokens_per_s": "the fullest second of the run, which is no kind",
    "max_concurrent_requests": "the fullest second of the run, which is no kind",
    "accept_length": "a mean since the server started, not over this run",
    "total_output_tokens_retokenized": "texts tokenised again by the client, not tokens that were generated",
    "generated_texts": "texts of the model; they stand in the original",
}


def is_sglang(documents: list[dict[str, Any]]) -> bool:
    """Whether these are lines of bench_serving."""
    return all(each.keys() >= _KEYS for each in documents)


def read_sglang(fields: Fields, count: int, *, where: str) -> tuple[ImportedRun, ...]:
    """Its runs; raises InvalidDocumentError for numbers that cannot be."""
    return tuple(_run(fields, (at,) if count > 1 else (), at, where) for at in range(count))


def _run(fields: Fields, place: Place, at: int, where: str) -> ImportedRun:
    run = Making(fields, place, name=f"line {at + 1}", unknown=UNKNOWN_OF_SPEED, where=where)
    for condition in _CONDITIONS:
        run.condition(*condition)
    for key, why in _LEFT.items():
        run.leave(key, why=why)
    run.leave("server_info", why="what the server says of itself, without a lock to hold it against")
    run.duration("duration", name="duration", statistic="total", how=_DURATION)
    run.count("completed", name="completed", unit="requests", how="requests that were answered to their end")
    run.count("total_input_tokens", name="total_input_tokens", unit="tokens", how="as the client counted its prompts")
    run.count("total_input_text_tokens", name="total_input_text_tokens", unit="tokens", how="as the client counted")
    run.count("total_input_vision_tokens", name="total_input_vision_tokens", unit="tokens", how="as the client counted")
    run.count("total_output_tokens", name="total_output_tokens", unit="tokens", how="of completed requests")
    run.makespan_rate(
        "output_throughput",
        name="output_throughput",
        how=f"output tokens of completed requests over `duration`, {_DURATION}",
        together=_together(run),
    )
    for metric, how in _TIMES.items():
        for statistic in _STATISTICS:
            key = f"{statistic}_{metric}_ms"
            run.duration(key, name=f"{metric}_ms", statistic=statistic, how=how, ms=True)
    _requests(run)
    return run.done()


_DURATION = (
    "from before the first request to after the last, and where the backend is sglang the question for /server_info"
)


def _together(run: Making) -> str | None:
    """Why the requests are not known to have been released together; None where they were."""
    rate = run.at("request_rate")
    if not isinstance(rate, NotFinite) or rate != "Infinity":
        return "requests were released one after the other, by request_rate"
    if run.at("dataset_name") == "mooncake":
        return "requests were released as the trace says"
    if not run.at("total_input_tokens"):
        return "requests of several turns follow each other"
    most, completed = run.at("max_concurrency"), run.at("completed")
    if most is None:
        return None
    if not isinstance(most, int) or not isinstance(completed, int) or most < completed:
        return "max_concurrency held requests back"
    return None


def _requests(run: Making) -> None:
    """Requests of a file with details: lists of one length, one entry for each."""
    lists = {key: run.fields.rows(*run.place, key) for key in ("input_lens", "output_lens", "ttfts", "itls", "errors")}
    length = len(lists["ttfts"])
    if not length or any(len(each) != length for each in lists.values()):
        return
    native = str(run.at("backend")) in _NATIVE
    for at in range(length):
        run.requests.append(_request(run, at, native=native))
    run.leave("errors", why="texts of errors; that a request failed is kept")


def _request(run: Making, at: int, *, native: bool) -> ImportedRequest:
    prompt, output = (run.fields.whole(*run.place, key, at) for key in ("input_lens", "output_lens"))
    failed = bool(run.at("errors", at))
    first = run.seconds("ttfts", at)
    gaps = gaps_of(run, at)
    if failed or first is None or gaps is None or not first:
        return ImportedRequest(prompt_tokens=prompt, output_tokens=output, failed=failed)
    after = len(gaps) if native or (output is not None and len(gaps) == output - 1) else None
    return ImportedRequest(
        prompt_tokens=prompt,
        output_tokens=output,
        first_ns=first,
        last_ns=run.nanoseconds(first / 1e9 + sum(gaps), "itls", at),
        tokens_after_first=after,
    )


def gaps_of(run: Making, at: int) -> list[float] | None:
    """The times between chunks of one request, taken; None where one of them is none."""
    gaps = run.at("itls", at)
    if not isinstance(gaps, list):
        return None
    for each in gaps:
        if isinstance(each, bool) or not isinstance(each, int | float):
            return None
    for each in (min(gaps, default=0), max(gaps, default=0)):
        run.nanoseconds(each, "itls", at)
    run.fields.take(*run.place, "itls", at)
    return [float(each) for each in gaps]

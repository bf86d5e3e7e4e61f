"""AIPerf: `profile_export_aiperf.json` (what it derived) and `profile_export.jsonl` (a line for each request).

Definitions as aiperf 0.13.0 has them in metrics/types. Its output sequence length is what the client's tokenizer counts
in the text; `usage_completion_tokens` is what the server says. Percentiles of times count failed requests too.
"""

from typing import Any

from reproducer.documents.imported import ImportedRequest, ImportedRun
from reproducer.results.fields import Fields
from reproducer.results.making import UNKNOWN_OF_SPEED, Making

READ_IN = "0.13.0"
FILE_VERSIONS = frozenset({"1.4"})
_CONDITIONS = (
    ("input_config", "endpoint", "type"),
    ("input_config", "endpoint", "streaming"),
    ("input_config", "models", "items", 0, "name"),
    ("input_config", "tokenizer", "name"),
    ("input_config", "phases", 0, "type"),
    ("input_config", "phases", 0, "concurrency"),
    ("input_config", "phases", 0, "rate"),
    ("input_config", "phases", 0, "requests"),
    ("was_cancelled",),
    ("is_complete",),
    ("start_time",),
    ("end_time",),
)
_TIMES = {
    "request_latency": "from sending a request to its last response",
    "time_to_first_token": "from sending a request to its first response with content",
    "time_to_first_output_token": "from sending a request to its first response with content that is no reasoning",
    "time_to_second_token": "from the first response to the second",
    "inter_token_latency": "(request latency - time to first token) / (output tokens, as the client counts them, after "
    "the first chunk), and that chunk counts as one token where the server does not say",
    "inter_chunk_latency": "between responses with content; one may hold several tokens",
    "decode_duration": "request latency - time to first token",
}
_STATISTICS = ("avg", "min", "max", "std", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99")
_COUNTS = {
    "request_count": ("requests", "requests that were answered"),
    "error_request_count": ("requests", "requests that failed"),
    "total_output_tokens": ("tokens", "output tokens as the client's tokenizer counts them"),
    "total_osl": ("tokens", "output and reasoning tokens as the client's tokenizer counts them"),
    "total_isl": ("tokens", "prompt tokens as the client's tokenizer counts them, without a chat template"),
}
_LEFT = {
    "request_throughput": "requests over time, which is no kind",
    "total_token_throughput": "prompt and output tokens together, which is no kind",
    "output_token_throughput_per_user": "1 / inter_token_latency, with tokens as the client's tokenizer counts them",
    "e2e_output_token_throughput": "output tokens over the whole request with its prefill, which is no kind",
    "prefill_throughput_per_user": "prompt tokens without the chat template over a time that may hold queueing and a "
    "cached prefix, which is no prefill rate",
}


def is_aiperf(documents: list[dict[str, Any]]) -> bool:
    """Whether this is one of AIPerf's two files."""
    if len(documents) == 1 and "aiperf_version" in documents[0] and "input_config" in documents[0]:
        return True
    return all(_is_record(each) for each in documents)


def _is_record(data: dict[str, Any]) -> bool:
    about = data.get("metadata")
    return isinstance(about, dict) and "benchmark_phase" in about and isinstance(data.get("metrics"), dict)


def read_aiperf(fields: Fields, count: int, *, where: str) -> tuple[ImportedRun, ...]:
    """Its one run; raises InvalidDocumentError for numbers that cannot be."""
    if fields.at("aiperf_version") is not None:
        return (_derived(fields, where),)
    run = Making(fields, (), name="all lines", unknown=UNKNOWN_OF_SPEED, where=where)
    places = [(at,) if count > 1 else () for at in range(count)]
    starts = [run.fields.clock(*place, "metadata", "request_start_ns") for place in places]
    origin = min((each for each in starts if each is not None), default=0)
    for place in places:
        run.requests.append(_record(run, place, origin))
    run.note("no aggregate makespan rate: a line says when its request was sent, and nothing says when it was released")
    return (run.done(),)


def _derived(fields: Fields, where: str) -> ImportedRun:
    run = Making(fields, (), name="(all of it)", unknown=UNKNOWN_OF_SPEED, where=where)
    for condition in _CONDITIONS:
        run.condition(*condition)
    for key in fields.table():
        if key.startswith("http_"):
            run.leave(key, why="of the client's connections")
    for name, why in _LEFT.items():
        run.leave(name, why=why)
    for name, how in _TIMES.items():
        _time(run, name, how)
    for name, (unit, how) in _COUNTS.items():
        if _total(run, name, unit):
            run.count(name, "avg", name=name, unit="requests" if unit == "requests" else "tokens", how=how)
    if _total(run, "benchmark_duration", "sec"):
        how = "from the first request sent to the last response"
        run.duration("benchmark_duration", "avg", name="benchmark_duration", statistic="total", how=how)
    if _total(run, "output_token_throughput", "tokens/sec"):
        run.makespan_rate(
            *("output_token_throughput", "avg"),
            name="output_token_throughput",
            how="output and reasoning tokens as the client's tokenizer counts them, over benchmark_duration",
            together=_together(run),
        )
    return run.done()


def _time(run: Making, name: str, how: str) -> None:
    """One metric of a time, over requests."""
    if not _total(run, name, "ms"):
        return
    failures = bool(run.at("error_summary"))
    for statistic in _STATISTICS:
        if failures and statistic.startswith("p"):
            run.leave(name, statistic, why="counts failed requests, and there were some")
        else:
            run.duration(name, statistic, name=name, statistic=statistic, how=how, ms=True)
    for key in ("count", "sum"):
        run.leave(name, key, why="what the mean is made of")


def _total(run: Making, name: str, unit: str) -> bool:
    """Whether a metric is there and in the unit that it is known in."""
    if run.at(name, "unit") == unit:
        run.fields.take(name, "unit")
        return True
    run.leave(name, why=f"is in another unit than {unit}")
    return False


def _together(run: Making) -> str | None:
    """Why the requests are not known to have been released together; None where they were."""
    phases = run.at("input_config", "phases")
    if not isinstance(phases, list) or len(phases) != 1 or run.at("was_cancelled") is not False:
        return "there was more than one phase, or the run was cancelled"
    if run.at("input_config", "phases", 0, "type") != "concurrency":
        return "requests were released one after the other"
    most, asked = (run.at("input_config", "phases", 0, key) for key in ("concurrency", "requests"))
    if not isinstance(most, int) or not isinstance(asked, int) or most < asked:
        return "concurrency held requests back"
    return None


def _record(run: Making, place: tuple[int, ...], origin: int) -> ImportedRequest:
    def metric(name: str, unit: str) -> tuple[int | str, ...] | None:
        if run.at(*place, "metrics", name, "unit") != unit:
            return None
        run.fields.take(*place, "metrics", name, "unit")
        return (*place, "metrics", name, "value")

    def time(name: str) -> int | None:
        found = metric(name, "ms")
        return None if found is None else run.seconds(*found, ms=True)

    def tokens(name: str) -> int | None:
        found = metric(name, "tokens")
        return None if found is None else run.fields.whole(*found)

    for name, why in _LEFT.items():
        run.leave(*place, "metrics", name, why=why)
    stated = tokens("usage_completion_tokens")
    output = stated if stated is not None else tokens("output_sequence_length")
    prompt = tokens("usage_prompt_tokens")
    first, finished, gaps = time("time_to_first_token"), time("request_latency"), _gaps(run, metric)
    sent = run.fields.clock(*place, "metadata", "request_start_ns")
    for key in ("benchmark_phase", "was_cancelled"):
        run.fields.take(*place, "metadata", key)
    failed = run.at(*place, "metadata", "was_cancelled") is True or run.at(*place, "error") is not None
    last = None if first is None or gaps is None else run.nanoseconds(first / 1e9 + sum(gaps), *place, "metrics")
    return ImportedRequest(
        prompt_tokens=prompt if prompt is not None else tokens("input_sequence_length"),
        output_tokens=output,
        sent_ns=None
        if sent is None
        else run.nanoseconds((sent - origin) / 1e9, *place, "metadata", "request_start_ns"),
        first_ns=first,
        last_ns=last,
        finished_ns=finished,
        tokens_after_first=stated - 1 if stated and gaps is not None and len(gaps) == stated - 1 else None,
        warmup=run.at(*place, "metadata", "benchmark_phase") != "profiling",
        failed=failed,
    )


def _gaps(run: Making, metric: Any) -> list[float] | None:
    """The times between responses with content, in seconds."""
    place = metric("inter_chunk_latency", "ms")
    found = None if place is None else run.at(*place)
    if place is None or not isinstance(found, list):
        return None
    gaps = [run.seconds(*place, at, ms=True) for at in range(len(found))]
    return None if any(each is None for each in gaps) else [(each or 0) / 1e9 for each in gaps]

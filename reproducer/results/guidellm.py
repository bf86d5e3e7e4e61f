"""GuideLLM's report as JSON (`--output kind=json`): one run for each benchmark, with its requests.

Definitions as guidellm 0.8.1 has them: schemas/base/request_stats.py for each request, benchmark/schemas/metrics.py for
the distributions over them. Its `*_per_second` are distributions of a rate over moments, not tokens over a makespan.
"""

from typing import Any

from reproducer.documents.imported import ImportedQuantity, ImportedRequest, ImportedRun
from reproducer.measures.quantities import AggregateMakespanRate
from reproducer.results.fields import Fields, Place
from reproducer.results.making import UNKNOWN_OF_SPEED, Making

READ_IN = "0.8.1"
FILE_VERSIONS = frozenset({2})
_STATES = ("successful", "incomplete", "errored")
_CONDITIONS = (
    ("config", "strategy", "type_"),
    ("config", "strategy", "streams"),
    ("config", "strategy", "rate"),
    ("config", "strategy", "max_concurrency"),
    ("config", "strategy", "rampup_duration"),
    ("config", "backend", "kind"),
    ("config", "backend", "model"),
    ("config", "backend", "request_format"),
    ("config", "backend", "stream"),
    ("config", "warmup", "value"),
    ("config", "cooldown", "value"),
)
_TIMES = {
    "request_latency": (1.0, "from sending a request to its end"),
    "time_to_first_token_ms": (1e-3, "from sending a request to the first chunk with a token"),
    "time_to_first_output_token_ms": (1e-3, "from sending a request to the first chunk with a token of the answer"),
    "time_per_output_token_ms": (
        1e-3,
        "from sending a request to its last token over its output tokens, so with the first token in it",
    ),
    "inter_token_latency_ms": (1e-3, "from the first token to the last over (output tokens - 1)"),
}
_STATISTICS = ("mean", "median", "std_dev", "min", "max")
_PERCENTILES = ("p01", "p05", "p10", "p25", "p75", "p90", "p95", "p99", "p999")
_MOMENTS = "a distribution of the rate over moments of the run, which is no kind"
_RATES = frozenset({"requests_per_second", "prompt_tokens_per_second", "output_tokens_per_second", "tokens_per_second"})
_LEFT = {
    "config": "how the harness was set up; what bears on the numbers is among the conditions",
    "scheduler_state": "the harness's account of its own scheduling",
    "scheduler_metrics": "the harness's account of its own scheduling",
}


def is_guidellm(documents: list[dict[str, Any]]) -> bool:
    """Whether this is a report of GuideLLM."""
    if len(documents) != 1:
        return False
    about = documents[0].get("metadata")
    return isinstance(about, dict) and "guidellm_version" in about and isinstance(documents[0].get("benchmarks"), list)


def read_guidellm(fields: Fields, count: int, *, where: str) -> tuple[ImportedRun, ...]:
    """Its runs; raises InvalidDocumentError for numbers that cannot be."""
    return tuple(_run(fields, at, where) for at in range(len(fields.rows("benchmarks")) * min(count, 1)))


def _run(fields: Fields, at: int, where: str) -> ImportedRun:
    place: Place = ("benchmarks", at)
    run = Making(fields, place, name=f"benchmarks[{at}]", unknown=UNKNOWN_OF_SPEED, where=where)
    for condition in _CONDITIONS:
        run.condition(*condition)
    run.duration("duration", name="duration", statistic="total", how="from the first measured request to the last end")
    for state in _STATES:
        run.count(
            *("metrics", "request_totals", state),
            name=f"request_totals.{state}",
            unit="requests",
            how=f"requests that ended {state}",
        )
    for metric, (scale, how) in _TIMES.items():
        ms = scale != 1.0
        for statistic in (*_STATISTICS, *_PERCENTILES):
            below = ("percentiles", statistic) if statistic in _PERCENTILES else (statistic,)
            run.duration(
                *("metrics", metric, "successful", *below),
                name=metric,
                statistic=statistic,
                how=f"{how}, of successful requests",
                ms=ms,
            )
        for state in ("incomplete", "errored", "total"):
            run.leave("metrics", metric, state, why="of requests that did not end, or of all together")
    for key in fields.table(*place, "metrics").keys() - _TIMES.keys() - {"request_totals"}:
        run.leave("metrics", key, why=_MOMENTS if key in _RATES else "a distribution of no kind of number")
    for key, why in _LEFT.items():
        run.leave(key, why=why)
    _requests(run)
    return run.done()


def _requests(run: Making) -> None:
    starts = [
        start
        for state in _STATES
        for at in range(len(run.fields.rows(*run.place, "requests", state)))
        if isinstance(start := run.at("requests", state, at, "info", "timings", "request_start"), int | float)
    ]
    origin = min(starts, default=0.0)
    last: list[float] = []
    for state in _STATES:
        for at in range(len(run.fields.rows(*run.place, "requests", state))):
            run.requests.append(_request(run, ("requests", state, at), origin, last, failed=state != "successful"))
    _makespan(run, origin, last)


def _request(run: Making, below: Place, origin: float, ends: list[float], *, failed: bool) -> ImportedRequest:
    def time(name: str) -> float | None:
        return run.fields.number(*run.place, *below, "info", "timings", name)

    def whole(*name: str) -> int | None:
        return run.fields.whole(*run.place, *below, *name)

    def after(end: float | None) -> int | None:
        return None if end is None or sent is None else run.nanoseconds(end - sent, *below, "info", "timings")

    sent, first, last = time("request_start"), time("first_token_iteration"), time("last_token_iteration")
    finished, chunks = time("request_end"), whole("info", "timings", "token_iterations")
    output = whole("output_tokens")
    if last is not None and not failed:
        ends.append(last)
    for key, why in (
        ("output", "the text of the model; it stands in the original"),
        ("request_args", "the text of the prompt; it stands in the original"),
    ):
        run.leave(*below, key, why=why)
    return ImportedRequest(
        prompt_tokens=whole("prompt_tokens"),
        output_tokens=output,
        sent_ns=None if sent is None else run.nanoseconds(sent - origin, *below, "info", "timings", "request_start"),
        first_ns=after(first),
        last_ns=after(last),
        finished_ns=after(finished),
        tokens_after_first=output - 1 if output and chunks == output else None,
        failed=failed,
    )


def _makespan(run: Making, origin: float, ends: list[float]) -> None:
    """Tokens of all requests over their makespan, where the strategy released all of them together."""
    done = len(run.requests)
    kind = run.at("config", "strategy", "type_")
    most = run.at("config", "strategy", "streams" if kind == "concurrent" else "max_concurrency")
    together = kind in ("concurrent", "throughput") and isinstance(most, int) and most >= done
    if not together:
        run.note(f"no aggregate makespan rate: strategy {str(kind)[:40]!r} held requests back")
        return
    tokens = [each.output_tokens for each in run.requests]
    whole = [each for each in tokens if each is not None]
    if len(whole) != done or len(ends) != done or run.at("config", "strategy", "rampup_duration"):
        run.note("no aggregate makespan rate: not every request ended with its tokens counted, or they were ramped up")
        return
    rate = AggregateMakespanRate.over(sum(whole), run.nanoseconds(max(ends, default=0.0) - origin, "requests"))
    if rate is None:
        return
    run.computed(
        ImportedQuantity(
            name="aggregate_makespan_rate",
            kind="aggregate makespan rate",
            unit="tok/s",
            statistic="total",
            value=rate.value,
            origin="computed",
            fields=(f"{run.name}: requests",),
            how="output tokens of all requests over the time from the first one sent to the last token of any",
        )
    )

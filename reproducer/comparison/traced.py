"""Traces as a side: completed requests by context and overlap, and telemetry windows, each of a kind of its own.

Nobody chose the requests of a trace and nobody ran it twice: it has no boots, so it has no noise floor and shows
no difference.
"""

from collections.abc import Iterator
from typing import Any

from reproducer.comparison.numbers import Number
from reproducer.comparison.sides import Side
from reproducer.documents.traces import Band, Distribution, Group, Rate, Times, Trace, Windows
from reproducer.statistics.observations import Observations

_US = 1_000_000
_ALL = "all"
_DECODE, _FORWARD = "completed-request rate", "whole-forward request rate"


def trace_side(trace: Trace, where: str) -> Side:
    """What a trace says; what it was asked and on which machine it ran stands in no log."""
    served = trace.served
    conditions: dict[str, Any] = {
        "client (penny version)": trace.penny_version,
        "lock": None if served is None else served.lock_digest,
        "sources": sorted({each.kind for each in trace.sources}),
        "overlap": trace.requests.overlap,
        "clocks": sorted({each.kind for each in trace.requests.clocks}),
        "damaged lines": trace.lines.damaged,
        "host and GPUs": None,
        "load of the machine": None,
        "what the requests asked for": None,
        "noise of identical runs": None,
    }
    return Side(where, "trace", tuple(_numbers(trace)), conditions)


def _numbers(trace: Trace) -> Iterator[Number]:
    whole = trace.requests
    every = Band(name=_ALL, low=0, completed=whole.completed, alone=whole.alone, overlapping=whole.overlapping)
    for band in (every, *trace.bands):
        for name, group in (("completed", band.completed), ("alone", band.alone), ("overlapping", band.overlapping)):
            yield from _of_group(trace, group, band, name)
    for each in trace.windows:
        yield from _of_windows(each)


def _of_group(trace: Trace, group: Group, band: Band, name: str) -> Iterator[Number]:
    told = {"requests": name, "context_from": band.low, "context_below": _ALL if band.high is None else band.high}
    for kind, value, rate in ((_DECODE, "decode", group.decode), (_FORWARD, "forward", group.forward)):
        if rate is not None:
            yield from _of_rate(rate, kind, value, told, _rates(trace, band, name) if kind == _DECODE else [])
    for value, times in (("queue", group.queue), ("prefill", group.prefill)):
        if times is not None:
            yield _of_times(times, value, told)


def _of_rate(rate: Rate, kind: str, value: str, told: dict[str, Any], rates: list[float]) -> Iterator[Number]:
    listed = rates if len(rates) == rate.requests else [rate.median]
    yield _number(kind, "tok/s", (f"{value} median", "median of requests"), told, (listed, rate.requests))
    weighted = [rate.token_weighted]
    yield _number(kind, "tok/s", (f"{value} token-weighted", "token-weighted"), told, (weighted, rate.requests))


def _of_times(times: Times, value: str, told: dict[str, Any]) -> Number:
    seconds = [times.median_us / _US]
    return _number("duration", "s", (f"{value} median", "median of requests"), told, (seconds, times.requests))


def _of_windows(each: Windows) -> Iterator[Number]:
    told = {"running_from": each.running_low, "running_to": each.running_high, "band": each.band or _ALL}
    found: tuple[tuple[str, str, str, Distribution | None], ...] = (
        ("telemetry window", "tok/s", "window tok_s", each.tok_s),
        ("telemetry length", "tokens", "window accept_length", each.accept_length),
        ("telemetry share", "ratio", "window accept_rate", each.accept_rate),
    )
    for kind, unit, value, of in found:
        if of is not None:
            yield _number(kind, unit, (value, "median of windows"), told, ([of.median], of.windows))


def _rates(trace: Trace, band: Band, name: str) -> list[float]:
    """The decode rate of each request of a group, where the trace lists them."""
    listed = trace.requests.listed
    if listed is None:
        return []
    return [
        output * _US / after
        for output, after, tokens, others in zip(
            listed.output_tokens, listed.post_prefill_us, listed.input_tokens, listed.overlapping, strict=True
        )
        if after
        and band.low <= tokens
        and (band.high is None or tokens < band.high)
        and (name == "completed" or (others is not None and (others > 0) == (name == "overlapping")))
    ]


def _number(kind: str, unit: str, named: tuple[str, str], told: dict[str, Any], of: tuple[list[float], int]) -> Number:
    """A number by its value's name and statistic, of values and so many requests or windows."""
    return Number(
        measure="trace",
        value=named[0],
        kind=kind,
        unit=unit,
        statistic=named[1],
        parameters=told,
        observations=Observations.of(("trace", [each]) for each in of[0]),
        how="median",
        count=of[1],
    )

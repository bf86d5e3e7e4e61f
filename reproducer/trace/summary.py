"""Completed requests summed up: all of them, those alone, those that overlap, and each of these by band."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from reproducer.documents.traces import MOST_LISTED, Band, Clock, Columns, Group, Rate, Requests, Times
from reproducer.trace.bands import Bands
from reproducer.trace.collected import Collected
from reproducer.trace.sweep import overlaps

_SECOND = 1_000_000


@dataclass(frozen=True)
class Summary:
    """What is said of requests, as it stands in a document."""

    requests: Requests
    bands: tuple[Band, ...]


def summed(collected: Collected, bands: Bands) -> Summary:
    """Sum up requests; `docs/trace.md` has the definitions."""
    surely, possibly = _swept(collected)
    stated = collected.stated
    said = [index for index in range(len(collected)) if stated[index] >= 0]
    counts = [stated[index] if stated[index] >= 0 else surely[index] for index in range(len(collected))]
    return Summary(
        Requests(
            completed=_group(collected, range(len(collected))),
            alone=_group(collected, [index for index, count in enumerate(counts) if count == 0]),
            overlapping=_group(collected, [index for index, count in enumerate(counts) if count > 0]),
            without_span=sum(count < 0 for count in counts),
            possibly_overlapping=sum(
                count == 0 and more > 0 and stated[index] < 0
                for index, (count, more) in enumerate(zip(counts, possibly, strict=True))
            ),
            overlap="stated" if said else "swept",
            contradicted=sum(
                surely[index] >= 0 and not surely[index] <= stated[index] <= surely[index] + possibly[index]
                for index in said
            ),
            health_checks=collected.health_checks,
            prefill_halves=collected.prefill_halves,
            clocks=_clocks(collected),
            listed=_listed(collected, counts, possibly) if len(collected) <= MOST_LISTED else None,
        ),
        _bands(collected, bands, counts),
    )


def _swept(collected: Collected) -> tuple[list[int], list[int]]:
    """For each request how many others surely overlap it, and how many more may; -1 where its span is not known."""
    surely, possibly = [-1] * len(collected), [-1] * len(collected)
    of_clock: list[list[int]] = [[] for _ in collected.clocks]
    for index, number in enumerate(collected.clock):
        if collected.entered[index] >= 0 and collected.forward[index] >= 0:
            of_clock[number].append(index)
    for clock, chosen in zip(collected.clocks, of_clock, strict=True):
        starts = [collected.entered[index] for index in chosen]
        ends = [
            collected.entered[index] + max(max(collected.queue[index], 0) + collected.forward[index], 1)
            for index in chosen
        ]
        for index, sure, more in zip(chosen, *overlaps(starts, ends, clock.resolution), strict=True):
            surely[index], possibly[index] = sure, more
    return surely, possibly


def _bands(collected: Collected, bands: Bands, counts: Sequence[int]) -> tuple[Band, ...]:
    inside: list[list[int]] = [[] for _ in bands.edges]
    for index, tokens in enumerate(collected.input_tokens):
        inside[bands.index(tokens)].append(index)
    return tuple(
        Band(
            name=edges.name,
            low=edges.low,
            high=edges.high,
            completed=_group(collected, chosen),
            alone=_group(collected, [index for index in chosen if counts[index] == 0]),
            overlapping=_group(collected, [index for index in chosen if counts[index] > 0]),
        )
        for edges, chosen in zip(bands.edges, inside, strict=True)
    )


def _group(collected: Collected, chosen: Sequence[int]) -> Group:
    cached = [index for index in chosen if collected.cached_tokens[index] >= 0]
    held = sum(collected.cached_tokens[index] for index in cached)
    return Group(
        requests=len(chosen),
        input_tokens=sum(collected.input_tokens[index] for index in chosen),
        output_tokens=sum(collected.output_tokens[index] for index in chosen),
        cached_tokens=held if cached else None,
        computed_tokens=sum(collected.input_tokens[index] for index in cached) - held if cached else None,
        decode=_rate(collected.output_tokens, collected.post_prefill, chosen),
        forward=_rate(collected.output_tokens, collected.forward, chosen),
        queue=_times(collected.queue, chosen),
        prefill=_times(collected.prefill, chosen),
    )


def _rate(tokens: Sequence[int], times: Sequence[int], chosen: Sequence[int]) -> Rate | None:
    """Rates of the requests that have tokens and a time; None where none has."""
    rated = [index for index in chosen if tokens[index] > 0 and times[index] > 0]
    if not rated:
        return None
    rates = [tokens[index] * _SECOND / times[index] for index in rated]
    return Rate(
        requests=len(rated),
        median=median(rates),
        token_weighted=sum(tokens[index] for index in rated) * _SECOND / sum(times[index] for index in rated),
        lowest=min(rates),
        highest=max(rates),
    )


def _times(times: Sequence[int], chosen: Sequence[int]) -> Times | None:
    said = [times[index] for index in chosen if times[index] >= 0]
    if not said:
        return None
    return Times(requests=len(said), median_us=float(median(said)), highest_us=max(said), total_us=sum(said))


def _clocks(collected: Collected) -> tuple[Clock, ...]:
    firsts = _firsts(collected)
    return tuple(
        Clock(
            kind=clock.kind,
            resolution_us=clock.resolution,
            began=firsts[number] // _SECOND if clock.kind == "wall clock" and number in firsts else None,
        )
        for number, clock in enumerate(collected.clocks)
    )


def _firsts(collected: Collected) -> dict[int, int]:
    """The earliest time of each clock that has one."""
    firsts: dict[int, int] = {}
    for clock, entered in zip(collected.clock, collected.entered, strict=True):
        if entered >= 0 and entered < firsts.get(clock, entered + 1):
            firsts[clock] = entered
    return firsts


def _listed(collected: Collected, counts: Sequence[int], possibly: Sequence[int]) -> Columns:
    firsts = _firsts(collected)
    return Columns(
        clock=tuple(collected.clock),
        entered_us=tuple(
            entered - firsts[clock] if entered >= 0 else None
            for clock, entered in zip(collected.clock, collected.entered, strict=True)
        ),
        queue_us=_said(collected.queue),
        prefill_us=_said(collected.prefill),
        post_prefill_us=_said(collected.post_prefill),
        forward_us=_said(collected.forward),
        input_tokens=tuple(collected.input_tokens),
        cached_tokens=_said(collected.cached_tokens),
        output_tokens=tuple(collected.output_tokens),
        overlapping=_said(counts),
        possibly=_said(possibly),
    )


def _said(column: Sequence[int]) -> tuple[int | None, ...]:
    return tuple(value if value >= 0 else None for value in column)

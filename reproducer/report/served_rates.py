"""Rates of the requests of a server's log over their context: alone, overlapping and unknown apart, band by band."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from reproducer.documents.traces import Band, Columns, Group, Rate, Trace
from reproducer.report.blocks import Figure, Table
from reproducer.report.figures.banded import Level, Sort, banded
from reproducer.report.figures.clouds import Mark
from reproducer.report.text import NOTHING, number

MOST_DOTS = 2000  # more are a stain: then bands are drawn from their least to their most
_US = 1_000_000
_MARKS: dict[str, tuple[str, Mark]] = {
    "alone": ("overlapping no other request", "first"),
    "overlapping": ("overlapping another request", "second"),
    "unknown": ("whether they overlapped is unknown", "third"),
}


@dataclass(frozen=True)
class _Kind:
    """One of the two rates that a log can give; they never share a figure."""

    name: str
    title: str
    said: str
    column: str


_KINDS = (
    _Kind("decode", "Decode rate by context", "output tokens over the time after the prefill", "post_prefill_us"),
    _Kind("forward", "Request rate by context", "output tokens over the forward time, prefill included", "forward_us"),
)


def rates(index: int, boot: str, found: Trace) -> Iterator[Figure]:
    """A figure for each kind of rate that the trace of a boot has; none where no request has a rate."""
    for kind in _KINDS:
        sorts = tuple(_sorts(found, kind))
        rows = tuple(_rows(found, kind))
        if not sorts or not rows:
            continue
        name = f"served-{index}-{kind.name}"
        header = ("band", "requests", "overlap", "median", "token-weighted", "least", "most", "unit")
        caption = f"{boot}: {kind.title.lower()}, {kind.said}"
        table = Table(caption, header, rows, frozenset({1, 3, 4, 5, 6}), folded=True)
        spoken = " ".join(f"{row[0]}, {row[2]}: {row[1]} requests, median {row[3]} tok/s." for row in rows)
        dots = any(sort.points for sort in sorts)
        drawn = "A dot is one request and a line the median of its band." if dots else "Bands from least to most."
        yield Figure(
            name,
            caption,
            f"{drawn} {spoken}",
            partial(banded, name, (kind.title, "tokens of the prompt, logarithmic", "tok/s"), sorts),
            table,
        )


def _group(band: Band, sort: str) -> Group:
    return band.alone if sort == "alone" else band.overlapping


def _rate(group: Group, kind: _Kind) -> Rate | None:
    rate = group.decode if kind.name == "decode" else group.forward
    return rate if rate is not None and rate.requests else None


def _sorts(found: Trace, kind: _Kind) -> Iterator[Sort]:
    points = _points(found.requests.listed, kind)
    for sort, (label, mark) in _MARKS.items():
        bands = found.bands if sort != "unknown" else ()
        levels = tuple(
            Level(band.low, band.high, rate.median, rate.lowest, rate.highest)
            for band in bands
            for rate in [_rate(_group(band, sort), kind)]
            if rate is not None
        )
        dots = tuple(points.get(sort, ()))
        if dots or levels:
            yield Sort(label, mark, dots, levels)


def _points(listed: Columns | None, kind: _Kind) -> dict[str, list[tuple[float, float]]]:
    """Context and rate of each request by what is known of its overlap; nothing where there are too many to be seen."""
    if listed is None or len(listed.output_tokens) > MOST_DOTS:
        return {}
    found: dict[str, list[tuple[float, float]]] = {}
    spans = getattr(listed, kind.column)
    for tokens, output, span, others in zip(
        listed.input_tokens, listed.output_tokens, spans, listed.overlapping, strict=True
    ):
        if span:
            sort = "unknown" if others is None else "overlapping" if others else "alone"
            found.setdefault(sort, []).append((float(max(tokens, 1)), output * _US / span))
    return found


def _rows(found: Trace, kind: _Kind) -> Iterator[tuple[str, ...]]:
    """What each band comes to; requests whose overlap is unknown are what both halves lack."""
    for band in found.bands:
        for sort in ("alone", "overlapping"):
            rate = _rate(_group(band, sort), kind)
            if rate is not None:
                yield band.name, str(rate.requests), sort, *_numbers(rate), "tok/s"
        whole, halves = (
            _rate(band.completed, kind),
            [_rate(_group(band, each), kind) for each in ("alone", "overlapping")],
        )
        known = sum(each.requests for each in halves if each is not None)
        if whole is not None and whole.requests > known:
            told = _numbers(whole) if not known else (NOTHING,) * 4
            yield band.name, str(whole.requests - known), "unknown", *told, "tok/s"


def _numbers(rate: Rate) -> tuple[str, ...]:
    return tuple(number(each) for each in (rate.median, rate.token_weighted, rate.lowest, rate.highest))

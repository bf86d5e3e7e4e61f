"""`penny trace` as a person reads it: completed requests with and without overlap, bands, telemetry, damaged lines."""

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reproducer.cli.show_diff import wrapped

if TYPE_CHECKING:
    from reproducer.documents.traces import Distribution, Rate, Times, Trace
    from reproducer.documents.traces import Group as Requests
    from reproducer.trace.tracing import Traced

_BAR = 18
_MOST_ROWS = 24
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_WIDEST = 70


def shown(traced: "Traced") -> RenderableType:
    """The trace, narrow enough for 80 columns."""
    found = traced.trace
    parts: list[RenderableType] = []
    if found.requests.completed.requests:
        parts += _requests(found)
    if found.windows:
        parts += _windows(found)
    if found.prefills is not None:
        batches = found.prefills
        rate = "" if batches.tok_s is None else f"; input windows: median {batches.tok_s.median:,.2f} tok/s"
        said = f"{batches.computed_tokens:,} tokens computed, {batches.cached_tokens:,} found in the cache"
        parts += [Text(), wrapped(f"{batches.batches:,} prefill batches: {said}{rate}")]
    if found.counters:
        parts += _counters(found)
    return Group(*parts, *([Text()] if parts else []), *_lines(traced))


def _requests(found: "Trace") -> list[RenderableType]:
    requests = found.requests
    decoded = requests.completed.decode is not None
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading in ("", "requests", "tokens", "median", "weighted", "lowest", "highest"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, group in (
        ("completed", requests.completed),
        ("  alone", requests.alone),
        ("  overlapping", requests.overlapping),
    ):
        rate = group.decode if decoded else group.forward
        table.add_row(name, f"{group.requests:,}", f"{group.output_tokens:,}", *_rate(rate), *_ends(rate))
    parts: list[RenderableType] = [wrapped(_title(decoded=decoded), "bold"), table]
    parts += [wrapped(line) for line in _notes(found)]
    parts += [Text(), wrapped("by prompt tokens", "bold"), _bands(found, decoded=decoded)]
    return parts


def _title(*, decoded: bool) -> str:
    if decoded:
        return "completed requests, tok/s: output tokens over the time after the prefill"
    return "completed requests, tok/s: output tokens over forward time, prefill included"


def _notes(found: "Trace") -> list[str]:
    completed = found.requests.completed
    notes = _cautions(found)
    if completed.cached_tokens is not None:
        notes.append(f"prompt tokens: {completed.cached_tokens:,} cached, {completed.computed_tokens:,} computed")
    for name, times in (("queue", completed.queue), ("prefill", completed.prefill)):
        if times is not None:
            notes.append(f"{name}: {_times(times)}")
    return notes


def _cautions(found: "Trace") -> list[str]:
    """What a reader must know of the rates."""
    requests = found.requests
    unrated = requests.completed.requests - (requests.completed.decode.requests if requests.completed.decode else 0)
    told = []
    forward = requests.completed.forward.requests if requests.completed.forward else 0
    if requests.completed.decode is None:
        told.append("no request says when its prefill ended, so there is no decode rate")
        if forward < requests.completed.requests:
            told.append(f"{requests.completed.requests - forward:,} of them have no forward rate")
    elif unrated:
        told.append(f"{unrated:,} of them have no decode rate")
    if requests.overlap == "stated":
        told.append(f"overlap is as the table states it; spans contradict it {requests.contradicted:,} times")
    return told + [
        f"{count:,} {what}"
        for count, what in (
            (requests.without_span, "say nothing of when they ran: neither alone nor overlapping"),
            (requests.possibly_overlapping, "of those alone may overlap within what the clock resolves"),
            (requests.health_checks, "health checks: in no number"),
            (requests.prefill_halves, "prefill halves of split requests: in no number"),
        )
        if count
    ]


def _bands(found: "Trace", *, decoded: bool) -> Table:
    """The medians of the requests alone are drawn, too."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in ("", "alone", "median", "weighted", "", "overlap", "median", "weighted"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    rows = [each for each in found.bands if each.completed.requests]
    best = max((rate.median for each in rows if (rate := _of(each.alone, decoded=decoded)) is not None), default=0.0)
    for band in rows[:_MOST_ROWS]:
        alone, overlapping = (_of(group, decoded=decoded) for group in (band.alone, band.overlapping))
        drawn = _bar(alone.median / best) if alone is not None and best else ""
        count = f"{band.overlapping.requests:,}" if band.overlapping.requests else ""
        table.add_row(wrapped(band.name), f"{band.alone.requests:,}", *_rate(alone), drawn, count, *_rate(overlapping))
    if len(rows) > _MOST_ROWS:
        table.add_row(f"{len(rows) - _MOST_ROWS} more")
    return table


def _of(group: "Requests", *, decoded: bool) -> "Rate | None":
    return group.decode if decoded else group.forward


def _windows(found: "Trace") -> list[RenderableType]:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading in ("running", "context", "windows", "median", "highest", "accept len", "accept rate"):
        table.add_column(heading, justify="right")
    for each in found.windows[:_MOST_ROWS]:
        low, high = each.running_low, each.running_high
        table.add_row(
            str(low) if low == high else f"{low}-{high}",
            "" if each.band is None else wrapped(each.band),
            f"{each.tok_s.windows:,}",
            _median(each.tok_s),
            f"{each.tok_s.highest:,.2f}",
            _median(each.accept_length),
            _median(each.accept_rate),
        )
    total = sum(each.tok_s.windows for each in found.windows)
    parts: list[RenderableType] = [
        Text(),
        wrapped(f"{total:,} telemetry windows, tok/s of all that ran: no rates of requests", "bold"),
        table,
    ]
    if len(found.windows) > _MOST_ROWS:
        parts.append(wrapped(f"and {len(found.windows) - _MOST_ROWS} more rows: --json has all"))
    strong = ", ".join(f"{each.tok_s:,.2f} ({each.running} running)" for each in found.strongest[:3])
    parts.append(wrapped(f"strongest: {strong}"))
    if not all(each.tok_s.exact for each in found.windows):
        parts.append(wrapped("medians of windows are within 0.1 %"))
    return parts


def _counters(found: "Trace") -> list[RenderableType]:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading in ("", "total", "count", "mean"):
        table.add_column(heading, justify="left" if not heading else "right", overflow="fold")
    for each in found.counters:
        mean = f"{each.total / each.count:,.4f}" if each.count else ""
        table.add_row(wrapped(each.name), f"{each.total:,.6g}", "" if each.count is None else f"{each.count:,}", mean)
    return [Text(), wrapped("metrics, since the server started", "bold"), table]


def _lines(traced: "Traced") -> list[RenderableType]:
    """Every file, every line, and what is wrong with the damaged ones."""
    found = traced.trace
    parts: list[RenderableType] = []
    for each in found.sources:
        whole = "" if each.whole else ", not read to its end"
        parts.append(wrapped(f"{each.name}: {each.kind}, {each.lines:,} lines{whole}"))
    counts = ", ".join(f"{count:,} {name}" for name, count in found.lines.model_dump().items() if count)
    parts.append(wrapped(f"lines: {counts or 'none'}"))
    for damage in found.damage:
        parts.append(wrapped(f"{damage.kind}: {damage.lines:,}", "yellow"))
        for excerpt in traced.excerpts:
            if excerpt.kind == damage.kind:
                text = excerpt.begins.decode("utf-8", "replace")
                place = f"  {found.sources[excerpt.source].name}:{excerpt.line}"
                parts.append(wrapped(f"{place} {text[:_WIDEST]}{'…' if len(text) > _WIDEST else ''}"))
    return parts


def _rate(rate: "Rate | None") -> tuple[str, str]:
    return ("", "") if rate is None else (f"{rate.median:,.2f}", f"{rate.token_weighted:,.2f}")


def _ends(rate: "Rate | None") -> tuple[str, str]:
    return ("", "") if rate is None else (f"{rate.lowest:,.2f}", f"{rate.highest:,.2f}")


def _median(found: "Distribution | None") -> str:
    return "" if found is None else f"{found.median:,.2f}"


def _times(times: "Times") -> str:
    return f"median {times.median_us / 1000:,.2f} ms, longest {times.highest_us / 1000:,.2f} ms"


def _bar(share: float) -> str:
    """A bar of whole cells and eighths."""
    eighths = max(1, round(share * _BAR * 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()

"""Sections that show values as distributions: spread, decode against context, prefill, restore, acceptance."""

from collections.abc import Iterator
from functools import partial
from statistics import median, quantiles

from reproducer.documents.receipts import MeasureReceipt
from reproducer.report.blocks import Block, Figure, Prose, Section, Table
from reproducer.report.figures.clouds import Cloud, Mark, Plot, clouds
from reproducer.report.figures.shares import MOST, Steps, shares
from reproducer.report.figures.strips import Panel, Strip, strips
from reproducer.report.observed import Observed, gaps, observed
from reproducer.report.subject import Subject
from reproducer.report.text import NOTHING, number

_LONGEST = 34
_ALONE = frozenset({"decode_rate"})
_RATES = frozenset({"decode_rate", "request_rate"})
_PAIRS = (("cold_s", "restore_s"), ("cold_worst_s", "restore_worst_s"), ("ttft_cold_s", "ttft_warm_s"))
_ENOUGH = 20
_STEPS = 16


def spread(subject: Subject) -> Section | None:
    """Every number on a scale, a figure for each measure."""
    blocks: list[Block] = []
    for index, (name, receipt) in enumerate(subject.named):
        found = observed(subject, receipt)
        if not found:
            continue
        panels = tuple(_panel(each) for each in found)
        drawn = partial(strips, f"spread-{index}", panels)
        blocks.append(
            Figure(
                f"spread-{index}",
                name,
                f"Every value of {', '.join(each.derived.name for each in found)} by boot. {_spoken(found)}",
                drawn,
                _values(name, found),
            )
        )
    if not blocks:
        return None
    lead = (
        "A dot is one value, a row one boot of the server. The line is the number that the receipt states; the band, "
        "where there is one, its 95 % interval. A box spans the quartiles where a boot has five values or more."
    )
    return Section("spread", "Spread", (Prose(lead), *blocks, *_between(subject)), "receipt")


def _panel(found: Observed) -> Panel:
    spread_ = found.derived.spread
    return Panel(
        short(found.derived.name),
        found.derived.unit,
        tuple(Strip(boot, values) for boot, values in found.boots),
        found.derived.value,
        None if spread_ is None else (spread_.low, spread_.high),
    )


def short(name: str) -> str:
    """A name as it fits above a panel; a receipt may hold one of any length."""
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _spoken(found: tuple[Observed, ...]) -> str:
    return " ".join(
        f"{each.derived.name}: {number(each.derived.value)} {each.derived.unit}, "
        f"from {number(each.derived.minimum)} to {number(each.derived.maximum)}."
        for each in found
    )


def _values(name: str, found: tuple[Observed, ...]) -> Table:
    rows = tuple(
        (each.derived.name, boot, str(len(values)), *(number(value) for value in _five(values)), each.derived.unit)
        for each in found
        for boot, values in each.boots
    )
    header = ("value", "boot", "n", "least", "lower quartile", "median", "upper quartile", "most", "unit")
    return Table(f"{name}: values by boot", header, rows, frozenset(range(2, 8)), frozenset({0}), folded=True)


def _five(values: tuple[float, ...]) -> tuple[float, ...]:
    low, middle, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return min(values), low, middle, high, max(values)


def _between(subject: Subject) -> Iterator[Block]:
    """The time between chunks of an answer, where one request ran at a time."""
    for index, (name, receipt) in enumerate(subject.named):
        if not receipt.measure.startswith("decode.single/") or not receipt.samples:
            continue
        lines = tuple(Steps(boot, values) for boot, values in gaps(subject, receipt) if min(values) > 0)[:MOST]
        if sum(len(line.values) for line in lines) < _ENOUGH:
            continue
        title = "Time between the chunks of one answer"
        drawn = partial(shares, f"between-{index}", "ms, logarithmic", lines)
        rows = tuple(
            (line.label, str(len(line.values)), *(number(value) for value in _tail(line.values))) for line in lines
        )
        header = ("boot", "n", "least", "median", "90 %", "99 %", "most")
        table = Table(f"{name}: milliseconds between chunks", header, rows, frozenset(range(1, 7)), folded=True)
        spoken = " ".join(f"{row[0]}: median {row[3]} ms, 99 % within {row[5]} ms." for row in rows)
        yield Figure(f"between-{index}", f"{name}: {title.lower()}", f"A line a boot. {spoken}", drawn, table)


def _tail(values: tuple[float, ...]) -> tuple[float, ...]:
    """Least, median, nearest ranks of 90 % and 99 %, most."""
    ordered = sorted(values)
    nearest = (ordered[-(-len(ordered) * share // 100) - 1] for share in (90, 99))
    return ordered[0], median(ordered), *nearest, ordered[-1]


def _prompt(receipt: MeasureReceipt) -> float | None:
    """The length of the prompt that a measure was given."""
    found = receipt.parameters.get("prompt_tokens")
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) and found > 0 else None


def _points(subject: Subject, names: frozenset[str]) -> Iterator[tuple[str, float, Observed]]:
    for name, receipt in subject.named:
        size = _prompt(receipt)
        if size is not None:
            for each in observed(subject, receipt, names):
                yield name, size, each


def context(subject: Subject) -> Section | None:
    """Decode rates over the length of the prompt; requests that overlap are shown apart from those that ran alone."""
    found = list(_points(subject, _RATES))
    alone = [each for each in found if each[2].derived.name in _ALONE]
    beside = [each for each in found if each[2].derived.name not in _ALONE]
    sorts = (
        *_sorts(alone, "one request at a time", ("first", "fourth"), joined=True),
        *_sorts(beside, "overlapping requests", ("second", "third"), joined=False),
    )
    if not sorts:
        return None
    drawn = partial(clouds, "context", (Plot("Decode", "tokens of the prompt, logarithmic", "tok/s", sorts),))
    rows = tuple(
        (
            name,
            number(size),
            "alone" if each.derived.name in _ALONE else "overlapping",
            str(len(each.derived.values)),
            number(each.derived.minimum),
            number(median(each.derived.values)),
            number(each.derived.maximum),
        )
        for name, size, each in found
    )
    header = ("measure", "prompt tokens", "requests", "n", "least", "median", "most")
    table = Table("Completed-request rate, tok/s", header, rows, frozenset({1, 3, 4, 5, 6}), frozenset({0}))
    lead = (
        "The rate of each completed request after its first chunk. Requests that shared the server with others are "
        "another thing than requests that had it to themselves: they have a mark of their own and no common average."
    )
    described = "Completed-request rate over the length of the prompt; alone and overlapping requests apart."
    figure = Figure("context", "Decode against context", described, drawn, table)
    return Section("context", "Decode against context", (Prose(lead), figure), "receipt")


def _sorts(
    found: list[tuple[str, float, Observed]], told: str, marks: tuple[Mark, ...], *, joined: bool
) -> tuple[Cloud, ...]:
    """A sort of points for each measure: no line joins what two measures gave."""
    points: dict[str, list[tuple[float, float]]] = {}
    for name, size, each in found:
        points.setdefault(name.partition("[")[0], []).extend((size, value) for value in each.derived.values)
    return tuple(
        Cloud(f"{short(name)}: {told}", tuple(of), marks[index % len(marks)], _medians(of) if joined else ())
        for index, (name, of) in enumerate(points.items())
    )


def _medians(points: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """The median at each size; no line where there is one size."""
    sizes = sorted({size for size, _ in points})
    if len(sizes) < 2:  # noqa: PLR2004  a line has two ends
        return ()
    return tuple((size, median(value for other, value in points if other == size)) for size in sizes)


def prefill(subject: Subject) -> Section | None:
    """Prefill rate and time to the first token of cold prompts, rung by rung."""
    measures = {name for name, _, _ in _points(subject, frozenset({"prefill_rate"}))}
    found = [each for each in _points(subject, frozenset({"prefill_rate", "ttft_s"})) if each[0] in measures]
    if not found:
        return None
    plots = []
    for value, title, unit in (("prefill_rate", "Prefill", "tok/s"), ("ttft_s", "Time to first token", "s")):
        of_value = [each for each in found if each[2].derived.name == value]
        if of_value:
            sorts = _sorts(of_value, "cold prompts", ("first", "fourth"), joined=True)
            plots.append(Plot(title, "tokens of the prompt, logarithmic", unit, sorts))
    ladder = len({size for _, size, _ in found}) > 1
    drawn = partial(clouds, "prefill", tuple(plots)) if ladder else partial(strips, "prefill", _rung(found))
    rows = tuple(
        (name, number(size), each.derived.name, str(len(each.derived.values)), *_reach(each), each.derived.unit)
        for name, size, each in found
    )
    header = ("measure", "prompt tokens", "value", "n", "least", "median", "most", "unit")
    table = Table("Prefill of cold prompts", header, rows, frozenset({1, 3, 4, 5, 6}), frozenset({0, 2}))
    lead = "The rate is prompt tokens over the time to the first token, so queueing and the first step count as well."
    described = "Prefill rate and time to first token over the length of the prompt, a dot for each sample."
    figure = Figure("prefill", "Prefill ladder", described, drawn, table)
    return Section("prefill", "Prefill ladder", (Prose(lead), figure), "receipt")


def _rung(found: list[tuple[str, float, Observed]]) -> tuple[Panel, ...]:
    """One length alone is no ladder: its values by boot."""
    return tuple(_panel(each) for _, _, each in found)


def _reach(each: Observed) -> tuple[str, str, str]:
    values = each.derived.values
    return number(min(values)), number(median(values)), number(max(values))


def restore(subject: Subject) -> Section | None:
    """Prompts whose pages were there against the same prompts cold, in one unit on one axis."""
    panels: list[Panel] = []
    rows: list[tuple[str, ...]] = []
    for name, receipt in subject.named:
        found = {each.derived.name: each for each in observed(subject, receipt, frozenset(sum(_PAIRS, ())))}
        for cold, warm in _PAIRS:
            if cold in found and warm in found:
                before, after = found[cold].derived, found[warm].derived
                strips_ = (Strip("cold", before.values, "second"), Strip("kept", after.values))
                panels.append(Panel(short(name), "s to the first token", strips_, rising=True))
                shares_ = _share(receipt)
                for word, each in (("cold", found[cold]), ("kept", found[warm])):
                    told = shares_ if word == "kept" else NOTHING
                    rows.append((name, word, str(len(each.derived.values)), *_reach(each), told))
    if not panels:
        return None
    drawn = partial(strips, "restore", tuple(panels))
    header = ("measure", "pages", "n", "least", "median", "most", "tokens from cache")
    table = Table("Seconds to the first token", header, tuple(rows), frozenset(range(2, 7)), frozenset({0}))
    lead = (
        "The same prompts, first cold and then with the pages that an earlier request had left: in memory for a reused "
        "prefix, in storage alone after a restart. A time is compared with a time; restored tokens a second are a kind "
        "of number of their own."
    )
    described = "Time to the first token, cold against kept pages, a dot for each sample."
    return Section(
        "restore",
        "Restore",
        (Prose(lead), Figure("restore", "Cold and kept", described, drawn, table)),
        "receipt",
    )


def _share(receipt: MeasureReceipt) -> str:
    wanted = ("storage_tokens", "reused_tokens", "hit_tokens_after")
    return next((number(each.value) for each in receipt.derived if each.name in wanted), NOTHING)


def acceptance(subject: Subject) -> Section | None:
    """What speculation got right: the length accepted in a step, and in how many steps how much was."""
    blocks: list[Block] = []
    for index, (name, receipt) in enumerate(subject.named):
        found = observed(subject, receipt, frozenset({"accept_length", "accept_rate"}))
        if not found:
            continue
        drawn = partial(strips, f"acceptance-{index}", tuple(_panel(each) for each in found))
        table = _values(name, found)
        blocks.append(Figure(f"acceptance-{index}", name, _spoken(found), drawn, table))
        blocks += _steps(name, receipt)
    if not blocks:
        return None
    lead = "Counts are the engine's own, request by request, and `verify` holds them against the tokens that came."
    return Section("acceptance", "Acceptance", (Prose(lead.replace("`", "")), *blocks), "receipt")


def _steps(name: str, receipt: MeasureReceipt) -> list[Block]:
    """In how many steps 0, 1, 2 … drafted tokens were right, where the engine tells."""
    counts = [0] * _STEPS
    for sample in receipt.samples:
        for request in () if sample.warmup else sample.requests:
            told = request.speculation.accepted_in_steps if request.speculation is not None else None
            for right, steps in enumerate((told or ())[:_STEPS]):
                counts[right] += steps
    whole = sum(counts)
    if not whole:
        return []
    last = max(right for right, steps in enumerate(counts) if steps)
    rows = tuple((str(right), str(counts[right]), f"{counts[right] / whole:.1%}") for right in range(last + 1))
    header = ("drafted tokens that were right", "steps", "share")
    return [Table(f"{name}: steps by accepted tokens", header, rows, frozenset({0, 1, 2}))]

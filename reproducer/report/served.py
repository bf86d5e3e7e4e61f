"""What the servers' own logs say of the boots: it stands apart from every measure."""

from collections.abc import Iterator

from reproducer.documents.traces import Distribution, Rate, Trace
from reproducer.report.blocks import Block, Prose, Section, Table
from reproducer.report.served_rates import rates
from reproducer.report.subject import Subject
from reproducer.report.text import NOTHING, number

_FIGURES = (
    "A dot is one request, a dotted line the edge of a band of context, a level the median of its band. Requests that "
    "overlapped another and those that did not have a mark of their own, and no median is made over both."
)


def served(subject: Subject) -> Section | None:
    """Completed requests and telemetry windows by boot; None where no log was traced."""
    if not subject.traces:
        return None
    names = {each.digest: subject.boots[each.boot.id] for each in subject.launches}
    told = [(names.get(each.served.launch_receipt, NOTHING), each) for each in subject.traces if each.served]
    lead = (
        "Read from the server's log after each boot: warm-up requests are among them, health checks are not. A rate of "
        "requests here is no measure, and a telemetry window is no rate of a request."
    )
    blocks: list[Block] = [Prose(lead)]
    if rows := tuple(row for name, each in told for row in _requests(name, each)):
        header = ("boot", "requests", "overlap", "output tokens", "median", "token-weighted", "tok/s over")
        blocks.append(Table("Completed requests by boot", header, rows, frozenset({1, 3, 4, 5}), grouped=True))
    figures = [figure for index, (name, each) in enumerate(told) for figure in rates(index, name, each)]
    if figures:
        blocks.append(Prose(_FIGURES))
        blocks += figures
    if rows := tuple(row for name, each in told for row in _windows(name, each)):
        header = ("boot", "running", "context", "windows", "median tok/s", "highest tok/s", "accept length")
        blocks.append(Table("Telemetry windows by boot", header, rows, frozenset({3, 4, 5, 6}), grouped=True))
    lines = tuple(
        (
            name,
            source.sha256,
            str(source.lines),
            str(each.lines.damaged),
            ", ".join(f"{found.kind} {found.lines}" for found in each.damage) or "nothing",
        )
        for name, each in told
        for source in each.sources
    )
    columns = ("boot", "sha256 of the log", "lines", "damaged", "what is wrong with them")
    blocks.append(Table("Logs", columns, lines, frozenset({2, 3}), frozenset({1}), folded=True))
    return Section("served", "What the servers' logs say", tuple(blocks))


def _requests(name: str, found: Trace) -> Iterator[tuple[str, ...]]:
    for group, said in ((found.requests.alone, "alone"), (found.requests.overlapping, "overlapping")):
        if group.requests:
            rate = group.decode or group.forward
            over = "time after the prefill" if group.decode else "forward time, prefill included"
            yield name, str(group.requests), said, str(group.output_tokens), *_rate(rate), over if rate else NOTHING


def _rate(rate: Rate | None) -> tuple[str, str]:
    return (NOTHING, NOTHING) if rate is None else (number(rate.median), number(rate.token_weighted))


def _windows(name: str, found: Trace) -> Iterator[tuple[str, ...]]:
    for each in found.windows:
        low, high = each.running_low, each.running_high
        running = str(low) if low == high else f"{low} to {high}"
        speed = each.tok_s
        yield (
            name, running, each.band or "unknown", str(speed.windows), number(speed.median), number(speed.highest),
            _median(each.accept_length),
        )  # fmt: skip


def _median(found: Distribution | None) -> str:
    return NOTHING if found is None else number(found.median)

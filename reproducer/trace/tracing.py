"""From files to a trace: each is read once, in the order in which it is named, and every line is accounted for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from reproducer import __version__
from reproducer.documents.traces import Counter, Lines, Served, SourceKind, Trace, TraceSource
from reproducer.errors import UsageError
from reproducer.progress import Silent
from reproducer.trace.bands import PUBLISHED, Bands, parse_bands
from reproducer.trace.collected import Collected
from reproducer.trace.damage import Excerpt, Tally
from reproducer.trace.lines import MOST_UNPACKED, LogFile, Piece
from reproducer.trace.logs import INSIDE, LogReader, Stamps
from reproducer.trace.metrics import MetricsReader, is_metrics
from reproducer.trace.summary import summed
from reproducer.trace.table import TableReader, is_table
from reproducer.trace.telemetry import Prefilling, Telemetry

if TYPE_CHECKING:
    from reproducer.progress import Reporter, Task

MOST_SOURCES = 1_000
_LONGEST_NAME = 255
_SNIFFED = 64 << 10


@dataclass(frozen=True)
class Traced:
    """A trace, and how the damaged lines of it begin: those are shown to whoever has the log, and to nobody else."""

    trace: Trace
    excerpts: tuple[Excerpt, ...]


@dataclass
class _Work:
    """What all sources fill together."""

    bands: Bands
    collected: Collected = field(default_factory=Collected)
    tally: Tally = field(default_factory=Tally)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(Lines.model_fields, 0))
    sources: list[TraceSource] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    stamps: Stamps = field(default_factory=Stamps)
    read: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.telemetry = Telemetry(self.bands)
        self.prefilling = Prefilling(self.telemetry.budget)


def trace(
    paths: Sequence[Path],
    *,
    bands: Bands | None = None,
    served: Served | None = None,
    most_unpacked: int = MOST_UNPACKED,
    reporter: "Reporter | None" = None,
) -> Traced:
    """Read logs, metrics pages and tables of one server into one trace.

    Args:
        paths: the files; a rotated log is named in the order in which it was written. Packed ones (gzip) are unpacked.
        bands: bands of context; those of the published table by default.
        served: the boot of penny's own server whose log it is.
        most_unpacked: how many bytes are read of each file, unpacked.
        reporter: where progress goes.

    Raises:
        UsageError, UnsafeInputError: a file is not there, is no plain file, or holds the same text as another one.
        InvalidDocumentError: a table's header is none.
        NotCheckedError: a file cannot be read.
    """
    work = _Work(bands or parse_bands(PUBLISHED))
    for path in paths:
        size = path.stat().st_size if path.is_file() else None
        with (reporter or Silent()).task(_name(path), size, "bytes") as task:
            _read(work, path, most_unpacked, task)
    work.collected.close()
    summary = summed(work.collected, work.bands)
    found = Trace(
        format="penny-trace/1",
        penny_version=__version__,
        served=served,
        sources=tuple(work.sources),
        lines=Lines(**work.counts),
        damage=work.tally.told(),
        requests=summary.requests,
        bands=summary.bands,
        windows=work.telemetry.windows(),
        strongest=work.telemetry.strongest(),
        prefills=work.prefilling.told(),
        prompts=work.telemetry.prompts(),
        counters=tuple(work.counters),
    )
    return Traced(found, tuple(work.tally.excerpts))


def _read(work: _Work, path: Path, most: int, task: "Task") -> None:
    """Read one file."""
    file = LogFile(path, most=most, wanted=INSIDE)
    pieces = _watched(file, task)
    first = next(pieces, None)
    start = b"" if first is None else first.text[:_SNIFFED]
    source = len(work.sources)
    kind: SourceKind = "nothing known"
    if is_metrics(start):
        page = MetricsReader(source, work.tally)
        for piece in chain([] if first is None else [first], pieces):
            page.read(piece)
        kind = "metrics"
        work.counters += page.counters()
        counts = {"metrics": page.read_lines, "damaged": page.damaged}
    elif is_table(start):
        table = TableReader(str(path), source, work.collected, work.tally)
        for piece in chain([] if first is None else [first], pieces):
            table.read(piece)
        kind = "table of requests"
        counts = {"requests": table.requests, "damaged": table.damaged}
    else:
        log = LogReader(source, work.collected, work.telemetry, work.prefilling, work.tally, stamps=work.stamps)
        for piece in chain([] if first is None else [first], pieces):
            log.read(piece)
        if log.sglang or log.vllm:
            kind = "SGLang log" if log.sglang >= log.vllm else "vLLM log"
        counts = {
            "requests": log.requests,
            "windows": log.windows,
            "prefills": log.prefills,
            "damaged": log.damaged,
        }
    if file.lines and file.text_sha256 in work.read:
        same = work.read[file.text_sha256]
        raise UsageError(
            "holds the same text as another file", where=str(path), why=f"as {same}", todo="name each log once"
        )
    work.read[file.text_sha256] = _name(path)
    if file.fault:
        work.tally.add("not unpacked", source, file.lines, file.fault.encode())
    for name, count in counts.items():
        work.counts[name] += count
    work.counts["others"] += file.lines - sum(counts.values())
    work.sources.append(
        TraceSource(
            name=_name(path),
            kind=kind,
            sha256=file.sha256,
            size=file.size,
            lines=file.lines,
            unpacked=file.unpacked,
            whole=not file.fault,
        )
    )


def _watched(file: LogFile, task: "Task") -> Iterator[Piece]:
    """The pieces of a file, while a bar shows how much of it was read."""
    before = 0
    for piece in file.pieces():
        task.advance(file.size - before)
        before = file.size
        yield piece


def _name(path: Path) -> str:
    """A file's name as it may stand in a document: without control characters and bytes that are no text."""
    text = path.name.encode("utf-8", "replace").decode("utf-8")
    return "".join(character if character.isprintable() else "?" for character in text)[:_LONGEST_NAME] or "?"

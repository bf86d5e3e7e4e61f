"""What a server's own log, its metrics or a table of requests says of ordinary use: a trace, `penny-trace/1`.

Nobody chose the requests of a trace, so it is no measure and stands in no threshold. A rate of completed requests and a
telemetry window are types of their own. Times are whole microseconds; what a source does not say is None, never zero.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from reproducer.documents.base import ContradictionError, Document, Fault, Part, Sha256, Size, Text

FORMAT = "penny-trace/1"
MOST_LISTED = 40_000
Label = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$")]
Microseconds = Annotated[int, Field(ge=0, le=2**53 - 1)]
Number = Annotated[float, Field(ge=0, le=1e15)]
SourceKind = Literal["SGLang log", "vLLM log", "metrics", "table of requests", "nothing known"]
ClockKind = Literal["wall clock", "process clock", "time of day", "none"]
DamageKind = Literal[
    "malformed",
    "interleaved",
    "truncated",
    "too long",
    "not text",
    "out of range",
    "contradictory",
    "repeated",
    "backwards",
    "not unpacked",
]


class TraceSource(Part):
    """One file, in the order in which it was read.

    Attributes:
        name: its name without folders.
        sha256: of its bytes as they lie on the disk.
        size: how many those are.
        lines: how many lines it holds, unpacked; one that a line feed does not end counts too.
        unpacked: how many bytes were read as text.
        whole: False where it ended before its end: a packed file that is cut or larger than may be unpacked.
    """

    name: Label
    kind: SourceKind
    sha256: Sha256
    size: Size
    lines: Size
    unpacked: Size
    whole: bool


class Place(Part):
    """A line, from 1, of a source, from 0."""

    source: Size
    line: Size


class Damage(Part):
    """Lines that carry a report and gave no number, or give one with a caution; `examples` are the first of them."""

    kind: DamageKind
    lines: Size
    examples: tuple[Place, ...]


class Lines(Part):
    """Every line of every source, counted once.

    Attributes:
        requests: reports of a completed request (`ReqTimeStats`, `Finish:`, a row of a table).
        windows: telemetry of decoding, acceptance lines of vLLM included.
        prefills: telemetry of prefilling.
        metrics: samples and comments of a metrics page.
        others: lines that carry no report.
        damaged: lines that carry one that could not be read; `Trace.damage` says what is wrong with them.
    """

    requests: Size
    windows: Size
    prefills: Size
    metrics: Size
    others: Size
    damaged: Size


class Clock(Part):
    """A clock that spans are read from; spans of two clocks are never laid over each other.

    Attributes:
        resolution_us: by how much two times of it can be off against each other.
        began: the earliest time on a wall clock, in seconds since 1970; None of a clock that has no date.
    """

    kind: ClockKind
    resolution_us: Microseconds
    began: Size | None = None


class Rate(Part):
    """Rates of completed requests over a group of them, in tok/s.

    Attributes:
        requests: how many requests of the group have a rate.
        median: of the rates of the requests.
        token_weighted: all their output tokens over all their time.
    """

    requests: Size
    median: Number
    token_weighted: Number
    lowest: Number
    highest: Number


class Times(Part):
    """Times of a group of requests.

    Attributes:
        requests: how many requests of the group say it.
    """

    requests: Size
    median_us: Number
    highest_us: Microseconds
    total_us: Microseconds


class Group(Part):
    """A set of completed requests, summed up.

    Attributes:
        cached_tokens: prompt tokens that were in the cache, of the requests that say so; None where none does.
        computed_tokens: the other prompt tokens of the same requests.
        decode: output tokens over the time after the prefill; None where no request says when its prefill ended.
        forward: output tokens over the whole forward time, prefill included: another number, never a decode rate.
    """

    requests: Size
    input_tokens: Size
    output_tokens: Size
    cached_tokens: Size | None = None
    computed_tokens: Size | None = None
    decode: Rate | None = None
    forward: Rate | None = None
    queue: Times | None = None
    prefill: Times | None = None


class Band(Part):
    """The requests whose prompt has at least `low` and fewer than `high` tokens; None is no upper end."""

    name: Label
    low: Size
    high: Size | None = None
    completed: Group
    alone: Group
    overlapping: Group


class Columns(Part):
    """Completed requests in the order of their reports, one entry a request in each column.

    Attributes:
        clock: index of the clock that `entered_us` is read from.
        entered_us: when it entered the queue, since the first request of its clock.
        prefill_us: from the start of its forward work to the end of its prefill.
        post_prefill_us: from there to its end: what a decode rate is made of.
        overlapping: how many other requests surely overlap it; None where its span is not known.
        possibly: how many more may, within what the clock resolves.
    """

    clock: tuple[Size, ...]
    entered_us: tuple[Microseconds | None, ...]
    queue_us: tuple[Microseconds | None, ...]
    prefill_us: tuple[Microseconds | None, ...]
    post_prefill_us: tuple[Microseconds | None, ...]
    forward_us: tuple[Microseconds | None, ...]
    input_tokens: tuple[Size, ...]
    cached_tokens: tuple[Size | None, ...]
    output_tokens: tuple[Size, ...]
    overlapping: tuple[Size | None, ...]
    possibly: tuple[Size | None, ...]

    @model_validator(mode="after")
    def _even(self) -> Self:
        """Every column has one entry a request.

        Raises:
            ContradictionError: names each that has not.
        """
        wanted = len(self.output_tokens)
        faults = tuple(
            Fault((name,), f"holds {len(getattr(self, name))} entries, output_tokens holds {wanted}")
            for name in type(self).model_fields
            if len(getattr(self, name)) != wanted
        )
        if faults:
            raise ContradictionError(faults)
        return self


class Requests(Part):
    """Completed requests: those that overlap no other one, those that do, and both together.

    Attributes:
        without_span: how many say nothing of when they ran; they are in `completed` and in neither half.
        possibly_overlapping: how many of those `alone` may overlap another within what the clock resolves.
        overlap: whether it was swept from spans, or stated by the table that the requests come from.
        contradicted: how many stated overlaps the spans rule out.
        health_checks: requests that the server sent itself to see whether it lives; in no number.
        prefill_halves: reports of the prefill server of a split pair; the decode server reports the request.
        listed: every request; None where there are more than a document carries.
    """

    completed: Group
    alone: Group
    overlapping: Group
    without_span: Size
    possibly_overlapping: Size
    overlap: Literal["swept", "stated"]
    contradicted: Size
    health_checks: Size
    prefill_halves: Size
    clocks: tuple[Clock, ...]
    listed: Columns | None = None


class Distribution(Part):
    """Values of many telemetry windows; `exact` is False where the median is within 0.1 % of the true one."""

    windows: Size
    median: Number
    lowest: Number
    highest: Number
    exact: bool


class Windows(Part):
    """Telemetry windows with one range of running requests and one band of context for each of them.

    Attributes:
        running_low: at least so many requests were running.
        running_high: at most so many.
        band: by the tokens that the engine holds for each running request; None where the line does not say.
        tok_s: what the engine says it generated in all, over a span of its own choice: never the rate of a request.
        accept_length: tokens for each step of verification; None where the engine speculates not.
        accept_rate: accepted of the drafted tokens, 0 to 1.
    """

    running_low: Size
    running_high: Size
    band: Label | None = None
    tok_s: Distribution
    accept_length: Distribution | None = None
    accept_rate: Distribution | None = None


class Window(Part):
    """One telemetry window.

    Attributes:
        at: the stamp of its line.
        tokens: what the engine holds in its KV cache; None where the line does not say.
    """

    place: Place
    at: Label | None = None
    tok_s: Number
    running: Size
    queued: Size | None = None
    tokens: Size | None = None
    accept_length: Number | None = None
    accept_rate: Number | None = None


class Prefills(Part):
    """What the engine says of its prefill batches, summed up.

    Attributes:
        computed_tokens: prompt tokens that were computed.
        cached_tokens: prompt tokens that were found in the cache.
        tok_s: its input throughput windows.
    """

    batches: Size
    computed_tokens: Size
    cached_tokens: Size
    tok_s: Distribution | None = None


class Counter(Part):
    """One metric of a metrics page, summed over its labels: since the server started, nothing of one request.

    Attributes:
        total: of a counter, its value; of a histogram, the sum of what was observed.
        count: of a histogram, how often.
    """

    source: Size
    name: Label
    total: Number
    count: Size | None = None


class Served(Part):
    """The boot of penny's own server whose log this is."""

    lock_digest: Sha256
    launch_receipt: Sha256


class Trace(Document):
    """`trace.json`, format `penny-trace/1`.

    Attributes:
        served: None of a log that somebody named.
        strongest: the telemetry windows with the most tok/s, the strongest first.
        prompts: at which rates vLLM says that it computed prompts, window by window.
    """

    format: Literal["penny-trace/1"]
    penny_version: Text
    served: Served | None = None
    sources: tuple[TraceSource, ...]
    lines: Lines
    damage: tuple[Damage, ...]
    requests: Requests
    bands: tuple[Band, ...]
    windows: tuple[Windows, ...]
    strongest: tuple[Window, ...]
    prefills: Prefills | None = None
    prompts: Distribution | None = None
    counters: tuple[Counter, ...] = ()


def is_trace(data: object) -> bool:
    """Whether parsed data says of itself that it is a trace, of whatever version."""
    return isinstance(data, dict) and str(data.get("format", "")).startswith("penny-trace/")

"""What the receipt of a measure is made of: samples of requests, numbers derived from them, and the conditions.

Times are integers in nanoseconds on a monotonic clock, relative to a stated origin.
"""

from typing import Annotated, Literal

from pydantic import Field

from reproducer.documents.base import Part, Sha256, Size, Text
from reproducer.documents.built import HostFacts
from reproducer.documents.lock import ParameterName, Scalar, Threshold
from reproducer.documents.transcripts import CapabilityConditions, Transcript

Nanoseconds = Annotated[int, Field(ge=0, le=2**53 - 1)]
Statistics = Literal["penny-statistics/1"]
Unit = Literal["tok/s", "s", "tokens", "ratio", "nats", "requests", "count", "bool", "MiB/min"]
ValueKind = Literal[
    "completed-request rate",
    "aggregate makespan rate",
    "time-to-first-token prefill rate",
    "restored-prefix rate",
    "aggregate restored-prefix rate",
    "duration",
    "count",
    "agreement",
    "divergence",
    "fact",
    "score",
]


class Candidate(Part):
    """One of the likeliest tokens at one position; natural logarithm."""

    token: int
    logprob: float


class Speculated(Part):
    """What an engine counts of one request's speculation, in its own words.

    Attributes:
        verify_steps: how often the target checked drafted tokens.
        accepted_tokens: drafted tokens that were right.
        drafted_tokens: drafted tokens that were scheduled to be checked.
        accept_length: tokens per step, as the engine works it out.
        accept_rate: accepted of the drafted ones, as the engine works it out.
        accepted_in_steps: in how many steps 0, 1, 2 ... drafted tokens were right; None where it is not told.
    """

    verify_steps: Size
    accepted_tokens: Size
    drafted_tokens: Size
    accept_length: float
    accept_rate: float
    accepted_in_steps: tuple[Size, ...] | None = None


class RequestRecord(Part):
    """One request as the client saw it; times are relative to the sample's origin.

    Attributes:
        events: (time, tokens so far) of each chunk that brought tokens.
        cached_by_tier: cached prompt tokens by tier (`device`, `host`, `storage`), as the engine reports them.
        top_logprobs: per output position the likeliest tokens, only where the measure asks for them.
        speculation: what the engine counts of drafted tokens; None where it speculates not or does not tell.
    """

    sent_ns: Nanoseconds
    finished_ns: Nanoseconds
    events: tuple[tuple[Nanoseconds, Size], ...]
    prompt_tokens: Size
    output_tokens: Size
    cached_tokens: Size
    cached_by_tier: dict[str, Size] = {}
    prompt_sha256: Sha256
    output_ids: tuple[int, ...] | None = None
    output_text: Text | None = None
    top_logprobs: tuple[tuple[Candidate, ...], ...] | None = None
    finish_reason: Text
    error: Text | None = None
    speculation: Speculated | None = None


class Reading(Part):
    """What the server's processes held at one moment; what could not be read is None.

    Attributes:
        at_ns: when, relative to the sample's origin.
        resident_bytes: memory of all its processes that is not swapped out; shared pages count in each.
        open_files: file descriptors of all its processes.
        gpu_bytes: memory in use on all GPUs of the machine.
    """

    at_ns: Nanoseconds
    resident_bytes: Size | None = None
    open_files: Size | None = None
    gpu_bytes: Size | None = None


class Sample(Part):
    """One repetition of a measure in one boot.

    Attributes:
        boot: id of the boot it ran in.
        warmup: whether it is excluded from derived values; it is kept all the same.
        facts: what the measure observed besides requests (the planted needle, the engine's own count).
        readings: what the server held meanwhile, in order; None where the measure does not look.
        transcripts: what a model said in each case of a capability suite; None of every other measure.
    """

    index: Size
    boot: Sha256
    warmup: bool
    requests: tuple[RequestRecord, ...]
    facts: dict[ParameterName, Scalar] = {}
    readings: tuple[Reading, ...] | None = None
    transcripts: tuple[Transcript, ...] | None = None


class Spread(Part):
    """How sure a derived value is (`docs/statistics.md`).

    Attributes:
        method: how the interval was made.
        low: lower end of the interval.
        high: its upper end.
        within_boots: standard deviation of samples of one boot; None where no boot has two.
        between_boots: standard deviation of what the boots give; None where there is one.
    """

    method: Literal["bootstrap/1", "wilson/1"]
    confidence: float
    low: float
    high: float
    within_boots: float | None = None
    between_boots: float | None = None


class Derived(Part):
    """One number computed from the raw samples; `values` are per sample, `value` is their median (or the only one).

    Attributes:
        spread: how sure it is; None in receipts that name no statistics, and where nothing spreads.
    """

    name: ParameterName
    kind: ValueKind
    unit: Unit
    value: float
    values: tuple[float, ...]
    minimum: float
    maximum: float
    spread: Spread | None = None


class Relative(Part):
    """A derived value against that of a reference receipt.

    Attributes:
        reference: what the reference receipt gives.
        against: the bound's share of that.
        floor: the noise floor; None where nothing tells how far boots lie apart.
        conclusion: where the value lies once the floor is allowed for.
    """

    reference: float
    against: float
    floor: float | None = None
    conclusion: Literal["higher", "lower", "no difference shown"]


class ThresholdResult(Part):
    """One threshold of the lock against the derived value.

    Attributes:
        relative: how it compares; None of a threshold that is a number of its own, and where nothing was compared.
    """

    threshold: Threshold
    got: float | None = None
    passed: bool
    relative: Relative | None = None


class GpuConditions(Part):
    """One GPU while samples were taken, read again and again; what its driver did not say is None or `unknown`.

    Attributes:
        power_requested_w: lowest and highest limit that was set.
        power_enforced_w: lowest and highest limit that held.
        reasons: everything that kept its clocks below the highest at some reading.
        clock_sm_mhz: lowest and highest clock of its multiprocessors.
        clock_memory_mhz: the same of its memory.
        temperature_c: lowest and highest temperature of the chip.
        power_w: lowest and highest power that it drew.
        utilisation_percent: lowest and highest share of a moment in which something ran on it.
        readings: how many there were.
    """

    name: Text
    driver: Text
    compute_capability: Text
    memory_bytes: Size | None = None
    power_requested_w: tuple[float, float] | None = None
    power_enforced_w: tuple[float, float] | None = None
    reasons: tuple[Text, ...] | None = None
    clock_sm_mhz: tuple[float, float] | None = None
    clock_memory_mhz: tuple[float, float] | None = None
    temperature_c: tuple[float, float] | None = None
    power_w: tuple[float, float] | None = None
    utilisation_percent: tuple[float, float] | None = None
    readings: Size


class Conditions(Part):
    """Under which conditions a measure ran.

    Attributes:
        load_average: one-minute load average before and after.
        other_cpu_percent: processor time used by processes that are neither the server nor penny, in percent of one
            processor; None where it could not be read.
        sampling: how tokens are chosen in all requests; None where a score has conditions of its own.
        gpus: every GPU that the driver shows; None where there is none.
        capability: what a score depends on; None of every measure that gives none.
    """

    host: HostFacts
    load_average: tuple[float, float]
    other_cpu_percent: float | None = None
    cache_state: Text
    sampling: dict[ParameterName, Scalar] | None = None
    gpus: tuple[GpuConditions, ...] | None = None
    capability: CapabilityConditions | None = None

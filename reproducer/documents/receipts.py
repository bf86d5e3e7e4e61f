"""Receipts: the record of one run of one thing. Append-only; a rerun is another receipt.

Times inside a receipt are integers in nanoseconds on a monotonic clock, relative to a stated origin; wall-clock times
are UTC in RFC 3339 form with whole seconds.
"""

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, TypeAdapter, model_validator

from reproducer.documents.base import (
    ContradictionError,
    Document,
    Fault,
    FileName,
    MeasureId,
    Part,
    RelativePath,
    Sha256,
    Size,
    Slug,
    Text,
)
from reproducer.documents.lock import Architecture, ParameterName, Scalar, Threshold
from reproducer.documents.transcripts import CapabilityConditions, Transcript

Utc = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$")]
Nanoseconds = Annotated[int, Field(ge=0, le=2**53 - 1)]
Level = Literal["none", "inputs-identical", "device-code-identical", "content-identical", "bytes-identical"]
LEVELS: tuple[Level, ...] = get_args(Level)  # lowest first
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


def lowest(levels: Iterable[Level]) -> Level:
    """The lowest of several rebuild levels; `bytes-identical` of none."""
    return min(levels, key=LEVELS.index, default="bytes-identical")


def is_enough(level: Level) -> bool:
    """Whether what was built is the lock's runtime.

    An output reaches `device-code-identical` only where the lock names device code for it, and what is no device code
    in a wheel is the same content there; code for the host around kernels is what compilers cannot promise.
    """
    return LEVELS.index(level) >= LEVELS.index("device-code-identical")


class HostFacts(Part):
    """What the machine is, without names or addresses; `unknown` where it could not be read."""

    platform: Text
    kernel: Text
    cpu: Text
    cpu_count: Size
    cpu_flags: tuple[Text, ...]
    memory_bytes: Size
    filesystem: Text


class Isolation(Part):
    """How a build step was kept apart.

    Attributes:
        network: `none` (own network namespace without an interface) or `settings-only` where the kernel allows no
            unprivileged namespaces and only offline settings held.
    """

    network: Literal["none", "settings-only"]
    umask: Text
    locale: Text
    source_date_epoch: Size


class Difference(Part):
    """One member or field that is not as expected; absent sides are None."""

    where: Text
    expected: Text | None = None
    got: Text | None = None
    reason: Text = ""


class BuiltOutput(Part):
    """One output of one component, compared with what the lock expects.

    Attributes:
        filename: name of a wheel, or path of another file below the component's folder.
        device_code_sha256: digest of the device code alone; None where it has none or nobody asked.
        architectures: what the device code in it is built for; None where it has none or nobody asked.
    """

    component: Slug
    filename: RelativePath
    sha256: Sha256
    size: Size
    content_sha256: Sha256
    device_code_sha256: Sha256 | None = None
    architectures: tuple[Architecture, ...] | None = None
    level: Level
    differences: tuple[Difference, ...] = ()


class TreeDigest(Part):
    """A folder of files as one digest: sha256 over the RFC 8785 JSON of {path: sha256}, paths sorted."""

    files: Size
    bytes: Size
    sha256: Sha256


class InstalledPackage(Part):
    """A package in the runtime: the wheel it came from."""

    project: Text
    version: Text
    filename: FileName
    sha256: Sha256


class ReceiptBase(Document):
    """What every receipt names."""

    format: Literal["penny-receipt/1"] = "penny-receipt/1"
    lock_digest: Sha256
    penny_version: Text
    created: Utc


class AdoptedRuntime(Part):
    """A runtime that was not built: its packages were found to be those of the lock.

    Attributes:
        environment: digest of the list that they were held against.
        distributions: how many.
    """

    environment: Sha256
    distributions: Size


class BuildReceipt(ReceiptBase):
    """One build of the whole runtime: outputs, environment, checkpoint.

    Attributes:
        level: the lowest level that any output reached.
        python: full version of the interpreter the runtime runs in.
        accepted: that running other people's code was accepted, and how.
        runtime: the installed runtime; None where the build failed before there was one.
        adopted: for a runtime that was not built; its level is `none`.
        failure: which component failed, and how; None of a build that came to its end.
    """

    kind: Literal["build"] = "build"
    level: Level
    outputs: tuple[BuiltOutput, ...]
    packages: tuple[InstalledPackage, ...]
    runtime: TreeDigest | None = None
    checkpoints: dict[Slug, TreeDigest]
    python: Text
    installer: Text
    isolation: Isolation
    host: HostFacts
    accepted: Literal["asked", "--yes"]
    adopted: AdoptedRuntime | None = None
    failure: Difference | None = None

    @property
    def is_the_locks(self) -> bool:
        """Whether the runtime is the lock's: built with its content, or adopted and found to be what was frozen."""
        return self.failure is None and (self.adopted is not None or is_enough(self.level))


class EffectiveValue(Part):
    """One effective value: what the lock says and what the live server showed, and where it was read."""

    name: ParameterName
    expected: Scalar
    got: Scalar | None = None
    source: Literal["server_info", "start-up log", "checkpoint config", "process"]
    agrees: bool


class Boot(Part):
    """One process of the server; `id` is the digest of pid, start time and namespace."""

    id: Sha256
    pid: Size
    started: Utc
    start_ticks: Size


class LaunchReceipt(ReceiptBase):
    """One start of the server, with every effective value compared before traffic.

    Attributes:
        arguments: the argument list, machine paths replaced by their placeholders.
        altered: effective values in which the launch was asked to differ from the lock, as a measure of its suite
            declares; None of a launch of the lock itself.
        log_sha256: digest of the start-up log up to readiness.
    """

    kind: Literal["launch"] = "launch"
    build_receipt: Sha256
    boot: Boot
    namespace: Text
    namespace_digest: Sha256
    altered: dict[ParameterName, Scalar] | None = None
    arguments: tuple[Text, ...]
    environment: dict[str, Text]
    effective: tuple[EffectiveValue, ...]
    ready_ns: Nanoseconds
    log_sha256: Sha256
    accepted: Literal["asked", "--yes"]


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


class MeasuredBoot(Part):
    """One boot that samples were taken in, as its launch receipt has it.

    Attributes:
        effective_sha256: over the RFC 8785 JSON of {name: value} of everything that the live server showed.
    """

    launch_receipt: Sha256
    boot: Boot
    effective_sha256: Sha256


class Interleaved(Part):
    """That two runtimes were measured in turn on one machine, and which of them this is.

    Attributes:
        arm: `A` boots first in the first place of the plan, `B` in the second, and so on in turn.
        boots: the launch receipts of both, in the order in which the servers started.
    """

    arm: Literal["A", "B"]
    other_lock: Sha256
    other_build: Sha256
    boots: tuple[Sha256, ...]


class SampleFile(Part):
    """Raw samples in a file beside the receipt (`samples-SHA256.json.gz`), by what it holds unpacked."""

    sha256: Sha256
    size: Size


class MeasureReceipt(ReceiptBase):
    """One measure with its raw samples over all boots.

    Attributes:
        samples: all of them. Where they lie beside the receipt they are no part of the document, and stand here once
            its file was read.
        samples_beside: the file that holds them; None where they stand in the receipt.
        boots: the boots of its samples, in the order of `launch_receipts`; None of receipts that name those alone.
        interleaved: the other runtime that was measured in turn with this one; None where there was none.
        statistics: by which rules the derived values have their spread; None of receipts that have none.
    """

    kind: Literal["measure"] = "measure"
    build_receipt: Sha256
    launch_receipts: tuple[Sha256, ...]
    boots: tuple[MeasuredBoot, ...] | None = None
    measure: MeasureId
    parameters: dict[ParameterName, Scalar]
    warmup: Size
    conditions: Conditions
    interleaved: Interleaved | None = None
    reference_sha256: Sha256 | None = None
    samples: tuple[Sample, ...] = ()
    samples_beside: SampleFile | None = None
    statistics: Statistics | None = None
    derived: tuple[Derived, ...]
    thresholds: tuple[ThresholdResult, ...]
    status: Literal["passed", "failed", "skipped"]
    reason: Text = ""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if ("samples" in self.model_fields_set) == (self.samples_beside is not None):
            said = "stand here and beside the receipt" if self.samples_beside else "are missing"
            raise ContradictionError((Fault(("samples",), said),))
        return self

    def content(self) -> dict[str, Any]:
        """The document as plain data; samples that lie beside it are no part of it."""
        data = super().content()
        if self.samples_beside is not None:
            del data["samples"]
        return data


Receipt = Annotated[BuildReceipt | LaunchReceipt | MeasureReceipt, Field(discriminator="kind")]
RECEIPT: TypeAdapter[BuildReceipt | LaunchReceipt | MeasureReceipt] = TypeAdapter(Receipt)
RECEIPT_KINDS: dict[str, type[BuildReceipt | LaunchReceipt | MeasureReceipt]] = {
    "build": BuildReceipt,
    "launch": LaunchReceipt,
    "measure": MeasureReceipt,
}


class ReferencePrompt(Part):
    """One prompt of the reference with the greedy output that was recorded."""

    prompt: Text
    prompt_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    top_logprobs: tuple[tuple[Candidate, ...], ...]


class FidelityReference(Document):
    """What `fidelity` compares with: recorded once from the runtime of the lock, kept beside it by digest."""

    format: Literal["penny-reference/1"]
    checkpoint: Slug
    top: Size
    prompts: tuple[ReferencePrompt, ...]


class BundleFile(Part):
    """One file of a bundle."""

    path: RelativePath
    sha256: Sha256
    size: Size


class BundleIndex(Document):
    """`index.json` of a bundle: every file in it by digest; the signed statement names the index's digest."""

    format: Literal["penny-bundle/1"] = "penny-bundle/1"
    lock_digest: Sha256
    key_id: Sha256
    files: tuple[BundleFile, ...]

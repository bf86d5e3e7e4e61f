"""Receipts: the record of one run of one thing. Append-only; a rerun is another receipt.

Times inside a receipt are integers in nanoseconds on a monotonic clock, relative to a stated origin; wall-clock times
are UTC in RFC 3339 form with whole seconds.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from reproducer.documents.base import (
    ContradictionError,
    Document,
    Fault,
    MeasureId,
    Part,
    RelativePath,
    Sha256,
    Size,
    Slug,
    Text,
)
from reproducer.documents.built import (
    AdoptedRuntime,
    BuiltOutput,
    Difference,
    HostFacts,
    InstalledPackage,
    Isolation,
    Level,
    TreeDigest,
    is_enough,
)
from reproducer.documents.lock import ParameterName, Scalar
from reproducer.documents.measured import (
    Candidate,
    Conditions,
    Derived,
    Nanoseconds,
    Sample,
    Statistics,
    ThresholdResult,
)

Utc = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$")]


class ReceiptBase(Document):
    """What every receipt names."""

    format: Literal["penny-receipt/1"] = "penny-receipt/1"
    lock_digest: Sha256
    penny_version: Text
    created: Utc


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

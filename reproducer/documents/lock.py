"""The lock: what penny writes. Exact; no moving reference ever stands in it.

Paths in a lock are relative to the folder the lock lies in.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from reproducer.documents.base import (
    ContradictionError,
    Document,
    EnvironmentName,
    Fault,
    FileName,
    FileReference,
    MeasureId,
    Part,
    RelativePath,
    Sha256,
    Size,
    Slug,
    Text,
)
from reproducer.documents.sources import CheckpointSource, ComponentSource, GitObject, WheelMemberSource
from reproducer.errors import InvalidDocumentError

PythonMinor = Annotated[str, Field(pattern=r"^3\.[0-9]{1,2}$")]
Platform = Literal["linux-x86_64", "linux-aarch64"]
Role = Literal["target", "draft", "tokenizer", "processor", "code"]
EngineKind = Literal["sglang", "vllm", "openai"]
ComponentKind = Literal["wheel", "cmake", "meson", "nvcc", "command"]
Architecture = Annotated[str, Field(pattern=r"^(sm|compute)_[0-9]{2,3}[af]?$")]
ArgumentName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")]
ArgumentValue = bool | int | float | Text | tuple[Text, ...]
ParameterName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
ModuleName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]*$")]
Scalar = bool | int | float | Text
ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$")]


class Output(Part):
    """A wheel that a build is expected to give.

    Attributes:
        sha256: digest of the file's bytes (`bytes-identical`).
        content_sha256: digest of the unpacked, normalised content (`content-identical`).
        members: the list of unpacked members with their digests, so that a difference can be named.
        device_code_sha256: digest of the content with the device code of members in place of them
            (`device-code-identical`); None where no member has any.
        architectures: what the device code in it is built for; None where nobody asked.
    """

    filename: FileName
    sha256: Sha256
    size: Size
    content_sha256: Sha256
    members: FileReference
    device_code_sha256: Sha256 | None = None
    architectures: tuple[Architecture, ...] | None = None


class FileOutput(Part):
    """Another file that a build is expected to give, such as a shared library or a cubin.

    Attributes:
        filename: path below the folder that the build installs to.
        sha256: digest of the file's bytes (`bytes-identical`).
        content_sha256: digest without what says when and where it was built (`content-identical`).
        device_code_sha256: digest of the device code alone (`device-code-identical`); None where it has none.
        architectures: what the device code in it is built for; None where it has none.
    """

    filename: RelativePath
    sha256: Sha256
    size: Size
    content_sha256: Sha256
    device_code_sha256: Sha256 | None = None
    architectures: tuple[Architecture, ...] | None = None


class Component(Part):
    """One thing that is fetched and built.

    Attributes:
        kind: what builds it. A `wheel` is built by the backend its sources name, or taken as it is.
        build_environment: where the build's Python tools come from; None for a wheel that is taken as it is.
        variables: what the build reads from its environment, such as an architecture list or a compiler.
        arguments: options of `cmake`, `meson` or `nvcc`, or the whole argument list of a `command`; no shell reads it.
        architectures: what device code the outputs must hold, neither less nor more.
        jobs: how many steps run at once; recorded, and it changes nothing.
        tools: version of each compiler and build tool, by name, as it says itself.
        outputs: what comes out.
    """

    name: Slug
    kind: ComponentKind
    source: Annotated[ComponentSource, Field(discriminator="kind")]
    patches: tuple[FileReference, ...] = ()
    build_environment: Slug | None = None
    variables: dict[EnvironmentName, Text] = {}
    arguments: tuple[Text, ...] | None = None
    architectures: tuple[Architecture, ...] | None = None
    jobs: Annotated[int, Field(ge=1, le=4096)] | None = None
    tools: dict[ToolName, Text] | None = None
    outputs: tuple[Output | FileOutput, ...]

    @property
    def wheels(self) -> tuple[Output, ...]:
        """The wheels among the outputs."""
        return tuple(each for each in self.outputs if isinstance(each, Output))


class Build(Part):
    """The recipe that every build step shares."""

    source_date_epoch: Annotated[int, Field(ge=0)]
    umask: Literal["022"] = "022"
    locale: Literal["C.UTF-8"] = "C.UTF-8"
    network: Literal["none"] = "none"


class Environment(Part):
    """A complete Python environment as a PEP 751 file beside the lock."""

    name: Slug
    pylock: FileReference
    packages: Size
    indexes: tuple[Text, ...] = ()


class Toolchain(Part):
    """What builds and runs the runtime; `none` where nothing is compiled, `unknown` where nobody knows.

    Attributes:
        cuda: version of the CUDA toolkit; None where there is none.
        driver: the oldest driver that serves; None where none is needed.
        tools: versions of other compilers and build tools that are wanted, by the program's name.
    """

    python: PythonMinor
    compiler: Text
    cuda: Text | None = None
    driver: Text | None = None
    tools: dict[ToolName, Text] | None = None


class Hardware(Part):
    """What the numbers were taken on; `unknown` where nobody knows.

    Attributes:
        gpu: its name as the driver says it.
        compute_capability: such as `9.0`.
        memory_gb: of each GPU, in 10**9 bytes.
        power_limit_w: of each GPU, in watts; the limit that holds.
        requested_power_limit_w: the limit that was asked for, where that is known.
    """

    gpu: Text
    count: Annotated[int, Field(ge=1, le=1024)]
    compute_capability: Text
    memory_gb: int | float | None = None
    power_limit_w: int | float | None = None
    requested_power_limit_w: int | float | None = None


class Adopted(Part):
    """A runtime that was found and not built: its packages as they lay there, by the digest of what they recorded.

    Attributes:
        environment: the list of distributions (`penny-environment/1`).
        distributions: how many.
        observed: what was seen of the process and its machine (`penny-observation/1`); a record.
    """

    environment: FileReference
    distributions: Size
    observed: FileReference | None = None


class Conversion(Part):
    """The deterministic step from the source to the checkpoint's files; `{source}` and `{output}` are filled in."""

    script: FileReference
    arguments: tuple[Text, ...]
    environment: Slug


class CheckpointFile(FileReference):
    """One file of a checkpoint.

    Attributes:
        blob: its git object name, for files that a hub keeps in git itself.
    """

    blob: GitObject | None = None


class Checkpoint(Part):
    """One model at one exact state.

    Attributes:
        conversion: the step that makes the files from the source; None where the source is the files.
        pickles: files that may carry code, which the manifest allowed by name; None where there are none.
        files: every file by digest, or `unknown` for a checkpoint of which only the revision is known.
    """

    name: Slug
    role: Role
    source: Annotated[CheckpointSource, Field(discriminator="kind")]
    conversion: Conversion | None = None
    trust_remote_code: bool
    pickles: tuple[RelativePath, ...] | None = None
    files: tuple[CheckpointFile, ...] | Literal["unknown"]

    @property
    def made(self) -> tuple[WheelMemberSource, Conversion] | None:
        """What the files are converted from, and how; None where they are taken as they are."""
        if self.conversion is None or not isinstance(self.source, WheelMemberSource):
            return None
        return self.source, self.conversion

    @property
    def listed(self) -> tuple[CheckpointFile, ...]:
        """The files that are known; none of a checkpoint whose files are not."""
        return () if self.files == "unknown" else self.files


class Engine(Part):
    """Which component is the server, and how penny talks to it.

    Attributes:
        arguments: what its command line and environment take, read from its source (`penny-arguments/1`); None in a
            lock that was written before there were such files.
    """

    kind: EngineKind
    component: Slug
    arguments: FileReference | None = None


class Readiness(Part):
    """When the server counts as ready: its own endpoint answers within the deadline."""

    endpoint: Annotated[str, Field(pattern=r"^/[A-Za-z0-9_/-]*$")] = "/health_generate"
    deadline_s: Annotated[int, Field(ge=1, le=86400)] = 300


class Launch(Part):
    """How the server is started, and which effective values it must show before any traffic.

    Attributes:
        module: the module that the runtime's interpreter runs; None for a program.
        program: the program that is run instead, as a path in a component: `{component.NAME}/bin/PROGRAM`.
        files: what the server reads beside its checkpoints, by the name of its placeholder `{file.NAME}`.
    """

    module: ModuleName | None = None
    program: Text | None = None
    arguments: dict[ArgumentName, ArgumentValue]
    environment: dict[EnvironmentName, Text] = {}
    files: dict[Slug, FileReference] | None = None
    effective: dict[ParameterName, Scalar]
    readiness: Readiness


class Threshold(Part):
    """One bound on one derived value.

    Attributes:
        bound: in the value's unit; in unit `ratio`, of the reference's value, where there is a reference receipt.
        relative_to: a receipt of the same measure that the value is compared with, with its noise floor.
    """

    value: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    comparator: Literal[">=", "<=", "=="]
    bound: int | float | bool
    unit: Text
    relative_to: FileReference | None = None


class Measure(Part):
    """One measure of the suite."""

    id: MeasureId
    repeats: Annotated[int, Field(ge=2, le=1000)]
    warmup: Annotated[int, Field(ge=0, le=100)]
    parameters: dict[ParameterName, Scalar] = {}
    thresholds: tuple[Threshold, ...] = ()

    @model_validator(mode="after")
    def _known(self) -> Self:
        from reproducer.measures.checks import check_measure

        try:
            check_measure(self)
        except InvalidDocumentError as error:
            raise ContradictionError((Fault((), str(error)),)) from error
        return self


class Qualification(Part):
    """The suite, its thresholds and the reference that `fidelity` compares with."""

    suite: Slug
    boots: Annotated[int, Field(ge=2, le=100)]
    reference: FileReference | None = None
    measures: tuple[Measure, ...]


class Lock(Document):
    """`penny.lock.toml`, format `penny-lock/1`; `digest` is the lock digest of the design.

    Attributes:
        manifest: what it was locked from; None for a runtime that was found running.
        adopted: the packages of a runtime that was found and not built. Its engine is one of them and no component.
    """

    format: Literal["penny-lock/1"]
    name: Slug
    manifest: RelativePath | None = None
    platform: Platform
    toolchain: Toolchain
    hardware: Hardware | None = None
    engine: Engine
    build: Build
    components: tuple[Component, ...]
    environments: tuple[Environment, ...]
    adopted: Adopted | None = None
    checkpoints: tuple[Checkpoint, ...]
    launch: Launch
    qualification: Qualification

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        from reproducer.documents.consistency import lock_faults

        if faults := tuple(lock_faults(self)):
            raise ContradictionError(faults)
        return self

    def component(self, name: str) -> Component:
        """The component of that name; KeyError where there is none."""
        return {each.name: each for each in self.components}[name]

    def environment(self, name: str) -> Environment:
        """The environment of that name; KeyError where there is none."""
        return {each.name: each for each in self.environments}[name]

    @property
    def target(self) -> Checkpoint:
        """The checkpoint with the role `target`."""
        return next(each for each in self.checkpoints if each.role == "target")

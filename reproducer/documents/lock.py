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
    ProjectName,
    RelativePath,
    Sha256,
    Size,
    Slug,
    Text,
    Version,
)
from reproducer.errors import InvalidDocumentError

PythonMinor = Annotated[str, Field(pattern=r"^3\.[0-9]{1,2}$")]
Platform = Literal["linux-x86_64", "linux-aarch64"]
Role = Literal["target", "draft"]
ArgumentName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")]
ArgumentValue = bool | int | float | Text | tuple[Text, ...]
ParameterName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
Scalar = bool | int | float | Text


class Artefact(Part):
    """One file of one release on a package index; which index served it is nobody's business but the digest's."""

    project: ProjectName
    version: Version
    filename: FileName
    sha256: Sha256
    size: Size


class SdistSource(Artefact):
    """A source distribution."""

    kind: Literal["sdist"] = "sdist"


class LocalSource(Part):
    """A source tree beside the lock: every file by path and digest, so nothing unlisted is built.

    Attributes:
        path: the source's folder, relative to the lock's.
        files: paths relative to the source's folder.
    """

    kind: Literal["local"] = "local"
    path: RelativePath
    files: tuple[FileReference, ...]


class Output(Part):
    """What a build is expected to give.

    Attributes:
        sha256: digest of the file's bytes (`bytes-identical`).
        content_sha256: digest of the unpacked, normalised content (`content-identical`).
        members: the list of unpacked members with their digests, so that a difference can be named.
    """

    filename: FileName
    sha256: Sha256
    size: Size
    content_sha256: Sha256
    members: FileReference


class Component(Part):
    """One thing that is fetched and built."""

    name: Slug
    kind: Literal["wheel"]
    source: Annotated[SdistSource | LocalSource, Field(discriminator="kind")]
    patches: tuple[FileReference, ...] = ()
    build_environment: Slug
    variables: dict[EnvironmentName, Text] = {}
    outputs: tuple[Output, ...]


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
    """What builds and runs the runtime; `none` where nothing is compiled, `unknown` where nobody knows."""

    python: PythonMinor
    compiler: Text


class WheelMemberSource(Artefact):
    """A file inside a wheel."""

    kind: Literal["wheel-member"] = "wheel-member"
    member: RelativePath
    member_sha256: Sha256
    member_size: Size


class Conversion(Part):
    """The deterministic step from the source to the checkpoint's files; `{source}` and `{output}` are filled in."""

    script: FileReference
    arguments: tuple[Text, ...]
    environment: Slug


class Checkpoint(Part):
    """One model at one exact state, every file of it by digest."""

    name: Slug
    role: Role
    source: WheelMemberSource
    conversion: Conversion
    trust_remote_code: bool
    files: tuple[FileReference, ...]


class Engine(Part):
    """Which component is the server, and how penny talks to it.

    Attributes:
        arguments: what its command line and environment take, read from its source (`penny-arguments/1`); None in a
            lock that was written before there were such files.
    """

    kind: Literal["sglang", "vllm"]
    component: Slug
    arguments: FileReference | None = None


class Readiness(Part):
    """When the server counts as ready: its own endpoint answers within the deadline."""

    endpoint: Annotated[str, Field(pattern=r"^/[A-Za-z0-9_/-]*$")] = "/health_generate"
    deadline_s: Annotated[int, Field(ge=1, le=86400)] = 300


class Launch(Part):
    """How the server is started, and which effective values it must show before any traffic."""

    module: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]*$")]
    arguments: dict[ArgumentName, ArgumentValue]
    environment: dict[EnvironmentName, Text] = {}
    effective: dict[ParameterName, Scalar]
    readiness: Readiness


class Threshold(Part):
    """One bound on one derived value."""

    value: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    comparator: Literal[">=", "<=", "=="]
    bound: int | float | bool
    unit: Text


class Measure(Part):
    """One measure of the suite."""

    id: MeasureId
    repeats: Annotated[int, Field(ge=2, le=1000)]
    warmup: Annotated[int, Field(ge=0, le=100)]
    parameters: dict[ParameterName, Scalar] = {}
    thresholds: tuple[Threshold, ...] = ()

    @model_validator(mode="after")
    def _known(self) -> Self:
        from reproducer.qualify.definitions import check_measure

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
    """`penny.lock.toml`, format `penny-lock/1`; `digest` is the lock digest of the design."""

    format: Literal["penny-lock/1"]
    name: Slug
    manifest: RelativePath
    platform: Platform
    toolchain: Toolchain
    engine: Engine
    build: Build
    components: tuple[Component, ...]
    environments: tuple[Environment, ...]
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

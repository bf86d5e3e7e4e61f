"""The manifest: what a person writes. Loose references are allowed; nothing here is exact until it is locked."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from reproducer.documents.base import (
    ContradictionError,
    Document,
    EnvironmentName,
    Part,
    ProjectName,
    RelativePath,
    Slug,
    Text,
)
from reproducer.documents.lock import (
    ArgumentName,
    ArgumentValue,
    Measure,
    Platform,
    PythonMinor,
    Readiness,
    Role,
)

Requirement = Annotated[str, Field(pattern=r"^[A-Za-z0-9]", max_length=512)]
Specifier = Annotated[str, Field(pattern=r"^[<>=!~0-9][^\s]*$", max_length=128)]


class SdistRequest(Part):
    """A source distribution on a package index; `version` is a version or a range."""

    kind: Literal["sdist"]
    project: ProjectName
    version: Specifier


class LocalRequest(Part):
    """A source tree that lies beside the manifest's repository root."""

    kind: Literal["local"]
    path: RelativePath


class WheelMemberRequest(Part):
    """A file inside a wheel on a package index."""

    kind: Literal["wheel-member"]
    project: ProjectName
    version: Specifier
    member: RelativePath


class ComponentRequest(Part):
    """One thing to build: the engine or a library beside it."""

    name: Slug
    kind: Literal["wheel"] = "wheel"
    source: Annotated[SdistRequest | LocalRequest, Field(discriminator="kind")]
    patches: tuple[RelativePath, ...] = ()
    build_environment: Slug = "build"
    variables: dict[EnvironmentName, Text] = {}


class EnvironmentRequest(Part):
    """A set of requirements that is locked whole, with every hash of every wheel that may serve."""

    name: Slug
    requirements: tuple[Requirement, ...] = ()
    without_dependencies: tuple[Requirement, ...] = ()
    indexes: tuple[Text, ...] = ()


class ConversionRequest(Part):
    """A deterministic step that turns the source into a checkpoint folder."""

    script: RelativePath
    arguments: tuple[Text, ...]
    environment: Slug


class CheckpointRequest(Part):
    """A model to serve."""

    name: Slug
    role: Role
    source: WheelMemberRequest
    conversion: ConversionRequest
    trust_remote_code: bool = False


class EngineRequest(Part):
    """Which component is the server, and how penny talks to it."""

    kind: Literal["sglang"]
    component: Slug


class BuildRequest(Part):
    """Settings that every build step shares."""

    source_date_epoch: Annotated[int, Field(ge=0)] = 1704067200


class LaunchRequest(Part):
    """Argument list and environment of the server; `{checkpoint.target}`, `{namespace}` are filled in by penny."""

    module: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]*$")]
    arguments: dict[ArgumentName, ArgumentValue]
    environment: dict[EnvironmentName, Text] = {}
    readiness: Readiness = Readiness()


class MeasureRequest(Measure):
    """One measure of the suite with its parameters and thresholds."""

    repeats: Annotated[int, Field(ge=2, le=1000)] = 2
    warmup: Annotated[int, Field(ge=0, le=100)] = 0


class QualificationRequest(Part):
    """The suite that decides whether a runtime qualifies."""

    suite: Slug
    boots: Annotated[int, Field(ge=2, le=100)] = 2
    reference: RelativePath | None = None
    measures: tuple[MeasureRequest, ...]


class Manifest(Document):
    """`manifests/NAME.toml`, format `penny-manifest/1`."""

    format: Literal["penny-manifest/1"]
    name: Slug
    description: Text = ""
    platform: Platform
    python: PythonMinor
    compiler: Text = "unknown"
    engine: EngineRequest
    build: BuildRequest = BuildRequest()
    components: tuple[ComponentRequest, ...]
    environments: tuple[EnvironmentRequest, ...]
    checkpoints: tuple[CheckpointRequest, ...]
    launch: LaunchRequest
    qualification: QualificationRequest

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        from reproducer.documents.consistency import manifest_faults

        if faults := tuple(manifest_faults(self)):
            raise ContradictionError(faults)
        return self

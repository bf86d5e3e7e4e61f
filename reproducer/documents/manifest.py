"""The manifest: what a person writes. Loose references are allowed; nothing here is exact until it is locked.

One rule for what nobody knows: the word `unknown` may stand wherever a text may, a version, a reference, a revision, a
repository, a Python included, and `[unknown]` names what is missing without a place of its own. Neither is ever
resolved: `penny lock` names them all, and only what a lock itself may carry as `unknown` goes on into one.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from reproducer.documents.base import (
    ContradictionError,
    Document,
    EnvironmentName,
    Part,
    ProjectName,
    RelativePath,
    Sha256,
    Slug,
    Text,
    Version,
)
from reproducer.documents.lock import (
    Architecture,
    ArgumentName,
    ArgumentValue,
    ComponentKind,
    EngineKind,
    Hardware,
    Measure,
    ModuleName,
    Platform,
    Readiness,
    Role,
    Threshold,
    ToolName,
)
from reproducer.documents.sources import HubRepository

Requirement = Annotated[str, Field(pattern=r"^[A-Za-z0-9]", max_length=512)]
Specifier = Annotated[str, Field(pattern=r"^([<>=!~0-9][^\s]*|unknown)$", max_length=128)]
Glibc = Annotated[str, Field(pattern=r"^2\.(17|28|3[1-9]|40)$")]
LoosePython = Annotated[str, Field(pattern=r"^(3\.[0-9]{1,2}|unknown)$")]
UNKNOWN = "unknown"


class SdistRequest(Part):
    """A source distribution on a package index; `version` is a version or a range."""

    kind: Literal["sdist"]
    project: ProjectName
    version: Specifier


class LocalRequest(Part):
    """A source tree that lies beside the manifest's repository root."""

    kind: Literal["local"]
    path: RelativePath


class WheelRequest(Part):
    """A wheel on a package index that is taken as its publisher built it; `version` is a version or a range."""

    kind: Literal["wheel"]
    project: ProjectName
    version: Specifier


class GitRequest(Part):
    """A git repository.

    Attributes:
        url: an address, or the path of a repository on this machine (relative to the lock's folder, or `file://`).
        ref: a branch, a tag or a full commit.
        subfolder: the folder in it that is built.
        changes: lock what the working tree of a local repository holds beside the commit, as a patch.
    """

    kind: Literal["git"]
    url: Annotated[Text, Field(min_length=1, max_length=2048)]
    ref: Annotated[Text, Field(min_length=1, max_length=256)]
    subfolder: RelativePath | None = None
    changes: bool = False


class HubRequest(Part):
    """A model repository on a Hugging Face hub.

    Attributes:
        revision: a branch, a tag or a full commit.
        ignore: files that are left out, as shell patterns.
        pickles: files that may be pickles, by name; any other one is refused, for loading it runs code.
        digests: `unknown` where only the revision is to be locked.
    """

    kind: Literal["hub"]
    repository: HubRepository | Literal["unknown"]
    revision: Annotated[Text, Field(min_length=1, max_length=256)] = "main"
    ignore: tuple[Text, ...] = ()
    pickles: tuple[RelativePath, ...] = ()
    digests: Literal["known", "unknown"] = "known"


class WheelMemberRequest(Part):
    """A file inside a wheel on a package index."""

    kind: Literal["wheel-member"]
    project: ProjectName
    version: Specifier
    member: RelativePath


class Published(Part):
    """What a publisher says of what they built from the same source; shown beside what is built here.

    Attributes:
        version: of the artefact, as it says itself.
        sha256: of the wheel.
    """

    version: Version | None = None
    sha256: Sha256 | None = None


class ComponentRequest(Part):
    """One thing to build: the engine or a library beside it.

    Attributes:
        published: what its publisher built; the wheel that is built here is compared with it, and told where it is
            another one.
    """

    name: Slug
    kind: ComponentKind = "wheel"
    source: Annotated[SdistRequest | WheelRequest | GitRequest | LocalRequest, Field(discriminator="kind")]
    patches: tuple[RelativePath, ...] = ()
    build_environment: Slug | None = None
    variables: dict[EnvironmentName, Text] = {}
    arguments: tuple[Text, ...] | None = None
    architectures: tuple[Architecture, ...] | None = None
    jobs: Annotated[int, Field(ge=1, le=4096)] | None = None
    published: Published | None = None


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
    source: Annotated[WheelMemberRequest | HubRequest, Field(discriminator="kind")]
    conversion: ConversionRequest | None = None
    trust_remote_code: bool = False


class EngineRequest(Part):
    """Which component is the server, and how penny talks to it."""

    kind: EngineKind
    component: Slug


class BuildRequest(Part):
    """Settings that every build step shares."""

    source_date_epoch: Annotated[int, Field(ge=0)] = 1704067200


class LaunchRequest(Part):
    """Argument list and environment of the server; `{checkpoint.target}`, `{namespace}` are filled in by penny.

    Attributes:
        module: the module that the runtime's interpreter runs; None for a program.
        program: the program that is run instead: `{component.NAME}/bin/PROGRAM`.
        files: files beside the lock that the server reads, by the name of their placeholder `{file.NAME}`.
    """

    module: ModuleName | None = None
    program: Text | None = None
    arguments: dict[ArgumentName, ArgumentValue]
    environment: dict[EnvironmentName, Text] = {}
    files: dict[Slug, RelativePath] = {}
    readiness: Readiness = Readiness()


class ThresholdRequest(Threshold):
    """One bound on one derived value.

    Attributes:
        relative_to: a receipt beside the lock that it is relative to.
    """

    relative_to: RelativePath | None = None  # type: ignore[assignment]  # the lock pins the file by digest


class MeasureRequest(Measure):
    """One measure of the suite with its parameters and thresholds."""

    repeats: Annotated[int, Field(ge=2, le=1000)] = 5
    warmup: Annotated[int, Field(ge=0, le=100)] = 0
    thresholds: tuple[ThresholdRequest, ...] = ()


class QualificationRequest(Part):
    """The suite that decides whether a runtime qualifies."""

    suite: Slug
    boots: Annotated[int, Field(ge=2, le=100)] = 2
    reference: RelativePath | None = None
    measures: tuple[MeasureRequest, ...]


class Manifest(Document):
    """`manifests/NAME.toml`, format `penny-manifest/1`.

    Attributes:
        glibc: the oldest C library that the packages must have wheels for; None for 2.28. Older wheels serve too.
        tools: versions of compilers and build tools that are wanted, by the program's name.
        published: what was published about the runtime and has no place in a lock; nothing is derived from it.
        unknown: what is missing without a place of its own: the key below which it belongs, and what it is.
    """

    format: Literal["penny-manifest/1"]
    name: Slug
    description: Text = ""
    platform: Platform
    python: LoosePython
    glibc: Glibc | None = None
    compiler: Text = "unknown"
    cuda: Text | None = None
    driver: Text | None = None
    tools: dict[ToolName, Text] | None = None
    hardware: Hardware | None = None
    engine: EngineRequest
    build: BuildRequest = BuildRequest()
    components: tuple[ComponentRequest, ...]
    environments: tuple[EnvironmentRequest, ...]
    checkpoints: tuple[CheckpointRequest, ...]
    launch: LaunchRequest
    qualification: QualificationRequest
    published: dict[Slug, Text | tuple[Text, ...]] | None = None
    unknown: dict[Text, Text] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        from reproducer.documents.consistency import manifest_faults

        if faults := tuple(manifest_faults(self)):
            raise ContradictionError(faults)
        return self

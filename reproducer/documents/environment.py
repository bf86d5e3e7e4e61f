"""What an adopted runtime is: every distribution as it lies there, by the digest of what it recorded.

Nothing in it says where the runtime lies or who installed it, so that the same packages give the same bytes anywhere.
What was seen of the process and its machine besides is another document, for it may differ where the runtime does not.
"""

from typing import Annotated, Literal

from pydantic import Field

from reproducer.documents.base import Document, FileReference, Part, ProjectName, Sha256, Size, Text
from reproducer.documents.sources import GitObject, GitUrl

UNKNOWN: Literal["unknown"] = "unknown"


class Origin(Part):
    """Where a distribution says it was installed from (PEP 610), without what only its machine knows.

    Attributes:
        url: None where it is a place on that machine.
        commit: of a git repository, as the installer noted it.
        sha256: of an archive, as the installer noted it.
    """

    kind: Literal["git", "archive", "folder"]
    url: Text | None = None
    commit: GitObject | None = None
    sha256: Sha256 | None = None


class Checkout(Part):
    """The folder that code is read from where it is not installed: a git working tree, or just files.

    Attributes:
        commit: what is checked out; `unknown` where it is no git repository.
        tree: of that commit.
        url: of the remote `origin`; None where there is none that another machine could reach.
        changes: a patch of what lies there beside the commit; None where it is clean.
        files: how many files lie there, without what git ignores.
        sha256: digest over all of them, by path and digest.
    """

    commit: GitObject | Literal["unknown"]
    tree: GitObject | None = None
    url: GitUrl | None = None
    changes: FileReference | None = None
    files: Size
    sha256: Sha256


class DriftedFile(Part):
    """A file that is not what its distribution recorded; None for one that is missing or cannot be read."""

    path: Text
    sha256: Sha256 | None = None


class Distribution(Part):
    """One installed distribution.

    Attributes:
        record_sha256: digest over its RECORD: every file by path and digest, without those that say where or by whom it
            was installed (scripts, INSTALLER, REQUESTED, direct_url.json, compiled modules); `unknown` without one.
        files: how many files that are.
        drifted: files that are not what the RECORD says; None where all are.
        origin: None where it came from an index.
        checkout: for one that is installed editable.
    """

    project: ProjectName
    version: Annotated[Text, Field(max_length=128)]
    record_sha256: Sha256 | Literal["unknown"]
    files: Size
    drifted: tuple[DriftedFile, ...] | None = None
    origin: Origin | None = None
    checkout: Checkout | None = None


class LooseFile(Part):
    """A file among the packages that no distribution recorded."""

    path: Text
    sha256: Sha256
    size: Size


class AdoptedEnvironment(Document):
    """The distributions of a runtime that was found and not built, format `penny-environment/1`.

    Attributes:
        python: full version of the interpreter.
        distributions: by project.
        loose: what lies among them and belongs to none.
        engine: the folder that the engine's package was read from where that is no distribution.
    """

    format: Literal["penny-environment/1"] = "penny-environment/1"
    python: Text
    implementation: Text
    distributions: tuple[Distribution, ...]
    loose: tuple[LooseFile, ...] = ()
    engine: Checkout | None = None


class Library(Part):
    """A shared library that the process had loaded.

    Attributes:
        owner: the distribution that it belongs to, or `system`.
        build_id: GNU build id; `unknown` where it has none or could not be read.
        architectures: what its device code is built for; None where it has none, `unknown` where it cannot be read.
    """

    name: Text
    owner: Text
    build_id: Text
    architectures: tuple[Text, ...] | Literal["unknown"] | None = None


class Gpu(Part):
    """One GPU as the driver described it; None where it did not say.

    Attributes:
        power_limit_w: the limit that was asked for.
        enforced_power_limit_w: the limit that holds.
    """

    name: Text
    compute_capability: Text
    memory_mib: int | float | None = None
    power_limit_w: int | float | None = None
    enforced_power_limit_w: int | float | None = None


class Observation(Document):
    """What was seen of a running server and its machine, format `penny-observation/1`; a record that nothing enforces.

    Attributes:
        engine_version: what the server itself says it is.
        executable: build id of the interpreter's own program.
        compilers: version of each compiler found, by program; `none` where there is none.
        driver: version of the GPU driver; `unknown` where nobody could say.
        unknown: what could not be known, and why.
        left_out: variables and arguments that were set and are not in the lock, and why.
    """

    format: Literal["penny-observation/1"] = "penny-observation/1"
    engine_version: Text
    executable: Text
    libraries: tuple[Library, ...] = ()
    compilers: dict[str, Text] = {}
    driver: Text
    gpus: tuple[Gpu, ...] = ()
    unknown: tuple["Unknown", ...] = ()
    left_out: tuple["Unknown", ...] = ()


class Unknown(Part):
    """One thing that is not in the lock: its key, and why."""

    key: Text
    why: Text


Observation.model_rebuild()

"""What the receipt of a build is made of: the machine, how steps were kept apart, outputs and how close they came."""

from collections.abc import Iterable
from typing import Literal, get_args

from reproducer.documents.base import FileName, Part, RelativePath, Sha256, Size, Slug, Text
from reproducer.documents.lock import Architecture

Level = Literal["none", "inputs-identical", "device-code-identical", "content-identical", "bytes-identical"]
LEVELS: tuple[Level, ...] = get_args(Level)  # lowest first


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


class AdoptedRuntime(Part):
    """A runtime that was not built: its packages were found to be those of the lock.

    Attributes:
        environment: digest of the list that they were held against.
        distributions: how many.
    """

    environment: Sha256
    distributions: Size

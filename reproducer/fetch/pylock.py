"""PEP 751 files as they stand beside a lock: wheels by name, size and sha256, without URLs or local paths."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from pydantic import ValidationError

from reproducer.documents.base import shown
from reproducer.documents.sources import Artefact
from reproducer.documents.toml import parse_toml
from reproducer.errors import InvalidDocumentError, NotCheckedError
from reproducer.fetch.hosts import marker_environment, ranks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from packaging.markers import Marker
    from packaging.pylock import Package
    from packaging.specifiers import SpecifierSet
    from packaging.tags import Tag
    from packaging.utils import BuildTag
    from packaging.version import Version

_MOST_PACKAGES = 10_000
_TAGS_SHOWN = 12


@dataclass(frozen=True)
class LockedPackage:
    """One package of a PEP 751 file.

    Attributes:
        name: normalised.
        marker: when it belongs to the environment, None for always.
        wheels: every wheel that may serve on some host.
    """

    name: str
    marker: "Marker | None"
    wheels: tuple[Artefact, ...]


@dataclass(frozen=True)
class Pylock:
    """A PEP 751 file.

    Attributes:
        where: what it was read from.
        packages: in the file's order.
        requires_python: Pythons it is for, None for all.
        environments: markers of which one holds where it may be used; empty for everywhere.
    """

    where: str
    packages: tuple[LockedPackage, ...]
    requires_python: "SpecifierSet | None" = None
    environments: tuple["Marker", ...] = ()


def read_pylock(text: str | bytes, *, where: str) -> Pylock:
    """Read the text of a PEP 751 file.

    Every package has wheels only; a wheel has `name`, `path` (the same plain file name), `size` and `hashes.sha256`,
    and neither URL nor index, because the file lies in whatever index the user has.

    Raises:
        InvalidDocumentError: not TOML, not PEP 751, or more than the above; names line or key.
    """
    from packaging.pylock import Pylock as Standard
    from packaging.pylock import PylockValidationError

    data = parse_toml(text, where=where)
    try:
        standard = Standard.from_dict(data)
    except (PylockValidationError, RecursionError) as error:
        raise InvalidDocumentError("is not a PEP 751 file", where=where, why=str(error)) from error
    if len(standard.packages) > _MOST_PACKAGES:
        raise InvalidDocumentError(f"names more than {_MOST_PACKAGES} packages", where=where)
    return Pylock(
        where,
        tuple(_package(package, where) for package in standard.packages),
        standard.requires_python,
        tuple(standard.environments or ()),
    )


def select(pylock: Pylock, python: str = "3.11", platform: str = "linux-x86_64") -> tuple[tuple[Artefact, ...], ...]:
    """Per package the wheels that may serve on this host, best first: newest version, then the most specific tag.

    Args:
        pylock: what `read_pylock` returned.
        python: the lock's minor version.
        platform: the lock's platform.

    Raises:
        NotCheckedError: the file is for other Pythons or environments, this host is of another platform, or packages
            have no wheel for this host; all of those are named with their tags.
        InvalidDocumentError: a package stands twice for this environment.
    """
    known = ranks(python, platform)
    environment = marker_environment(python, platform)
    _check_meant(pylock, python, environment)
    selected: list[tuple[Artefact, ...]] = []
    without: list[str] = []
    seen: set[str] = set()
    for package in pylock.packages:
        if package.marker is not None and not package.marker.evaluate(dict(environment)):
            continue
        if package.name in seen:
            raise InvalidDocumentError(f"the package {package.name} stands twice", where=pylock.where)
        seen.add(package.name)
        serving = [(rank, wheel) for wheel in package.wheels if (rank := _rank(wheel, known)) is not None]
        if serving:
            selected.append(_best_first(serving))
        else:
            without.append(f"{package.name} has {_tags_of(package)}")
    if without:
        raise NotCheckedError(
            "no wheel serves on this host",
            where=pylock.where,
            why="; ".join(without) + f"; this host takes {_best_tags(known)}",
            todo="use a lock that was made for hosts like this one",
        )
    return tuple(selected)


def _check_meant(pylock: Pylock, python: str, environment: "Mapping[str, str]") -> None:
    """Refuse a file that says itself that it is for other Pythons or environments."""
    wanted = pylock.requires_python
    if wanted is not None and not (wanted.contains(f"{python}.0") or wanted.contains(f"{python}.99")):
        raise NotCheckedError(f"is for Python {wanted}, the lock is for {python}", where=pylock.where)
    if pylock.environments and not any(marker.evaluate(dict(environment)) for marker in pylock.environments):
        meant = " or ".join(str(marker) for marker in pylock.environments[:3])
        raise NotCheckedError("is for another environment", where=pylock.where, why=f"it is for {meant}")


def _package(package: "Package", where: str) -> LockedPackage:
    def refuse(problem: str) -> NoReturn:
        raise InvalidDocumentError(f"package {package.name}: {problem}", where=where, todo="lock again with penny")

    if package.is_direct or not package.wheels:
        refuse("has no wheels")
    if package.sdist is not None or package.index is not None:
        refuse("names a source distribution or an index")
    wheels = []
    for wheel in package.wheels or ():
        if wheel.url is not None or wheel.name is None or wheel.path != wheel.name:
            refuse(f"a wheel needs `name` and the same `path`, and no `url`, got {shown(wheel.name or wheel.path)}")
        if wheel.size is None or "sha256" not in wheel.hashes:
            refuse(f"{shown(wheel.name)} needs `size` and `hashes.sha256`")
        try:
            wheels.append(
                Artefact(
                    project=package.name,
                    version=wheel.filename.split("-")[1],
                    filename=wheel.filename,
                    sha256=wheel.hashes["sha256"],
                    size=wheel.size,
                )
            )
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            refuse(f"{shown(wheel.name)}, {'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}")
    if len({wheel.filename for wheel in wheels}) != len(wheels):
        refuse("a wheel stands twice")
    return LockedPackage(package.name, package.marker, tuple(wheels))


def _rank(wheel: Artefact, known: "Mapping[Tag, int]") -> int | None:
    """The place of the wheel's best tag among those that serve, None where none does."""
    from packaging.utils import parse_wheel_filename

    return min((known[tag] for tag in parse_wheel_filename(wheel.filename)[3] if tag in known), default=None)


def _best_first(serving: list[tuple[int, Artefact]]) -> tuple[Artefact, ...]:
    """Newest version first, then the most specific tag, then the highest build number."""
    from packaging.utils import parse_wheel_filename

    def place(item: tuple[int, Artefact]) -> "tuple[Version, int, BuildTag, str]":
        _, version, build, _ = parse_wheel_filename(item[1].filename)
        return version, -item[0], build, item[1].filename

    return tuple(wheel for _, wheel in sorted(serving, key=place, reverse=True))


def _tags_of(package: LockedPackage) -> str:
    from packaging.utils import parse_wheel_filename

    found = sorted({str(tag) for wheel in package.wheels for tag in parse_wheel_filename(wheel.filename)[3]})
    more = f" and {len(found) - _TAGS_SHOWN} more" if len(found) > _TAGS_SHOWN else ""
    return ", ".join(found[:_TAGS_SHOWN]) + more


def _best_tags(known: "Mapping[Tag, int]") -> str:
    """The first few tags that serve, best first."""
    return ", ".join(str(tag) for tag in sorted(known, key=known.__getitem__)[:3])

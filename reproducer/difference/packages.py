"""Changes of the packages of an environment, read from the `pylock.toml` beside each lock."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reproducer.documents.lock import Lock
from reproducer.documents.opened import OpenedLock
from reproducer.documents.toml import parse_toml
from reproducer.errors import InvalidDocumentError, PennyError
from reproducer.identity.factors import Path

_SEPARATORS = re.compile(r"[-_.]+")


@dataclass(frozen=True, slots=True)
class Package:
    """One package of an environment: its versions, and the digests of all files that may serve."""

    versions: tuple[str, ...]
    digests: tuple[str, ...]

    def told(self, *, files: bool) -> str:
        """The version; with `files` also what tells its files from others of the same version."""
        text = ", ".join(self.versions)
        if not files:
            return text
        return f"{text} ({len(self.digests)} files, {hashlib.sha256(repr(self.digests).encode()).hexdigest()[:12]})"


def package_changes(
    a: Lock | OpenedLock, b: Lock | OpenedLock
) -> tuple[dict[Path, tuple[str | None, str | None]], tuple[str, ...]]:
    """Packages that were added, removed or moved, by path (`environments.NAME.package.PROJECT`).

    Returns:
        Before and after of each change, and what could not be compared, with the reason.
    """
    found: dict[Path, tuple[str | None, str | None]] = {}
    reasons: list[str] = []
    one, two = (each.lock if isinstance(each, OpenedLock) else each for each in (a, b))
    before = {each.name: each.pylock for each in one.environments}
    after = {each.name: each.pylock for each in two.environments}
    for name in sorted(before.keys() & after.keys()):
        if before[name].sha256 == after[name].sha256:
            continue
        if not (isinstance(a, OpenedLock) and isinstance(b, OpenedLock)):
            reasons.append(f"packages of environment {name}: only the locks were given, not the files beside them")
            continue
        try:
            old = _packages(a.read(before[name]), before[name].path)
            new = _packages(b.read(after[name]), after[name].path)
        except PennyError as error:
            reasons.append(f"packages of environment {name}: {error}")
            continue
        for project in sorted(old.keys() | new.keys()):
            if old.get(project) != new.get(project):
                found["environments", name, "package", project] = _told(old.get(project), new.get(project))
    _adopted(a, b, found, reasons)
    return found, tuple(reasons)


def _adopted(
    a: Lock | OpenedLock, b: Lock | OpenedLock, found: dict[Path, tuple[str | None, str | None]], reasons: list[str]
) -> None:
    """The distributions that differ between two adopted runtimes (`adopted.package.PROJECT`)."""
    one, two = (each.lock if isinstance(each, OpenedLock) else each for each in (a, b))
    if one.adopted is None or two.adopted is None or one.adopted.environment.sha256 == two.adopted.environment.sha256:
        return
    if not (isinstance(a, OpenedLock) and isinstance(b, OpenedLock)):
        reasons.append("distributions of the adopted runtimes: only the locks were given, not the files beside them")
        return
    try:
        old, new = _distributions(a), _distributions(b)
    except PennyError as error:
        reasons.append(f"distributions of the adopted runtimes: {error}")
        return
    for project in sorted(old.keys() | new.keys()):
        if old.get(project) != new.get(project):
            found["adopted", "package", project] = _told(old.get(project), new.get(project))


def _distributions(opened: OpenedLock) -> dict[str, Package]:
    """The distributions of an adopted runtime by normalised project name, with what tells their files apart."""
    from reproducer.documents.environment import AdoptedEnvironment

    if opened.lock.adopted is None:
        return {}
    reference = opened.lock.adopted.environment
    document = AdoptedEnvironment.from_json(opened.read(reference), where=reference.path)
    found: dict[str, Package] = {}
    for each in document.distributions:
        digests = [each.record_sha256, *(f"{file.path} {file.sha256}" for file in each.drifted or ())]
        if each.checkout is not None:
            digests.append(f"{each.checkout.commit} {each.checkout.sha256}")
        found[_SEPARATORS.sub("-", each.project).lower()] = Package((each.version,), tuple(digests))
    return found


def _told(old: Package | None, new: Package | None) -> tuple[str | None, str | None]:
    files = old is not None and new is not None and old.versions == new.versions
    return (old.told(files=files) if old else None, new.told(files=files) if new else None)


def _packages(data: bytes, where: str) -> dict[str, Package]:
    """The packages of a pylock file by normalised project name; several entries of one project come together."""
    entries = parse_toml(data, where=where).get("packages", [])
    found: dict[str, tuple[set[str], set[str]]] = {}
    if not isinstance(entries, list):
        raise InvalidDocumentError("holds no list of packages", where=where)
    for entry in entries:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            raise InvalidDocumentError("holds a package without a name", where=where)
        project = _SEPARATORS.sub("-", entry["name"]).lower()
        versions, digests = found.setdefault(project, (set(), set()))
        versions.add(_text(entry.get("version", "unknown"), where))
        digests.update(_digests(entry, where))
    return {project: Package(tuple(sorted(told)), tuple(sorted(files))) for project, (told, files) in found.items()}


def _digests(entry: Mapping[str, Any], where: str) -> list[str]:
    wheels = entry.get("wheels")
    files = [*(wheels if isinstance(wheels, list) else []), entry.get("sdist"), entry.get("archive")]
    return [
        f"{algorithm}:{_text(digest, where)}"
        for file in files
        if isinstance(file, Mapping) and isinstance(file.get("hashes"), Mapping)
        for algorithm, digest in file["hashes"].items()
    ]


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise InvalidDocumentError("holds a version or a digest that is no text", where=where)
    return value

"""What the user's indexes offer: every wheel of a version that may serve, on whatever host of the lock's platform."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from reproducer.documents.sources import Artefact
from reproducer.errors import DriftError, NotCheckedError
from reproducer.fetch.indexes import Indexes
from reproducer.fetch.locate import Locator, path_of
from reproducer.fetch.simple import Candidate
from reproducer.fetch.web import Web, WebFaultError
from reproducer.store.hashing import hash_file

_MACHINES = {"linux-x86_64": "x86_64", "linux-aarch64": "aarch64"}
_LARGEST_WHEEL = 8 << 30


class Releases:
    """The wheels of projects on one user's indexes, for one Python and platform.

    Attributes:
        indexes: the user's own; hints of a manifest are asked where these do not do.
    """

    def __init__(self, indexes: Indexes, *, python: str, platform: str, offline: bool) -> None:
        self.indexes = on_disk(indexes) if offline else indexes
        self.offline = offline
        self._python = python
        self._platform = platform
        self._webs: list[Web] = []
        self._locators: dict[tuple[str, ...], tuple[Locator, Web]] = {}
        self._at(())

    def close(self) -> None:
        """Close every connection."""
        for web in self._webs:
            web.close()

    def prepare(self, hints: Sequence[str]) -> None:
        """Be ready to ask hinted indexes too; call it before `wheels` is called from several threads."""
        self._at(tuple(hints))

    def wheels(self, project: str, version: str, *, hints: Sequence[str] = ()) -> tuple[Artefact, ...]:
        """Every wheel of one version that may serve, by file name; the first index that has a name decides.

        Raises:
            DriftError: no index has one.
            NotCheckedError: no index that could be asked has one.
        """
        faults: dict[str, str] = {}
        for extra in dict.fromkeys(((), tuple(hints) if not self.offline else ())):
            locator, web = self._at(extra)
            found = self._serving(project, Version(version), locator)
            if found:
                return tuple(_artefact(project, version, each, web) for each in found)
            faults |= locator.faults
        what = f"wheel of {project} {version} for Python {self._python} on {self._platform}"
        if faults or self.offline:
            why = "; ".join(f"{source}: {reason}" for source, reason in sorted(faults.items())) or "offline"
            raise NotCheckedError(f"no {what} was found", why=why, todo="make the package index reachable")
        raise DriftError(f"there is no {what} on your package indexes", todo="correct the version in the manifest")

    def offered(self, project: str, *, hints: Sequence[str] = ()) -> tuple[Candidate, ...]:
        """Every file of a project on the user's indexes and then on those that a manifest hints at."""
        return self._at(tuple(hints) if not self.offline else ())[0].offered(project)

    def _at(self, hints: tuple[str, ...]) -> tuple[Locator, Web]:
        if hints not in self._locators:
            indexes = self.indexes.with_hints(hints)
            web = Web(indexes)
            self._webs.append(web)
            self._locators[hints] = (Locator(indexes, web), web)
        return self._locators[hints]

    def _serving(self, project: str, version: Version, locator: Locator) -> list[Candidate]:
        found: dict[str, Candidate] = {}
        for each in locator.offered(project):
            if not _says(each.filename, version):
                continue
            try:
                name, other, _, tags = parse_wheel_filename(each.filename)
            except InvalidWheelFilename:
                continue
            serves = may_serve(tags, python=self._python, platform=self._platform)
            if name == canonicalize_name(project) and other == version and serves:
                found.setdefault(each.filename, each)
        return [found[name] for name in sorted(found)]


def _says(filename: str, version: Version) -> bool:
    """Whether a file name has this version in its second place; a page names thousands, and few are taken apart."""
    return _version(filename.partition("-")[2].partition("-")[0]) == version


@lru_cache(maxsize=4096)
def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def may_serve(tags: Iterable[Tag], *, python: str, platform: str) -> bool:
    """Whether a wheel may serve some host of this Python and platform, whatever its C library."""
    machine = _MACHINES[platform]
    places = re.compile(rf"any|linux_{machine}|(manylinux|musllinux)[0-9_]+_{machine}")
    known = _languages(python)
    return any(places.fullmatch(tag.platform) and (tag.interpreter, tag.abi) in known for tag in tags)


@lru_cache(maxsize=8)
def _languages(python: str) -> frozenset[tuple[str, str]]:
    major, minor = (int(part) for part in python.split("."))
    interpreter = f"cp{major}{minor}"
    tags = (
        *cpython_tags((major, minor), abis=[interpreter], platforms=["any"]),
        *compatible_tags((major, minor), interpreter=interpreter, platforms=["any"]),
    )
    return frozenset((tag.interpreter, tag.abi) for tag in tags)


def on_disk(indexes: Indexes) -> Indexes:
    """The sources that can be asked without a network."""
    return replace(
        indexes,
        index_urls=tuple(url for url in indexes.index_urls if url.startswith("file:")),
        find_links=tuple(url for url in indexes.find_links if url.startswith("file:")),
    )


def _artefact(project: str, version: str, candidate: Candidate, web: Web) -> Artefact:
    digest, size = _digest_and_size(candidate, web)
    return Artefact(
        project=str(canonicalize_name(project)),
        version=version,
        filename=candidate.filename,
        sha256=digest,
        size=size,
    )


def _digest_and_size(candidate: Candidate, web: Web) -> tuple[str, int]:
    """What the index states, or what the file has where the index states nothing."""
    if candidate.sha256 is not None and candidate.size is not None:
        return candidate.sha256, candidate.size
    if candidate.url.startswith("file:"):
        digest, size = hash_file(path_of(candidate.url).resolve())
        if candidate.sha256 not in (None, digest):
            raise DriftError(
                "is not the file that its index lists",
                where=candidate.filename,
                why=f"expected sha256 {candidate.sha256}, got {digest}",
            )
        return digest, size
    try:
        with web.stream(candidate.url, {"Accept-Encoding": "identity"}) as response:
            stated = response.headers.get("Content-Length", "")
            if candidate.sha256 is not None and stated.isdigit():
                return candidate.sha256, int(stated)
            seen, size = sha256(), 0
            for piece in response.iter_raw():
                seen.update(piece)
                size += len(piece)
                if size > _LARGEST_WHEEL:
                    raise NotCheckedError(f"is larger than {_LARGEST_WHEEL} bytes", where=candidate.filename)
    except WebFaultError as fault:
        raise NotCheckedError("cannot be fetched", where=candidate.filename, why=fault.reason) from fault
    return seen.hexdigest(), size

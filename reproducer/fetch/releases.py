"""The newest release of a project that satisfies a specifier, exact enough to be locked."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from reproducer.documents.sources import Artefact
from reproducer.errors import NotCheckedError, UsageError
from reproducer.fetch.hosts import ranks
from reproducer.fetch.indexes import Indexes
from reproducer.fetch.locate import Locator, path_of
from reproducer.fetch.simple import Candidate
from reproducer.fetch.web import Patience, Web, WebFaultError
from reproducer.progress import Reporter
from reproducer.store.hashing import hash_file

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

Kind = Literal["sdist", "wheel"]
_LARGEST_FILE = 16 << 30
_SHOWN = 8


@dataclass(frozen=True)
class _Offer:
    """A candidate that is of the project and kind that was asked for; a smaller rank is better."""

    version: "Version"
    rank: tuple[int, ...]
    candidate: Candidate


def find_release(
    project: str,
    specifier: str,
    kind: Kind,
    *,
    indexes: Indexes,
    reporter: Reporter,
    python: str = "3.11",
    platform: str = "linux-x86_64",
    prereleases: bool = False,
    patience: Patience | None = None,
) -> Artefact:
    """The newest release that satisfies a specifier, as one file with sha256 and size.

    Releases that their publisher withdrew count only where the specifier pins one with `==`; the first source wins
    among equal versions. Where a source says no digest or size, the file is read once to learn them.

    Args:
        project: name on the index.
        specifier: PEP 440, such as `>=0.5,<0.6`, or a bare version, which means exactly that one.
        kind: a source distribution, or the best wheel for `python` and `platform` on this host.
        indexes: where to look.
        reporter: is told what is read.
        python: minor version the release has to allow.
        platform: as in a lock.
        prereleases: whether pre-releases count; one that is pinned with `==` always does.
        patience: how long one goes on asking; None for the usual.

    Raises:
        UsageError: the specifier is malformed.
        NotCheckedError: no such release, or the sources that may have it cannot be asked.
    """
    wanted = _specifier(specifier)
    pinned = any(each.operator in ("==", "===") and "*" not in each.version for each in wanted)
    web = Web(indexes, patience=patience)
    try:
        locator = Locator(indexes, web)
        offers = list(_offers(project, kind, locator.offered(project), python=python, platform=platform))
        fitting = [
            offer
            for offer in offers
            if wanted.contains(offer.version, prereleases=prereleases or pinned)
            and (pinned or offer.candidate.yanked is None)
        ]
        if not fitting:
            raise _nothing(project, specifier, kind, offers, locator)
        newest = max(offer.version for offer in fitting)
        best = min((offer for offer in fitting if offer.version == newest), key=lambda offer: offer.rank)
        reporter.detail(f"{project} {newest}: {best.candidate.filename} from {best.candidate.source}")
        return _exact(project, best, web)
    finally:
        web.close()


def _specifier(text: str) -> "SpecifierSet":
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(f"=={text}" if text[:1].isdigit() else text)
    except InvalidSpecifier as error:
        raise UsageError(f"{text!r} is no version or range of versions (PEP 440)", why=str(error)) from error


def _offers(
    project: str, kind: Kind, candidates: tuple[Candidate, ...], *, python: str, platform: str
) -> Iterator[_Offer]:
    from packaging.utils import (
        InvalidSdistFilename,
        InvalidWheelFilename,
        canonicalize_name,
        parse_sdist_filename,
        parse_wheel_filename,
    )

    own = canonicalize_name(project)
    known = ranks(python, platform) if kind == "wheel" else {}
    for order, candidate in enumerate(candidates):
        if not _allows(candidate.requires_python, python):
            continue
        try:
            if kind == "sdist":
                name, version = parse_sdist_filename(candidate.filename)
                rank: tuple[int, ...] = (int(not candidate.filename.endswith(".tar.gz")), order)
            else:
                name, version, build, tags = parse_wheel_filename(candidate.filename)
                places = [known[tag] for tag in tags if tag in known]
                if not places:
                    continue
                rank = (min(places), -(build[0] if build else 0), order)
        except (InvalidSdistFilename, InvalidWheelFilename):
            continue
        if name == own:
            yield _Offer(version, rank, candidate)


def _allows(requires: str | None, python: str) -> bool:
    """Whether some patch level of the Python satisfies the release's own requirement; a malformed one does not bind."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    if not requires:
        return True
    try:
        wanted = SpecifierSet(requires)
    except InvalidSpecifier:
        return True
    return wanted.contains(f"{python}.0") or wanted.contains(f"{python}.99")


def _exact(project: str, offer: _Offer, web: Web) -> Artefact:
    candidate = offer.candidate
    sha256, size = candidate.sha256, candidate.size
    if sha256 is None or size is None:
        got, size = _read_whole(candidate, web)
        if sha256 is not None and got != sha256:
            raise NotCheckedError(
                f"{candidate.filename} is not what its index says",
                where=candidate.source,
                why=f"expected sha256 {sha256}, got {got}",
            )
        sha256 = got
    from packaging.utils import canonicalize_name

    return Artefact(
        project=canonicalize_name(project),
        version=str(offer.version),
        filename=candidate.filename,
        sha256=sha256,
        size=size,
    )


def _read_whole(candidate: Candidate, web: Web) -> tuple[str, int]:
    """Digest and size of a file whose source does not say them."""
    if candidate.url.startswith("file:"):
        try:
            return hash_file(path_of(candidate.url).resolve())
        except OSError as error:
            raise NotCheckedError("cannot be read", where=candidate.filename, why=str(error.strerror)) from error
    failures = 0
    while True:
        digest, size = hashlib.sha256(), 0
        try:
            with web.stream(candidate.url, {"Accept": "*/*", "Accept-Encoding": "identity"}) as response:
                for piece in response.iter_raw():
                    digest.update(piece)
                    size += len(piece)
                    _within(size)
        except WebFaultError as fault:
            failures += 1
            if not fault.passing or failures >= web.patience.attempts:
                raise NotCheckedError(
                    f"{candidate.filename} cannot be read", where=candidate.source, why=fault.reason
                ) from fault
            web.pause(failures, fault.wait)
        else:
            return digest.hexdigest(), size


def _within(size: int) -> None:
    if size > _LARGEST_FILE:
        raise WebFaultError(f"is larger than {_LARGEST_FILE} bytes", passing=False)


def _tags_there(project: str, locator: Locator) -> list[str]:
    """What the wheels of a project are for, of whatever version."""
    from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

    found: set[str] = set()
    for candidate in locator.offered(project):
        try:
            name, _, _, tags = parse_wheel_filename(candidate.filename)
        except InvalidWheelFilename:
            continue
        if name == canonicalize_name(project):
            found.update(map(str, tags))
    return sorted(found)


def _nothing(project: str, specifier: str, kind: Kind, offers: list[_Offer], locator: Locator) -> NotCheckedError:
    word = "source distribution" if kind == "sdist" else "wheel for this host"
    versions = [str(version) for version in sorted({offer.version for offer in offers}, reverse=True)]
    there = f"there are {', '.join(versions[:_SHOWN])}" if versions else f"no source has a {word} of it"
    if not versions and kind == "wheel" and (tags := _tags_there(project, locator)):
        there += f"; its wheels are for {', '.join(tags[:_SHOWN])}{' and more' if len(tags) > _SHOWN else ''}"
    faults = [f"{source}: {reason}" for source, reason in sorted(locator.faults.items())]
    return NotCheckedError(
        f"no {word} of {project} satisfies {specifier}",
        why="; ".join([there, *faults]),
        todo="correct the version, or name an index that has it",
    )

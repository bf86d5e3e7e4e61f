"""Which facts a manifest lacks for a lock: all in one list, found before anything is resolved, fetched or built.

Nobody can resolve the word `unknown`, and without a network neither what only an index, a repository or a hub knows.
What no lock or launch can give at all stands in the same list, so that nobody learns of it after the facts.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, assert_never

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from reproducer.documents.base import dotted, line_of
from reproducer.documents.manifest import (
    UNKNOWN,
    CheckpointRequest,
    ComponentRequest,
    EnvironmentRequest,
    GitRequest,
    HubRequest,
    LocalRequest,
    Manifest,
    SdistRequest,
    WheelMemberRequest,
    WheelRequest,
)
from reproducer.documents.sources import Artefact, GitSource, HubSource
from reproducer.errors import DriftError, PennyError
from reproducer.locking.environments import EVERYTHING
from reproducer.locking.facts import Missing, MissingFactsError, RefusedFactsError
from reproducer.locking.previous import Previous
from reproducer.locking.refusals import Location, Refusal, refusals
from reproducer.locking.releases import may_serve, on_disk

if TYPE_CHECKING:
    from reproducer.fetch.indexes import Indexes
    from reproducer.store import Store

_UNKNOWN_VERSION = re.compile(r"^(?P<name>[A-Za-z0-9][^=\s]*)\s*==\s*unknown$")
# Where a lock itself says `unknown`; everywhere else the word ends the way to a lock.
_CARRIED = (
    re.compile(r"^(compiler|cuda|driver)$"),
    re.compile(r"^(tools|hardware)\."),
    re.compile(r"^checkpoints\[[0-9]+\]\.source\.digests$"),
)
_PROSE = frozenset({"description", "published", "unknown"})


@dataclass(frozen=True)
class Known:
    """What is known without asking anybody.

    Attributes:
        previous: the lock that is there.
        store: holds the repositories that were fetched.
        indexes: the user's; those on a disk are asked.
        upgrade: projects that are to be taken anew.
        offline: no network is touched.
    """

    previous: Previous
    store: "Store"
    indexes: "Indexes"
    upgrade: frozenset[str]
    offline: bool


def refuse_missing(manifest: Manifest, text: str, known: Known, *, root: Path, where: str) -> tuple[Missing, ...]:
    """Name every fact that is missing, and everything that is refused.

    Args:
        manifest: what is to be locked.
        text: its TOML, for the lines.
        known: what need not be asked for.
        root: the lock's folder.
        where: the manifest's file.

    Returns:
        What the lock will carry as `unknown`.

    Raises:
        MissingFactsError: there is no lock without one of them.
        RefusedFactsError: nothing is missing, and several things are refused; one alone is its own error.
    """
    data = manifest.model_dump(mode="json", exclude_none=True)
    found = _missing(manifest, data, known)
    lacking = any(each.needed for _, each in found)
    said = {location for location, _ in found}
    refused = [each for each in refusals(manifest, root, where=where) if each.location not in said]
    if len(refused) == 1 and not lacking:
        raise refused[0].error
    found += [(each.location, _refused(each)) for each in refused]
    facts = _placed(found, text, data)
    if lacking:
        raise MissingFactsError(facts, where=where)
    if refused:
        raise RefusedFactsError(facts, where=where)
    return facts


def _refused(refusal: Refusal) -> Missing:
    """What is refused as one fact among others: its place stands beside it."""
    error = refusal.error
    alone = type(error)(error.what, why=error.why, todo=error.todo)
    return Missing(dotted(refusal.location), None, "file" if isinstance(error, DriftError) else "refused", str(alone))


def _missing(manifest: Manifest, data: Mapping[str, Any], known: Known) -> list[tuple[Location, Missing]]:
    """Every fact that a manifest lacks."""
    found = [*_words({key: value for key, value in data.items() if key not in _PROSE})]
    found += [
        (("unknown", key), Missing(key, None, "unknown", f"unknown in the manifest: {why}"))
        for key, why in (manifest.unknown or {}).items()
    ]
    if known.offline:
        asked = _Asked(manifest, known)
        said = {location for location, _ in found}
        found += [(location, each) for location, each in asked.all() if not _within(location, said)]
    return found


def _placed(found: list[tuple[Location, Missing]], text: str, data: Any) -> tuple[Missing, ...]:
    """Facts with their lines, in the order in which the keys stand in the file."""
    placed = [
        Missing(each.key, _line(text, location, data), each.kind, each.why, each.needed) for location, each in found
    ]
    return tuple(sorted(placed, key=lambda each: (each.line or 0, each.key)))


def _line(text: str, location: Location, data: Any) -> int | None:
    """The line of a key; of an item of a list its own line, where it stands on one."""
    number = line_of(text, location)
    if number is None or not isinstance(location[-1], int):
        return number
    value = data
    for part in location:
        value = value[part]
    rest = text.splitlines()[number - 1 :]
    return next((number + index for index, line in enumerate(rest) if f'"{value}"' in line), number)


def _within(location: Location, said: set[Location]) -> bool:
    """Whether the word `unknown` stands at a key or below it: then nobody else could say it either."""
    return any(each[: len(location)] == location for each in said)


def _words(value: Any, location: Location = ()) -> Iterator[tuple[Location, Missing]]:
    """Every `unknown` of the plain data of a manifest."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _words(inner, (*location, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _words(inner, (*location, index))
    elif isinstance(value, str):
        version = _UNKNOWN_VERSION.match(value) if location[0] == "environments" else None
        if value == UNKNOWN or version:
            key = dotted(location)
            carried = any(each.match(key) for each in _CARRIED)
            what = f"the version of {version['name']} is unknown" if version else "unknown"
            what = "the digests of its files are unknown" if key.endswith(".source.digests") else what
            then = "; the lock says so too" if carried else ""
            yield location, Missing(key, None, "unknown", f"{what} in the manifest{then}", not carried)


@dataclass(frozen=True)
class _Asked:
    """What a run without a network would have to ask for."""

    manifest: Manifest
    known: Known

    def all(self) -> Iterator[tuple[Location, Missing]]:
        """Every such fact."""
        for number, component in enumerate(self.manifest.components):
            yield from self._component(component, ("components", number, "source"))
        for number, environment in enumerate(self.manifest.environments):
            yield from self._environment(environment, ("environments", number))
        for number, checkpoint in enumerate(self.manifest.checkpoints):
            yield from self._checkpoint(checkpoint, ("checkpoints", number, "source"))

    def _component(self, request: ComponentRequest, at: Location) -> Iterator[tuple[Location, Missing]]:
        source = request.source
        if isinstance(source, LocalRequest):
            return
        before = self.known.previous.component(request.name)
        old = before.source if before is not None else None
        if isinstance(source, GitRequest):
            yield from self._git(source, old if isinstance(old, GitSource) else None, at)
        elif isinstance(source, SdistRequest | WheelRequest):
            kept = old if isinstance(old, Artefact) and old.kind == source.kind else None
            yield from self._release(source, kept, at)
        else:
            assert_never(source)

    def _git(self, source: GitRequest, old: GitSource | None, at: Location) -> Iterator[tuple[Location, Missing]]:
        """A repository on this machine is at hand, and so is a commit that was fetched or that the lock has."""
        from reproducer.git.addresses import address
        from reproducer.git.mirrors import Mirror
        from reproducer.git.references import asked, is_commit

        try:
            place = address(source.url, root=self.known.store.root, where="")
        except PennyError:
            return  # it stands among what is refused
        if place.url is None:
            return
        kept = old is not None and old.url == place.url and old.asked == asked(source.ref) is not None
        if kept:
            return
        if not is_commit(source.ref):
            why = f"{source.ref!r} is a branch or a tag, and only the repository says at which commit it is now"
            yield (*at, "ref"), Missing(dotted((*at, "ref")), None, "reference", why)
        elif not (
            (old is not None and (old.url, old.commit) == (place.url, source.ref))
            or Mirror.of(self.known.store, place.url, source.ref).has(source.ref)
            or Mirror.of(self.known.store, place.url, source.ref, "outline").has(source.ref)
        ):
            why = "tree and submodules of this commit are in the repository, and it was not fetched yet"
            yield (*at, "ref"), Missing(dotted((*at, "ref")), None, "repository", why)

    def _release(
        self, source: SdistRequest | WheelRequest | WheelMemberRequest, old: Artefact | None, at: Location
    ) -> Iterator[tuple[Location, Missing]]:
        """The file of one release: the lock's own, or one that lies on a disk."""
        try:
            wanted = _specifier(source.version)
        except InvalidSpecifier:
            return
        kept = None if {EVERYTHING, source.project} & self.known.upgrade else old
        same = kept is not None and canonicalize_name(source.project) == kept.project
        if same and kept is not None and wanted.contains(kept.version, prereleases=True):
            return
        kind: Literal["sdist", "wheel"] = "sdist" if isinstance(source, SdistRequest) else "wheel"
        if self._released(source.project, source.version, kind):
            return
        what = "source distribution" if kind == "sdist" else "wheel"
        why = f"the digest of the {what} of {source.project} {source.version} is what only a package index knows"
        yield (*at, "version"), Missing(dotted((*at, "version")), None, "index", why)

    def _released(self, project: str, specifier: str, kind: Literal["sdist", "wheel"]) -> bool:
        from reproducer.fetch import find_release
        from reproducer.progress import Silent

        indexes = on_disk(self.known.indexes)
        python, platform = self.manifest.python, self.manifest.platform
        if python == UNKNOWN or not (indexes.index_urls or indexes.find_links):
            return False
        try:
            find_release(project, specifier, kind, indexes=indexes, reporter=Silent(), python=python, platform=platform)
        except PennyError:
            return False
        return True

    def _environment(self, request: EnvironmentRequest, at: Location) -> Iterator[tuple[Location, Missing]]:
        before = self.known.previous.packages(request.name)
        for key in ("requirements", "without_dependencies"):
            for number, text in enumerate(getattr(request, key)):
                location = (*at, key, number)
                try:
                    asked = Requirement(text)
                except InvalidRequirement:
                    continue  # unknown, or refused
                if asked.url is not None:
                    continue
                if not self._has(asked, before):
                    why = f"which wheels {text} has, and their digests, is what only a package index knows"
                    yield location, Missing(dotted(location), None, "index", why)

    def _has(self, asked: Requirement, before: Mapping[str, tuple[Artefact, ...]]) -> bool:
        """Whether a package is in the lock already, or lies on a disk for this Python and platform."""
        name = canonicalize_name(asked.name)
        there = before.get(name, ())
        again = {EVERYTHING, name} & {
            str(canonicalize_name(each)) if each != EVERYTHING else each for each in self.known.upgrade
        }
        if there and not again and asked.specifier.contains(there[0].version, prereleases=True):
            return True
        indexes = on_disk(self.known.indexes)
        if self.manifest.python == UNKNOWN or not (indexes.index_urls or indexes.find_links):
            return False
        from contextlib import closing

        from reproducer.fetch.locate import Locator
        from reproducer.fetch.web import Web

        with closing(Web(indexes)) as web:
            for candidate in Locator(indexes, web).offered(asked.name):
                try:
                    project, version, _, tags = parse_wheel_filename(candidate.filename)
                except InvalidWheelFilename:
                    continue
                serves = may_serve(tags, python=self.manifest.python, platform=self.manifest.platform)
                if project == name and serves and asked.specifier.contains(version, prereleases=True):
                    return True
        return False

    def _checkpoint(self, request: CheckpointRequest, at: Location) -> Iterator[tuple[Location, Missing]]:
        before = self.known.previous.checkpoint(request.name)
        old = before.source if before is not None else None
        source = request.source
        if isinstance(source, WheelMemberRequest):
            yield from self._release(source, old if isinstance(old, Artefact) else None, at)
            return
        if not isinstance(source, HubRequest):
            assert_never(source)
        from reproducer.git.references import asked, is_commit

        exact = is_commit(source.revision)
        kept = isinstance(old, HubSource) and old.repository == source.repository
        kept = kept and old.asked == asked(source.revision) is not None  # type: ignore[union-attr]
        kept = kept and not {EVERYTHING, request.name} & self.known.upgrade
        if not exact and not kept:
            why = f"{source.revision!r} is a branch or a tag, and only the hub says at which commit it is now"
            yield (*at, "revision"), Missing(dotted((*at, "revision")), None, "reference", why)
        same = isinstance(old, HubSource) and (old.repository, old.revision) == (source.repository, source.revision)
        listed = before is not None and before.files != UNKNOWN
        if source.digests == "known" and not ((same or kept) and listed):
            why = f"files and digests of {source.repository} at this revision are what only the hub knows"
            yield (*at, "repository"), Missing(dotted((*at, "repository")), None, "hub", why)


def _specifier(text: str) -> SpecifierSet:
    return SpecifierSet(f"=={text}" if text[:1].isdigit() else text)

"""Whether the lock's platform is covered: packages whose wheels are all for others, with what these are for."""

from collections.abc import Iterable, Iterator, Sequence

from packaging.requirements import Requirement
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from reproducer.fetch.simple import Candidate
from reproducer.locking.releases import may_serve

_SHOWN = 8


def uncovered(
    requirement: str, candidates: Sequence[Candidate], *, python: str, platform: str
) -> tuple[str, tuple[str, ...]] | None:
    """The newest version that a requirement allows, and what its wheels are for, where none is for this platform.

    Returns:
        None where some allowed version has a wheel that may serve, or where none has a wheel at all.
    """
    asked = Requirement(requirement)
    wheels: dict[Version, set[str]] = {}
    for name, version, tags in _wheels(candidates):
        if name != canonicalize_name(asked.name) or not asked.specifier.contains(version, prereleases=True):
            continue
        if may_serve(tags, python=python, platform=platform):
            return None
        wheels.setdefault(version, set()).update(map(str, tags))
    if not wheels:
        return None
    newest = max(wheels)
    return f"{canonicalize_name(asked.name)} {newest}", tuple(sorted(wheels[newest]))


def told(faults: Iterable[tuple[str, tuple[str, ...]]], *, python: str, platform: str) -> str:
    """Such packages in one sentence each."""
    sentences = []
    for package, tags in faults:
        more = f" and {len(tags) - _SHOWN} more" if len(tags) > _SHOWN else ""
        there = ", ".join(tags[:_SHOWN]) + more
        sentences.append(f"{package} has no wheel for Python {python} on {platform}; it has wheels for {there}")
    return "; ".join(sentences)


def _wheels(candidates: Iterable[Candidate]) -> Iterator[tuple[str, Version, frozenset[Tag]]]:
    for candidate in candidates:
        try:
            name, version, _, tags = parse_wheel_filename(candidate.filename)
        except InvalidWheelFilename:
            continue
        yield name, version, tags

"""What is said of the packages of a running server: which one is its engine, and what of them nobody can know."""

from pathlib import Path
from typing import Any

from reproducer.documents.arguments import ArgumentSchema
from reproducer.documents.base import shown
from reproducer.documents.environment import UNKNOWN, AdoptedEnvironment, Distribution, Unknown
from reproducer.documents.lock import EngineKind
from reproducer.errors import DriftError, PennyError
from reproducer.freeze.installed import Inventory
from reproducer.freeze.notes import Notes
from reproducer.freeze.started import started
from reproducer.freeze.stating import Stated

_CLOCK_S = 5.0  # how far the start of a process and the time of a file may be apart on one clock


def distribution(inventory: Inventory, package: str, folder: Path) -> Distribution | None:
    """The distribution that the engine's package belongs to; None for one that was not installed."""
    for each in inventory.distributions:
        if f"{package}/__init__.py" in each.owned and each.place == folder:
            return each.stated
    named = inventory.named(package)
    return named.stated if named is not None else None


def not_changed_since(notes: Notes, package: Path) -> None:
    """Say which files of the engine were written after the server had started: what it read of them is unknown."""
    since = started(notes.found)
    try:
        late = [path for path in package.rglob("*.py") if path.stat().st_mtime > since + _CLOCK_S]
    except OSError:
        late = []
    if late:
        names = ", ".join(shown(str(each.relative_to(package.parent))) for each in sorted(late)[:4])
        why = f"{len(late)} files were written after the server had started ({names}): it may run what they were before"
        notes.miss("engine", why)


def schema(notes: Notes, kind: EngineKind, engine: Distribution | None, folder: Path) -> ArgumentSchema | None:
    """What the engine's own parser takes, read from its source; None, with a note, where it cannot be read."""
    from reproducer.engines.source.reading import from_folder

    if kind == "openai":
        why = "penny does not know this engine: words are read as options with a value each"
        notes.miss("engine.arguments", why)
        return None
    try:
        return from_folder(kind, engine.version if engine is not None else UNKNOWN, folder)
    except PennyError as error:
        why = f"what the engine takes cannot be read from its source: {error.what}"
        notes.miss("engine.arguments", why)
        return None


def same_version(notes: Notes, document: AdoptedEnvironment, engine: Distribution | None, version: Any) -> None:
    """Refuse a server that says it is another release than the one that is installed.

    Raises:
        DriftError: what would be locked is not what runs.
    """
    if engine is not None and isinstance(version, str) and version and version != engine.version:
        stated = next((each for each in document.distributions if each.project == engine.project), engine)
        if stated.checkout is None and document.engine is None:
            raise DriftError(
                f"the server says it is version {shown(version)}, and {engine.version} is installed",
                where=f"pid {notes.found.process.pid}",
                why="the packages were changed after it had started, or the label is wrong",
                todo="start the server again and freeze that one",
            )
        why = f"the server says {shown(version)}, its metadata {engine.version}; the commit of its folder counts"
        notes.miss("engine.version", why)


def of_packages(notes: Notes, stated: Stated, loose: Path | None) -> None:
    """What is unknown of the packages."""
    notes.unknown += [Unknown(key=f"adopted.{key}", why=why) for key, why in stated.unknown]
    drifted = [each for each in stated.document.distributions if each.drifted]
    for each in drifted:
        names = ", ".join(shown(file.path) for file in (each.drifted or ())[:4])
        why = (
            f"files are not what its RECORD says: {names}. They are locked as they are; where they come from is unknown"
        )
        notes.miss(f"adopted.distributions.{each.project}", why)
    if stated.document.loose:
        names = ", ".join(shown(each.path) for each in stated.document.loose[:4])
        why = f"{len(stated.document.loose)} files belong to no package ({names}); they are locked as they are"
        notes.miss("adopted.loose", why)
    plain = sum(each.origin is None for each in stated.document.distributions)
    if plain:
        why = f"{plain} distributions came from an index, and no installer notes which file each one was"
        notes.miss("adopted.distributions", why)
    if loose is not None:
        why = (
            "the engine is read from the server's working folder or PYTHONPATH, where a launch of the lock does "
            "not look: install it there with `pip install --editable`"
        )
        notes.miss("adopted.engine", why)


def how(each: Distribution) -> dict[str, str]:
    """How a distribution could be had again."""
    origin, checkout = each.origin, each.checkout
    if checkout is not None:
        known = checkout.commit != UNKNOWN
        place = checkout.url or "a repository that only this machine has"
        how = f"git {place} at {checkout.commit}" if known else "unknown: a folder of this machine"
        if checkout.changes is not None:
            how += f" with {checkout.changes.path}"
    elif origin is not None and origin.kind == "git":
        how = f"git {origin.url or 'unknown'} at {origin.commit or 'unknown'}"
    elif origin is not None and origin.kind == "archive":
        how = f"{origin.url or 'unknown: a file of this machine'}, sha256 {origin.sha256 or 'unknown'}"
    elif origin is not None:
        how = "unknown: a folder of this machine"
    else:
        how = f"an index: {each.project}=={each.version}"
    return {"project": each.project, "version": each.version, "how": how}

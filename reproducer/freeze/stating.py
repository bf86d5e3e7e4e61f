"""An inventory as the document beside a lock: what each distribution is, and where its code is read from."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from reproducer.documents.environment import UNKNOWN, AdoptedEnvironment, Checkout, Distribution
from reproducer.errors import PennyError
from reproducer.freeze.checkouts import Checkouts, folder_of, origin_of, package_folders
from reproducer.freeze.installed import Inventory


class Stated(NamedTuple):
    """The document, and what in it is unknown: key and reason."""

    document: AdoptedEnvironment
    unknown: tuple[tuple[str, str], ...]


def state(inventory: Inventory, checkouts: Checkouts, engine: Path | None) -> Stated:
    """State an inventory.

    Args:
        inventory: what is installed.
        checkouts: reads folders of code.
        engine: the folder of the engine's package where that is no distribution.
    """
    unknown: list[tuple[str, str]] = []
    distributions: list[Distribution] = []
    for each in inventory.distributions:
        name = each.stated.project
        origin, folder = origin_of(each.direct_url), folder_of(each.direct_url)
        checkout: Checkout | None = None
        if folder is not None:
            try:
                checkout = checkouts.of(folder, name=name.lower())
            except PennyError as error:
                unknown.append((f"distributions.{name}.checkout", f"its folder cannot be read: {error.what}"))
        if checkout is not None and checkout.commit == UNKNOWN:
            unknown.append((f"distributions.{name}.checkout.commit", "its folder is no git repository"))
        if each.stated.record_sha256 == UNKNOWN:
            unknown.append(
                (f"distributions.{name}.record_sha256", "it has no RECORD, so nothing says what was installed")
            )
        distributions.append(each.stated.model_copy(update={"origin": origin, "checkout": checkout}))
    document = AdoptedEnvironment(
        python=inventory.interpreter.version,
        implementation=inventory.interpreter.implementation,
        distributions=tuple(distributions),
        loose=inventory.loose,
        engine=checkouts.of(engine, name="engine") if engine is not None else None,
    )
    return Stated(document, tuple(unknown))


def differences(expected: AdoptedEnvironment, found: AdoptedEnvironment) -> Iterator[str]:
    """Every difference between the packages of a lock and those that are there, one sentence each."""
    if expected.implementation != found.implementation or expected.python != found.python:
        yield f"Python is {found.implementation} {found.python}, not {expected.implementation} {expected.python}"
    before, after = _by_project(expected), _by_project(found)
    for project in sorted(before.keys() | after.keys()):
        old, new = before.get(project), after.get(project)
        if old is None and new is not None:
            yield f"{project} {new.version} is installed and not in the lock"
        elif new is None and old is not None:
            yield f"{project} {old.version} is missing"
        elif old is not None and new is not None:
            yield from _distribution(project, old, new)
    loose_before, loose_after = ({each.path: each.sha256 for each in side.loose} for side in (expected, found))
    for path in sorted(loose_before.keys() | loose_after.keys()):
        if loose_before.get(path) != loose_after.get(path):
            how = (
                "is missing" if path not in loose_after else "is new" if path not in loose_before else "is another one"
            )
            yield f"{path}, which belongs to no package, {how}"
    yield from _checkout("the engine", expected.engine, found.engine)


def _by_project(document: AdoptedEnvironment) -> dict[str, Distribution]:
    """By project; one that stands twice gets the number of its place."""
    found: dict[str, Distribution] = {}
    for each in document.distributions:
        key = each.project
        while key in found:
            key += " (again)"
        found[key] = each
    return found


def _distribution(project: str, old: Distribution, new: Distribution) -> Iterator[str]:
    if old.version != new.version:
        yield f"{project} is {new.version}, not {old.version}"
    elif old.record_sha256 != new.record_sha256:
        yield f"{project} {new.version} recorded other files: digest {new.record_sha256}, not {old.record_sha256}"
    was = {each.path: each.sha256 for each in old.drifted or ()}
    now = {each.path: each.sha256 for each in new.drifted or ()}
    for path in sorted(was.keys() | now.keys()):
        if was.get(path, "as recorded") != now.get(path, "as recorded"):
            told = "what was recorded again" if path not in now else "missing" if now[path] is None else "changed"
            yield f"{project}: {path} is {told}"
    yield from _checkout(project, old.checkout, new.checkout)


def _checkout(what: str, old: Checkout | None, new: Checkout | None) -> Iterator[str]:
    if old is None or new is None:
        if old is not new:
            yield f"{what} is {'read from a folder' if new is not None else 'installed'} now"
    elif old.commit != new.commit:
        yield f"{what} is at commit {new.commit}, not {old.commit}"
    elif old.sha256 != new.sha256:
        yield f"{what} holds other files beside commit {new.commit} than the lock says"


def engine_folder(kind: str, searched: list[Path], inventory: Inventory) -> tuple[Path | None, Path | None]:
    """Where the engine's package is read from, and that folder again where it is no folder of packages.

    Args:
        kind: name of the package.
        searched: folders that the server looked into before those of packages.
        inventory: what is installed.
    """
    for folder in searched:
        if (folder / kind / "__init__.py").is_file():
            return folder, None if folder in inventory.interpreter.places else folder / kind
    for place in inventory.interpreter.places:
        if (place / kind / "__init__.py").is_file():
            return place, None
    for each in inventory.distributions:
        project = folder_of(each.direct_url)
        for folder in package_folders(project) if project is not None else ():
            if (folder / kind / "__init__.py").is_file():
                return folder, None  # it stands in the lock as the checkout of that distribution
    return None, None

"""Building one component: verified sources, patches, one wheel.

The wheel lands outside the source tree, for a folder inside it would become part of the package. The sources lie in
a work folder of fixed layout, and the result must not depend on where that folder is.
"""

import json
import re
import shutil
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from reproducer.archives.members import unpack_sdist
from reproducer.archives.tree_writer import settle
from reproducer.build.patching import apply_series
from reproducer.build.place import seen_folder
from reproducer.build.tools import CUDA
from reproducer.documents.base import FileReference, shown
from reproducer.documents.built import Isolation
from reproducer.documents.lock import Build, Component
from reproducer.documents.sources import GitSource, LocalSource, SdistSource, WheelSource
from reproducer.errors import DriftError, InvalidDocumentError, RebuildError, UnsafeInputError
from reproducer.isolation.running import run_isolated, scrubbed
from reproducer.store import Store

Read = Callable[[FileReference], bytes]
_BACKEND = re.compile(r"^[A-Za-z_][A-Za-z0-9_.]*(:[A-Za-z_][A-Za-z0-9_.]*)?$")
_WHEEL = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9._+!-]{0,250}\.whl$")
_CALL = Path(__file__).with_name("backend_call.py")


@dataclass(frozen=True)
class BuiltWheel:
    """A wheel that was built.

    Attributes:
        path: the file.
        isolation: how the build was kept apart; None for a wheel that was taken as it is, for which nothing ran.
        built_in: the folder it was built in, as the build saw it, for normalising what names it.
    """

    path: Path
    isolation: Isolation | None
    built_in: Path


def prepare_source(
    component: Component, *, sdist: Path | None, read: Read, folder: Path, epoch: int, store: Store | None = None
) -> Path:
    """The component's source tree: unpacked or copied, patched, with normal modes and times.

    Args:
        component: what to build.
        sdist: the verified source distribution; None for a local source.
        read: gives the verified bytes of a file that the lock names.
        folder: where to; does not exist yet.
        epoch: modification time of everything in it, in seconds.
        store: its mirrors have a git source; None for another one.

    Returns:
        The folder that is built: the top of the sources, or the subfolder of a git source.

    Raises:
        UnsafeInputError, DriftError: as unpacking, reading and patching do.
        InvalidDocumentError: the sources were not fetched, or a file is listed twice.
    """
    source = component.source
    subfolder = None
    if isinstance(source, LocalSource):
        tree = folder / component.name
        _copy_local(source, tree, read=read, where=component.name)
    elif isinstance(source, SdistSource):
        if sdist is None:
            raise InvalidDocumentError("has a source distribution that was not fetched", where=component.name)
        tree = unpack_sdist(sdist, folder, name=source.filename, epoch=epoch)
    elif isinstance(source, GitSource):
        if store is None:
            raise InvalidDocumentError("has a git source that was not fetched", where=component.name)
        from reproducer.git.exporting import export  # which writes with what unpacks archives here

        changes = None if source.changes is None else read(source.changes)
        tree, subfolder = folder / component.name, source.subfolder
        export(source, store, tree, changes=changes, where=component.name, epoch=epoch)
    else:
        raise InvalidDocumentError(f"cannot be unpacked from a source of the kind {source.kind}", where=component.name)
    apply_series(tree, [(patch.path, read(patch)) for patch in component.patches])
    settle(tree, epoch)
    return tree if subfolder is None else _below(tree, subfolder, where=component.name)


def _below(tree: Path, subfolder: str, *, where: str) -> Path:
    """The folder of a source tree that is built; no link stands in its place."""
    top = tree / subfolder
    if not top.is_dir() or top.resolve() != tree.resolve() / subfolder:
        raise DriftError(f"the sources have no folder {shown(subfolder)}", where=where)
    return top


def _copy_local(source: LocalSource, tree: Path, *, read: Read, where: str) -> None:
    """Copy exactly the listed files; their paths are relative to the source's folder."""
    tree.mkdir(parents=True)
    for reference in source.files:
        target = tree / reference.path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with target.open("xb") as file:
                file.write(read(reference.model_copy(update={"path": f"{source.path}/{reference.path}"})))
        except FileExistsError as error:
            raise InvalidDocumentError(f"lists {shown(reference.path)} twice", where=where) from error


def build_component(
    component: Component,
    recipe: Build,
    *,
    python: Path,
    provided: Mapping[str, str],
    sdist: Path | None,
    read: Read,
    work: Path,
    store: Store | None = None,
    again: bool = False,
) -> BuiltWheel:
    """Build a component's wheel; the same inputs give the same bytes in any folder.

    Args:
        component: what to build.
        recipe: what every build step shares.
        python: interpreter of the build environment.
        provided: version of every project in the build environment, by project name.
        sdist: the verified source distribution; None for a local source.
        read: gives the verified bytes of a file that the lock names.
        work: an empty folder; the wheel lies in its `out`, the log is its `build.log`.
        store: its mirrors have a git source; None for another one.
        again: in the surroundings of a second build.

    Raises:
        RebuildError: the build fails, or the build environment lacks what the sources ask for.
        UnsafeInputError, DriftError, InvalidDocumentError: as `prepare_source`.
    """
    epoch = recipe.source_date_epoch
    work = work.resolve()
    tree = prepare_source(component, sdist=sdist, read=read, folder=work / "src", epoch=epoch, store=store)
    plan = build_system(tree, provided, where=component.name)
    out = work / "out"
    out.mkdir()
    seen = seen_folder(work, [python], again=again)
    home = seen.inside(work / "home")
    env = scrubbed(home=work / "home", epoch=epoch, programs=python.parent, variables=component.variables)
    if component.architectures:
        env["PATH"] += f":{CUDA}"
    asked = {**plan, "out": str(seen.inside(out))}
    isolation = run_isolated(
        [str(python), "-s", str(_CALL), json.dumps(asked)],
        cwd=seen.inside(tree),
        env={**env, "HOME": str(home), "TMPDIR": str(home / "tmp")},
        writable=[work],
        log=work / "build.log",
        what=f"the build of {component.name}",
        mounted=seen.mounted,
        host=seen.host,
    )
    return BuiltWheel(_only_wheel(out, component.name), isolation, seen.point)


def take_wheel(verified: Path, source: WheelSource, work: Path) -> BuiltWheel:
    """A wheel that its publisher built, under its own name in a work folder: nothing is built, and nothing is run.

    Args:
        verified: the file, whose digest was just compared with the source's.
        source: what the lock says of it.
        work: an empty folder; the wheel lies in its `out`.

    Raises:
        InvalidDocumentError: its name is no wheel's, or that of another project or version.
    """
    try:
        project, version, _, _ = parse_wheel_filename(source.filename)
        same = project == canonicalize_name(source.project) and version == Version(source.version)
    except (InvalidWheelFilename, InvalidVersion) as error:
        raise InvalidDocumentError("is no wheel's file name", where=source.filename, why=str(error)) from error
    if not same:
        raise InvalidDocumentError(
            f"is not the name of a wheel of {source.project} {source.version}", where=source.filename
        )
    work = work.resolve()
    out = work / "out"
    out.mkdir()
    path = out / source.filename
    try:
        path.hardlink_to(verified)
    except OSError:
        shutil.copyfile(verified, path)
    return BuiltWheel(path, None, work)


def build_system(tree: Path, provided: Mapping[str, str], *, where: str) -> dict[str, object]:
    """The build backend that a source tree names, after checking that the build environment has what it requires.

    The folders of `backend_path` are relative to the tree.

    Raises:
        RebuildError: `pyproject.toml` makes no sense, or a requirement is not met.
        UnsafeInputError: the backend's path leaves the tree.
    """
    file = tree / "pyproject.toml"
    try:
        table = tomllib.loads(file.read_text("utf-8")).get("build-system", {}) if file.is_file() else {}
        requires = [Requirement(text) for text in table.get("requires", ["setuptools"])]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, InvalidRequirement, TypeError, AttributeError) as error:
        raise RebuildError("pyproject.toml cannot be read", where=where, why=str(error)) from error
    versions = {canonicalize_name(project): version for project, version in provided.items()}
    missing = []
    for requirement in requires:
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        version = versions.get(canonicalize_name(requirement.name))
        if version is None:
            missing.append(f"{requirement} is not in it")
        elif not requirement.specifier.contains(version, prereleases=True):
            missing.append(f"{requirement} is asked for and it has {version}")
    if missing:
        raise RebuildError(
            "the build environment lacks what the sources require",
            where=where,
            why="; ".join(missing),
            todo="add it to the manifest's build environment and lock again",
        )
    backend = table.get("build-backend", "setuptools.build_meta:__legacy__")
    if not isinstance(backend, str) or not _BACKEND.match(backend):
        raise RebuildError(f"names a build backend that cannot be: {shown(backend)}", where=where)
    paths = [(tree / str(path)).resolve() for path in table.get("backend-path", [])]
    if any(not path.is_relative_to(tree.resolve()) for path in paths):
        raise UnsafeInputError("backend-path leaves the source tree", where=where)
    legacy = ["."] if backend.endswith(":__legacy__") else []
    below = [path.relative_to(tree.resolve()).as_posix() for path in paths]
    return {"backend": backend, "backend_path": below or legacy}


def _only_wheel(out: Path, name: str) -> Path:
    """The one wheel in the output folder."""
    files = sorted(out.iterdir())
    if len(files) != 1 or not _WHEEL.match(files[0].name) or not files[0].is_file() or files[0].is_symlink():
        found = ", ".join(shown(file.name) for file in files[:5]) or "nothing"
        raise RebuildError(f"the build of {name} did not give exactly one wheel", why=f"it gave {found}")
    try:
        parse_wheel_filename(files[0].name)
    except InvalidWheelFilename as error:
        raise RebuildError(f"the build of {name} gave a wheel with an invalid name", why=str(error)) from error
    return files[0]

"""Building a component that is no wheel: its steps run apart from the host, and what they leave is its outputs.

The work folder has a fixed layout (`src`, `build`, `out`, `home`) and is seen under one path on every machine.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reproducer.archives.tree_writer import settle
from reproducer.binaries.content import file_content
from reproducer.build.kinds import KINDS, Place, Program, Step, wheel_compilers
from reproducer.build.moving import fetches
from reproducer.build.place import Seen, seen_folder
from reproducer.build.tools import UNKNOWN, Found, compare_tools, find, version_in
from reproducer.documents.base import shown
from reproducer.documents.built import Isolation
from reproducer.documents.lock import Build, Component, FileOutput
from reproducer.errors import InvalidDocumentError, RebuildError, UnsafeInputError
from reproducer.isolation.running import run_isolated, scrubbed, weakest
from reproducer.store.hashing import LinkReference, hash_tree

Prepare = Callable[[Path], Path]
_MOST_FILES = 100_000


@dataclass(frozen=True)
class BuiltFiles:
    """What a component that is no wheel came to.

    Attributes:
        folder: what a launch sees as the component.
        outputs: every file in it, by path.
        tools: the version of each program, as it says itself.
        isolation: how the build was kept apart.
    """

    folder: Path
    outputs: tuple[FileOutput, ...]
    tools: dict[str, str]
    isolation: Isolation


def build_files(
    component: Component,
    recipe: Build,
    *,
    prepare: Prepare,
    environment: Path | None,
    work: Path,
    again: bool = False,
) -> BuiltFiles:
    """Build a component; the same inputs give the same bytes in any folder, as far as its compilers allow.

    Args:
        component: what to build; where its `tools` are known, other ones are refused before anything is built.
        recipe: what every build step shares.
        prepare: makes the source tree below a folder that does not exist yet, and returns its top.
        environment: the `bin` folder of the build environment; None without one.
        work: an empty folder; the outputs lie below its `out`, the log is its `build.log`.
        again: in the surroundings of a second build.

    Raises:
        RebuildError: a step fails, nothing comes out, or it holds device code for other architectures than asked for.
        DriftError: an input or a program is not what the lock says.
        UnsafeInputError: a link or a special file comes out, or something lies outside of what is installed.
        InvalidDocumentError: the component's arguments cannot be.
        NotCheckedError: a program is missing.
    """
    work = work.resolve()
    tree = prepare(work / "src")
    for name in ("build", "out"):
        (work / name).mkdir()
    kind = KINDS[component.kind]
    run = _run(component, recipe, kind.programs(component), environment, work, again=again)
    tools = run.versions()
    compare_tools(component, tools)
    seen = run.seen
    place = Place(
        source=seen.path(tree.relative_to(work).as_posix()),
        build=seen.path("build"),
        output=seen.path("out"),
        jobs=seen.jobs(component.jobs or len(os.sched_getaffinity(0))),
        tools=run.found.paths,
        flags=seen.flags,
    )
    isolations = [run.step(step, tree) for step in kind.steps(component, place)]
    folder = seen.outside(kind.installed(component, place))
    _refuse_outside(work / "out", folder, component.name)
    outputs = collect(folder, component.name, build_paths=[seen.point, work])
    settle(folder, recipe.source_date_epoch)
    return BuiltFiles(folder, outputs, tools, weakest(isolations, isolations[0]))


def ask_tools(component: Component, recipe: Build, *, environment: Path | None, work: Path) -> dict[str, str]:
    """The programs that would build a component here, with the version each says it is.

    Args:
        component: what would be built.
        recipe: what every build step shares.
        environment: the `bin` folder of the build environment; None without one.
        work: an empty folder.

    Raises:
        NotCheckedError: a program is missing.
        InvalidDocumentError: the component's arguments cannot be.
    """
    (work / "build").mkdir()
    programs = wheel_compilers(component) if component.kind == "wheel" else KINDS[component.kind].programs(component)
    return _run(component, recipe, programs, environment, work).versions()


def _run(
    component: Component,
    recipe: Build,
    programs: Sequence[Program],
    environment: Path | None,
    work: Path,
    *,
    again: bool = False,
) -> "_Run":
    """What runs the steps of one build: its programs found, its place chosen."""
    found = find(programs, environment=environment, where=f"components.{component.name}")
    needed = [*found.paths.values(), *([environment] if environment else [])]
    return _Run(component, recipe, found, seen_folder(work, needed, again=again))


@dataclass(frozen=True)
class _Run:
    """Runs the steps of one build."""

    component: Component
    recipe: Build
    found: Found
    seen: Seen

    def step(self, step: Step, tree: Path) -> Isolation:
        """Run one step; a failing one names what the build files wanted to fetch."""
        what = f"the build of {self.component.name}, {step.what},"
        try:
            return self._run(step.argv, step.cwd, step.variables, "build.log", what)
        except RebuildError as error:
            asked = fetches(tree)
            if not asked:
                raise
            raise RebuildError(
                error.what,
                where=error.where,
                why=f"{error.why}; its build files ask to fetch what the lock does not name: "
                + "; ".join(map(str, asked)),
                todo="add those sources to the component, by a patch or as submodules at a commit",
            ) from error

    def versions(self) -> dict[str, str]:
        """What each program says its version is; `unknown` where it says nothing."""
        versions = {}
        for role, path in sorted(self.found.paths.items()):
            log = f"{role}.version"
            try:
                self._run((str(path), "--version"), self.seen.path("build"), {}, log, f"asking {role} for its version")
            except RebuildError:
                versions[role] = UNKNOWN
            else:
                versions[role] = version_in(role, (self.seen.work / log).read_bytes())
            (self.seen.work / log).unlink(missing_ok=True)
        return versions

    def _run(self, argv: Sequence[str], cwd: Path, variables: Mapping[str, str], log: str, what: str) -> Isolation:
        work = self.seen.work
        env = scrubbed(
            home=work / "home", epoch=self.recipe.source_date_epoch, variables={**self.component.variables, **variables}
        )
        home = self.seen.path("home")
        path = ":".join((*map(str, self.found.folders), env["PATH"]))
        return run_isolated(
            argv,
            cwd=cwd,
            env={**env, "HOME": str(home), "TMPDIR": str(home / "tmp"), "PATH": path},
            writable=[work],
            log=work / log,
            what=what,
            mounted=self.seen.mounted,
            host=self.seen.host,
        )


def _refuse_outside(out: Path, folder: Path, name: str) -> None:
    """Refuse what was installed beside the folder that it must lie in."""
    for top, folders, files in os.walk(out):
        if Path(top) == folder:
            folders.clear()
            continue
        links = [each for each in folders if Path(top, each).is_symlink()]
        if beside := sorted((*files, *links)):
            path = Path(top, beside[0]).relative_to(out).as_posix()
            raise UnsafeInputError(f"the build of {name} installs {shown(path)} outside of its folder")


def collect(folder: Path, name: str, *, build_paths: Sequence[Path]) -> tuple[FileOutput, ...]:
    """Every file below a folder as an output, sorted by path.

    Args:
        folder: what was installed.
        name: the component's.
        build_paths: the folders it was built in.

    Raises:
        RebuildError: nothing came out.
        UnsafeInputError: a link, a device, a socket or a pipe, or a name that no document carries.
    """
    if folder.is_symlink():
        raise UnsafeInputError(f"the build of {name} gave a link in place of its output folder", where=str(folder))
    try:
        found = hash_tree(folder) if folder.is_dir() else {}
    except UnsafeInputError as error:
        raise UnsafeInputError(f"the build of {name} gave what no lock can carry: {error.what}") from error
    if not found:
        raise RebuildError(f"the build of {name} gave nothing", why="its output folder is empty")
    if len(found) > _MOST_FILES:
        raise RebuildError(f"the build of {name} gave {len(found)} files", why=f"more than {_MOST_FILES}")
    outputs = []
    for path, reference in found.items():
        if isinstance(reference, LinkReference):
            raise UnsafeInputError(
                f"the build of {name} gave a link: {shown(path)}",
                why="where it leads is no output",
                todo="let it install copies",
            )
        content = file_content(folder / path, build_paths=build_paths)
        try:
            output = FileOutput(
                filename=path,
                sha256=content.sha256,
                size=content.size,
                content_sha256=content.content_sha256,
                device_code_sha256=content.device_code_sha256,
                architectures=content.architectures,
            )
        except ValueError as error:
            raise InvalidDocumentError(
                f"the build of {name} gave {shown(path)}, which no lock can carry", why=str(error).splitlines()[0]
            ) from error
        outputs.append(output)
    return tuple(outputs)

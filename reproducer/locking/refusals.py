"""What a manifest asks for and no lock or launch can give, as far as the manifest and the files beside it tell.

All of it is found before anything is resolved, fetched or built: a build of an hour is no place to learn that a script
is not there, or that `penny launch` would refuse what came out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement

from reproducer.documents.base import FileReference, dotted, shown
from reproducer.documents.lock import Launch
from reproducer.documents.manifest import UNKNOWN, GitRequest, HubRequest, LocalRequest, Manifest
from reproducer.engines import engine_of
from reproducer.engines.persistent import placed
from reproducer.engines.refused import LOADERS
from reproducer.errors import DriftError, InvalidDocumentError, PennyError, UnsafeInputError
from reproducer.fetch.indexes import Indexes
from reproducer.locking.artefacts import versions
from reproducer.locking.files import read_inside, reference_to, source_folder

if TYPE_CHECKING:
    from reproducer.documents.manifest import CheckpointRequest, ComponentRequest, EnvironmentRequest

Location = tuple[int | str, ...]


@dataclass(frozen=True)
class Refusal:
    """One thing that cannot be.

    Attributes:
        location: its key in the manifest.
        error: what is wrong with it.
    """

    location: Location
    error: PennyError


def refusals(manifest: Manifest, root: Path, *, where: str) -> Iterator[Refusal]:
    """Everything that a manifest asks for in vain.

    Args:
        manifest: what is to be locked.
        root: the lock's folder, in which the files lie.
        where: the manifest, for errors.
    """
    looking = _Looking(manifest, root, where)
    for number, component in enumerate(manifest.components):
        yield from looking.component(component, ("components", number))
    for number, environment in enumerate(manifest.environments):
        yield from looking.environment(environment, ("environments", number))
    for number, checkpoint in enumerate(manifest.checkpoints):
        yield from looking.checkpoint(checkpoint, ("checkpoints", number))
    yield from looking.launch()
    yield from looking.qualification()


def check_requirement(text: str, *, where: str) -> None:
    """Only plain requirements: no URLs, no paths, no options.

    Raises:
        InvalidDocumentError: it is none.
    """
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise InvalidDocumentError(f"{shown(text)} is no requirement", where=where, why=str(error)) from error
    if requirement.url is not None or "\n" in text or "\r" in text:
        raise InvalidDocumentError(
            f"{shown(text)} names a place and not a version",
            where=where,
            why="what lies at an address may be another thing tomorrow",
            todo="write NAME==VERSION, or make it a component",
        )


@dataclass(frozen=True)
class _Looking:
    """One manifest that is looked through."""

    manifest: Manifest
    root: Path
    where: str

    def component(self, request: "ComponentRequest", at: Location) -> Iterator[Refusal]:
        """Sources and patches that are not there, addresses that are none, variables that a build does not take."""
        source = request.source
        if isinstance(source, LocalRequest):
            yield from _refused((*at, "source", "path"), source_folder, self.root, source.path, where=self.where)
        elif isinstance(source, GitRequest):
            from reproducer.git.addresses import address
            from reproducer.git.references import checked

            place = f"{self.where}: component {request.name}"
            yield from _refused((*at, "source", "url"), address, source.url, root=self.root, where=place)
            yield from _refused((*at, "source", "ref"), checked, source.ref, where=place)
        else:
            yield from _refused((*at, "source", "version"), versions, source.version, where=self.where)
        for index, path in enumerate(request.patches):
            yield from self._file(path, (*at, "patches", index))
        from reproducer.isolation.running import refuse_reserved

        for name in request.variables:
            yield from self._at((*at, "variables", name), refuse_reserved, name)

    def environment(self, request: "EnvironmentRequest", at: Location) -> Iterator[Refusal]:
        """Requirements that are none, and hints at indexes that nobody can ask."""
        for key in ("requirements", "without_dependencies"):
            for number, text in enumerate(getattr(request, key)):
                place = f"{self.where}: environment {request.name}"
                yield from _refused((*at, key, number), check_requirement, text, where=place)
        for number, url in enumerate(request.indexes):
            yield from self._at((*at, "indexes", number), Indexes(()).with_hints, (url,))

    def checkpoint(self, request: "CheckpointRequest", at: Location) -> Iterator[Refusal]:
        """A conversion without its script, and a version that is none."""
        source = request.source
        if not isinstance(source, HubRequest):
            yield from _refused((*at, "source", "version"), versions, source.version, where=self.where)
        if request.conversion is not None:
            yield from self._file(request.conversion.script, (*at, "conversion", "script"))

    def launch(self) -> Iterator[Refusal]:
        """What `penny launch` would refuse, whatever is built."""
        from reproducer.launch.processes import TOKEN_VARIABLE

        asked = self.manifest.launch
        for name in asked.environment:
            if name in LOADERS or name == TOKEN_VARIABLE:
                why = "code that no lock pins would be loaded" if name in LOADERS else "penny sets it itself"
                yield Refusal(
                    ("launch", "environment", name),
                    UnsafeInputError(
                        f"no launch takes {name}",
                        where=f"{self.where}, key launch.environment.{name}",
                        why=why,
                        todo="leave it out",
                    ),
                )
        gone = False
        for name, path in asked.files.items():
            missing = tuple(self._file(path, ("launch", "files", name)))
            gone = gone or bool(missing)
            yield from missing
        yield from self._repositories()
        if not gone:
            yield from self._engine()

    def qualification(self) -> Iterator[Refusal]:
        """Receipts that thresholds are relative to, and a reference, that are not there."""
        asked = self.manifest.qualification
        if asked.reference is not None:
            yield from self._file(asked.reference, ("qualification", "reference"))
        for number, measure in enumerate(asked.measures):
            for index, threshold in enumerate(measure.thresholds):
                if threshold.relative_to is not None:
                    at = ("qualification", "measures", number, "thresholds", index, "relative_to")
                    yield from self._file(str(threshold.relative_to), at)

    def _file(self, path: str, at: Location) -> Iterator[Refusal]:
        yield from _refused(at, reference_to, self.root, path, where=self.where)

    def _at(self, location: Location, look: Callable[..., object], *given: object) -> Iterator[Refusal]:
        """As `_refused`, of what says nothing about where it stands."""
        for each in _refused(location, look, *given):
            each.error.where = f"{self.where}, key {dotted(location)}"
            yield each

    def _repositories(self) -> Iterator[Refusal]:
        """Repositories that the engine would open by their names, and code that the checkpoint does not allow."""
        from reproducer.hub.references import check_launch, references_of_launch

        arguments = self.manifest.launch.arguments
        roles = {
            each.source.repository.lower(): each.role
            for each in self.manifest.checkpoints
            if isinstance(each.source, HubRequest)
        }
        for reference in references_of_launch(arguments):
            flag = reference.where.rpartition(".")[2]
            yield from _refused(("launch", "arguments", flag), check_launch, [reference], roles, where=self.where)
        target = next(each for each in self.manifest.checkpoints if each.role == "target")
        if arguments.get("trust-remote-code") is True and not target.trust_remote_code:
            error = InvalidDocumentError(
                "key launch.arguments.trust-remote-code: the engine would run code of the checkpoint",
                where=self.where,
                why=f"checkpoint {target.name} says trust_remote_code = false",
                todo="set trust_remote_code = true on the checkpoint if that is meant",
            )
            yield Refusal(("launch", "arguments", "trust-remote-code"), error)

    def _engine(self) -> Iterator[Refusal]:
        """Stores that no namespace can hold, and values that no argument list can carry: each key once.

        What refuses a launch stops at the first fault, so it is asked again without the key that it named.
        """
        asked, engine = self.manifest.launch, engine_of(self.manifest.engine.kind)
        names = {
            f"{kind}.{name}": f"{{{kind}.{name}}}"
            for kind, every in (
                ("checkpoint", [each.role for each in self.manifest.checkpoints]),
                ("component", [each.name for each in self.manifest.components]),
                ("file", list(asked.files)),
            )
            for name in every
        }
        names["namespace"] = "{namespace}"

        def look(launch: Launch) -> None:
            engine.argument_list(launch, values=names)
            placed(launch, engine.persistent_store, read=self._read)

        launch = Launch(
            module=asked.module,
            program=asked.program,
            arguments=asked.arguments,
            environment=asked.environment,
            files={name: reference_to(self.root, path, where=self.where) for name, path in asked.files.items()},
            effective={},
            readiness=asked.readiness,
        )
        for _ in range(len(asked.arguments) + len(asked.environment) + 1):
            found = next(_refused((), look, launch), None)
            if found is None:
                return
            told = found.error.where
            key = told.partition(", key ")[0].split(".", 2)
            there = getattr(launch, key[1], None) if key[0] == "launch" and len(key) > 2 else None  # noqa: PLR2004
            if not isinstance(there, dict) or key[2] not in there:
                yield Refusal(("launch",), found.error)
                return
            found.error.where = f"{self.where}, key {told}"
            yield Refusal(tuple(key), found.error)
            launch = launch.model_copy(update={key[1]: {name: there[name] for name in there if name != key[2]}})

    def _read(self, file: FileReference) -> bytes:
        return read_inside(self.root, file.path, where=self.where)


def _refused(location: Location, look: Callable[..., object], *given: object, **named: object) -> Iterator[Refusal]:
    """What looking at a key refuses; nobody has written down what is `unknown`, so there is nothing to refuse."""
    if UNKNOWN in given:
        return
    try:
        look(*given, **named)
    except (DriftError, InvalidDocumentError, UnsafeInputError) as error:
        yield Refusal(location, error)

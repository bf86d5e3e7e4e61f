"""Components of a lock: their sources at one state, and what building them gives."""

from dataclasses import dataclass
from typing import assert_never

from reproducer.build.wheel_content import read_wheel, render_members
from reproducer.documents.lock import Component, FileOutput, Output
from reproducer.documents.manifest import ComponentRequest, GitRequest, LocalRequest, SdistRequest, WheelRequest
from reproducer.documents.sources import Artefact, ComponentSource, SdistSource, WheelSource
from reproducer.errors import InvalidDocumentError
from reproducer.locking.files import local_source, reference, reference_to
from reproducer.locking.making import EXPECTED, Making

BUILD_ENVIRONMENT = "build"


@dataclass(frozen=True)
class Components:
    """The components of one manifest."""

    making: Making

    def component(self, request: ComponentRequest, files: dict[str, bytes]) -> Component:
        """A component with its expected outputs; the lists of their members go to `files`."""
        making = self.making
        source = self._source(request)
        component = Component(
            name=request.name,
            kind=request.kind,
            source=source,
            patches=tuple(reference_to(making.root, path, where=making.where) for path in request.patches),
            build_environment=_environment(request, source),
            variables=dict(sorted(request.variables.items())),
            arguments=request.arguments,
            architectures=request.architectures,
            jobs=request.jobs,
            outputs=(),
        )
        outputs = self._kept_outputs(component, files)
        if not outputs and making.check:
            making.pending.append(f"components[{component.name}].outputs: to be built again, for an input changed")
            before = making.previous.component(component.name)
            outputs = before.outputs if before else ()
        elif not outputs:
            outputs = self._built_outputs(component, files)
        return component.model_copy(update={"outputs": outputs})

    def tools(self, component: Component) -> tuple[Artefact, ...]:
        """What building a component needs: its source in the store, and the wheels of its build environment."""
        if isinstance(component.source, Artefact):
            self.making.artefacts.fetched(component.source)
        return self.making.tools(component.build_environment)

    def _source(self, request: ComponentRequest) -> ComponentSource:
        making, asked = self.making, request.source
        if isinstance(asked, LocalRequest):
            return local_source(making.root, asked.path, where=making.where)
        if isinstance(asked, SdistRequest | WheelRequest):
            before = making.previous.component(request.name)
            old = before.source if before and before.source.kind == asked.kind else None
            keep = making.kept(old if isinstance(old, Artefact) else None, asked.project)
            found = making.artefacts.release(asked.project, asked.version, asked.kind, keep=keep, where=making.where)
            plain = plain_artefact(found).model_dump()
            return SdistSource(**plain) if asked.kind == "sdist" else WheelSource(**plain)
        if isinstance(asked, GitRequest):
            raise InvalidDocumentError("git sources cannot be locked yet", where=making.where)
        assert_never(asked)

    def _kept_outputs(self, component: Component, files: dict[str, bytes]) -> tuple[Output | FileOutput, ...]:
        """The outputs of the lock that is there, where nothing that goes into the build changed."""
        making = self.making
        before = making.previous.component(component.name)
        if before is None or making.everything or before.model_copy(update={"outputs": ()}) != component:
            return ()
        if not making.same_workshop(component.build_environment):
            return ()
        lists = {output.members.path: making.previous.bytes_of(output.members) for output in before.wheels}
        if any(data is None for data in lists.values()):
            return ()
        files |= {path: data for path, data in lists.items() if data is not None}
        return before.outputs

    def _built_outputs(self, component: Component, files: dict[str, bytes]) -> tuple[Output | FileOutput, ...]:
        if not isinstance(component.source, WheelSource):
            self.making.accept(f"building {component.name}")
        _, built = self.making.workshop.component(component, self.tools(component))
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


def _environment(request: ComponentRequest, source: ComponentSource) -> str | None:
    """Where a component is built; a wheel that is taken as it is needs none."""
    if isinstance(source, WheelSource):
        return None
    return request.build_environment or (BUILD_ENVIRONMENT if request.kind == "wheel" else None)


def plain_artefact(artefact: Artefact) -> Artefact:
    """The artefact without what a source says besides."""
    return Artefact(**artefact.model_dump(include=set(Artefact.model_fields)))

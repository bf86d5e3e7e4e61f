"""Components of a lock: their sources at one state, and what building them gives."""

from dataclasses import dataclass
from typing import assert_never

from reproducer.binaries.wheel_content import read_wheel, render_members
from reproducer.build.architectures import check_asked, of_files, of_wheel
from reproducer.build.kinds import wheel_compilers
from reproducer.documents.lock import Component, Output
from reproducer.documents.manifest import ComponentRequest, GitRequest, LocalRequest, SdistRequest, WheelRequest
from reproducer.documents.sources import Artefact, ComponentSource, SdistSource, WheelSource
from reproducer.locking.files import local_source, reference, reference_to
from reproducer.locking.making import EXPECTED, Making
from reproducer.locking.repositories import Repositories

BUILD_ENVIRONMENT = "build"


@dataclass(frozen=True)
class Components:
    """The components of one manifest."""

    making: Making

    def resolved(self, request: ComponentRequest, files: dict[str, bytes]) -> Component:
        """A component at one state, without its outputs; changes beside a commit go to `files`."""
        making = self.making
        source = self._source(request, files)
        return Component(
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

    def made(self, component: Component, files: dict[str, bytes]) -> Component:
        """A component that is resolved, with its expected outputs; the lists of their members go to `files`."""
        making = self.making
        before = making.previous.component(component.name)
        known = self._known(component, files)
        if known is None and making.check:
            making.pending.append(f"components[{component.name}].outputs: to be built again, for an input changed")
            known = before or component
        elif known is None:
            known = self._built(component, files)
        return component.model_copy(update={"tools": known.tools, "outputs": known.outputs})

    def tools(self, component: Component) -> tuple[Artefact, ...]:
        """What building a component needs: its source in the store, and the wheels of its build environment."""
        if isinstance(component.source, Artefact):
            self.making.artefacts.fetched(component.source)
        Repositories(self.making).fetched(component)
        return self.making.tools(component.build_environment)

    def _source(self, request: ComponentRequest, files: dict[str, bytes]) -> ComponentSource:
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
            return Repositories(making).source(request.name, asked, files)
        assert_never(asked)

    def _known(self, component: Component, files: dict[str, bytes]) -> Component | None:
        """The component of the lock that is there, where nothing that goes into the build changed."""
        making = self.making
        before = making.previous.component(component.name)
        if before is None or making.everything or component.name in making.upgrade:
            return None
        if before.model_copy(update={"tools": None, "outputs": ()}) != component:
            return None
        if not before.outputs or not making.same_workshop(component.build_environment):
            return None
        lists = {output.members.path: making.previous.bytes_of(output.members) for output in before.wheels}
        if any(data is None for data in lists.values()):
            return None
        files |= {path: data for path, data in lists.items() if data is not None}
        return before

    def _built(self, component: Component, files: dict[str, bytes]) -> Component:
        """The component with what building it tells: its outputs, and the tools of one that is no wheel."""
        if not isinstance(component.source, WheelSource):
            self.making.accept(f"building {component.name}")
        environment = self.tools(component)
        workshop = self.making.workshop
        if component.kind != "wheel" or wheel_compilers(component):
            component = component.model_copy(update={"tools": workshop.tools(component, environment)})
        if component.kind == "wheel":
            return component.model_copy(update={"outputs": (self._wheel(component, environment, files),)})
        _, built = workshop.files(component, environment)
        check_asked(component, of_files(built.outputs))
        return component.model_copy(update={"outputs": built.outputs})

    def _wheel(self, component: Component, environment: tuple[Artefact, ...], files: dict[str, bytes]) -> Output:
        """The wheel of a component; its list of members goes to `files`."""
        _, built = self.making.workshop.component(component, environment)
        content = read_wheel(built.path, build_paths=[built.built_in])
        members = render_members(content.members)
        path = f"{EXPECTED}/{built.path.name}.members"
        files[path] = members
        asked = component.architectures is not None
        output = Output(
            filename=built.path.name,
            sha256=content.sha256,
            size=content.size,
            content_sha256=content.digest,
            members=reference(path, members),
            device_code_sha256=content.device_code_digest,
            architectures=of_wheel(built.path) if asked else None,
        )
        check_asked(component, {output.filename: output.architectures})
        return output


def _environment(request: ComponentRequest, source: ComponentSource) -> str | None:
    """Where a component is built; a wheel that is taken as it is needs none."""
    if isinstance(source, WheelSource):
        return None
    return request.build_environment or (BUILD_ENVIRONMENT if request.kind == "wheel" else None)


def plain_artefact(artefact: Artefact) -> Artefact:
    """The artefact without what a source says besides."""
    return Artefact(**artefact.model_dump(include=set(Artefact.model_fields)))

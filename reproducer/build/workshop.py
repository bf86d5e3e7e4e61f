"""What one lock has made: its components, wheels or other files, and its checkpoints, each a product of the store."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reproducer.build.component import BuiltWheel, build_component, prepare_source, take_wheel
from reproducer.build.conversion import compare_checkpoint, convert_checkpoint
from reproducer.build.files import BuiltFiles, ask_tools, build_files
from reproducer.build.products import Product, Products, isolation_of, product_key
from reproducer.build.tools import compare_tools
from reproducer.documents.built import Isolation
from reproducer.documents.lock import Checkpoint, CheckpointFile, Component, FileOutput
from reproducer.documents.sources import Artefact, SdistSource, WheelSource
from reproducer.errors import DriftError, InvalidDocumentError
from reproducer.store.layout import private_folder

# What says of a git source where it was found, and not what it is.
_FROM_WHERE: Any = {"source": {"url": True, "asked": True, "submodules": {"__all__": {"url"}}}}
_DECIDES = {"name", "source", "patches", "variables", "arguments", "architectures", "tools"}


class Workshop(Products):
    """Makes the components and checkpoints of one lock."""

    def component(self, component: Component, environment: Sequence[Artefact]) -> tuple[Product, BuiltWheel]:
        """The wheel of a component, built now or taken from the store; one that is taken as it is is verified.

        Args:
            component: what to build; its outputs are not looked at.
            environment: the chosen wheel of every package of its build environment.

        Raises:
            RebuildError, DriftError, UnsafeInputError, InvalidDocumentError: as `build_component`.
        """
        inputs = self._component_inputs(component, environment, _DECIDES)

        def make(work: Path) -> Mapping[str, Any]:
            built = self.build(component, environment, work)
            for name in ("src", "home"):
                shutil.rmtree(work / name, ignore_errors=True)
            return {
                "wheel": built.path.relative_to(work.resolve()).as_posix(),
                "built_in": str(built.built_in),
                **({} if built.isolation is None else {"isolation": built.isolation.model_dump()}),
            }

        product = self.product("wheel", inputs, make, label=f"component {component.name}")
        return product, BuiltWheel(
            product.folder / product.record["wheel"], isolation_of(product), Path(product.record["built_in"])
        )

    def key_of(self, component: Component, environment: Sequence[Artefact]) -> tuple[str, str]:
        """The kind and key under which the store has what comes out of a component, whether it is there or not."""
        kind, decides = ("wheel", _DECIDES) if component.kind == "wheel" else ("files", {*_DECIDES, "kind"})
        return kind, product_key(kind, self.platform, self._component_inputs(component, environment, decides))

    def _component_inputs(
        self, component: Component, environment: Sequence[Artefact], decides: set[str]
    ) -> dict[str, Any]:
        """What decides what comes out of a component."""
        return {
            "version": 1,
            "component": component.model_dump(mode="json", include=decides, exclude=_FROM_WHERE, exclude_none=True),
            "recipe": self.recipe.model_dump(mode="json"),
            "toolchain": self.toolchain.model_dump(mode="json", exclude_none=True),
            "environment": sorted([each.filename, each.sha256] for each in environment),
        }

    def tools(self, component: Component, environment: Sequence[Artefact]) -> dict[str, str]:
        """The programs that would build a component here, with their versions; raises as `ask_tools`.

        Of a wheel they are known only where it says that it compiles; otherwise there are none.
        """
        with private_folder(self.store.root) as folder:
            return ask_tools(
                component, self.recipe, environment=self._programs(component, environment), work=folder.resolve()
            )

    def files(self, component: Component, environment: Sequence[Artefact]) -> tuple[Product, BuiltFiles]:
        """The files of a component that is no wheel, built now or taken from the store.

        Args:
            component: what to build; its outputs are not looked at.
            environment: the chosen wheel of every package of its build environment; none without one.

        Raises:
            RebuildError, DriftError, UnsafeInputError, InvalidDocumentError, NotCheckedError: as `build_files`.
        """
        inputs = self._component_inputs(component, environment, {*_DECIDES, "kind"})

        def make(work: Path) -> Mapping[str, Any]:
            built = self.build_files(component, environment, work)
            for name in ("src", "build", "home"):
                shutil.rmtree(work / name, ignore_errors=True)
            return {
                "folder": built.folder.relative_to(work.resolve()).as_posix(),
                "outputs": [each.model_dump(mode="json", exclude_none=True) for each in built.outputs],
                "tools": built.tools,
                "isolation": built.isolation.model_dump(),
            }

        product = self.product("files", inputs, make, label=f"component {component.name}")
        record = product.record
        outputs = tuple(FileOutput.model_validate_json(json.dumps(each)) for each in record["outputs"])
        isolation = Isolation.model_validate(record["isolation"])
        return product, BuiltFiles(product.folder / record["folder"], outputs, dict(record["tools"]), isolation)

    def build_files(
        self, component: Component, environment: Sequence[Artefact], work: Path, *, again: bool = False
    ) -> BuiltFiles:
        """Build a component that is no wheel in this folder, whatever the store holds; raises as `files` does."""
        source = component.source
        sdist = (
            self.store.verified(source.sha256, source.size, what=source.filename)
            if isinstance(source, SdistSource)
            else None
        )
        epoch = self.recipe.source_date_epoch
        self.reporter.note(f"building {component.name} from source")
        return build_files(
            component,
            self.recipe,
            prepare=lambda folder: prepare_source(
                component, sdist=sdist, read=self.read, folder=folder, epoch=epoch, store=self.store
            ),
            environment=self._programs(component, environment),
            work=work,
            again=again,
        )

    def build_files_again(self, component: Component, environment: Sequence[Artefact]) -> tuple[FileOutput, ...]:
        """What building a component that is no wheel once more, elsewhere, gives."""
        with self._elsewhere() as folder:
            return self.build_files(component, environment, folder, again=True).outputs

    @contextmanager
    def _elsewhere(self) -> Iterator[Path]:
        """A private folder whose path is longer than that of the first build."""
        with private_folder(self.store.root) as folder:
            work = folder / "once-more"
            work.mkdir()
            yield work

    def _programs(self, component: Component, environment: Sequence[Artefact]) -> Path | None:
        """The folder of the programs in a component's build environment; None without one."""
        if component.build_environment is None:
            return None
        return self.environment(component.build_environment, environment).folder / "venv" / "bin"

    def build(
        self, component: Component, environment: Sequence[Artefact], work: Path, *, again: bool = False
    ) -> BuiltWheel:
        """Build a component in this folder, whatever the store holds; raises as `component` does."""
        source = component.source
        if isinstance(source, WheelSource):
            return take_wheel(self.store.verified(source.sha256, source.size, what=source.filename), source, work)
        if component.build_environment is None:
            raise InvalidDocumentError("names no build environment", where=f"components.{component.name}")
        tools = self.environment(component.build_environment, environment)
        if component.tools is not None:
            compare_tools(component, self.tools(component, environment))
        sdist = (
            self.store.verified(source.sha256, source.size, what=source.filename)
            if isinstance(source, SdistSource)
            else None
        )
        self.reporter.note(f"building {component.name} from source")
        return build_component(
            component,
            self.recipe,
            python=tools.folder / "venv" / "bin" / "python",
            provided={each.project: each.version for each in environment},
            sdist=sdist,
            read=self.read,
            work=work,
            store=self.store,
            again=again,
        )

    def build_again(
        self, component: Component, environment: Sequence[Artefact], into: Callable[[BuiltWheel], Any]
    ) -> Any:
        """Build a component once more, elsewhere, and hand the wheel to `into` before the folder goes."""
        with self._elsewhere() as folder:
            return into(self.build(component, environment, folder, again=True))

    def checkpoint(
        self, checkpoint: Checkpoint, environment: Sequence[Artefact], *, compare: bool = True
    ) -> tuple[Product, dict[str, CheckpointFile]]:
        """The folder of a checkpoint, converted now or taken from the store; it is the product's `checkpoint`.

        One whose files are taken as they are is what `penny fetch` put into the store, hashed again.

        Args:
            checkpoint: what to make.
            environment: the chosen wheel of every package of its conversion environment.
            compare: hold its files against the lock; locking itself does not.

        Raises:
            DriftError: the files are not those of the lock; names each. Or they are not in the store.
            NotCheckedError: nobody knows its files.
            RebuildError, UnsafeInputError: as `convert_checkpoint`.
        """
        if checkpoint.made is None:
            return self._taken(checkpoint)
        source, conversion = checkpoint.made
        inputs = {
            "version": 1,
            "source": source.model_dump(mode="json"),
            "script": conversion.script.sha256,
            "arguments": list(conversion.arguments),
            "recipe": self.recipe.model_dump(mode="json"),
            "python": self.toolchain.python,
            "environment": sorted([each.filename, each.sha256] for each in environment),
        }

        def make(work: Path) -> Mapping[str, Any]:
            tools = self.environment(conversion.environment, environment)
            wheel = self.store.verified(source.sha256, source.size, what=source.filename)
            self.reporter.note(f"converting checkpoint {checkpoint.name}")
            converted = convert_checkpoint(
                checkpoint,
                wheel=wheel,
                script=self.read(conversion.script),
                python=tools.folder / "venv" / "bin" / "python",
                work=work,
                epoch=self.recipe.source_date_epoch,
            )
            # The source can be had from the wheel again.
            shutil.rmtree(work / "conversion")
            return {
                "files": [each.model_dump(exclude_none=True) for each in converted.files.values()],
                "isolation": converted.isolation.model_dump(),
            }

        def serves(_folder: Path, record: Mapping[str, Any]) -> bool:
            return not compare or {each.path: each for each in checkpoint.listed} == _files(record)

        product = self.product("checkpoint", inputs, make, label=f"checkpoint {checkpoint.name}", usable=serves)
        files = _files(product.record)
        if compare:
            compare_checkpoint(checkpoint, files)
        return product, files

    def _taken(self, checkpoint: Checkpoint) -> tuple[Product, dict[str, CheckpointFile]]:
        """A checkpoint of a hub or of a folder: exactly the locked files, as they were fetched."""
        from reproducer.hub.presenting import origin_of, presented

        folder = presented(self.store, checkpoint, reporter=self.reporter)
        if folder is None:
            raise DriftError(
                f"checkpoint {checkpoint.name} is not in the store",
                where=origin_of(checkpoint),
                todo=f"run `penny fetch`, with --checkpoint {checkpoint.role}=DIR where you have its folder",
            )
        return Product(folder.parent, {}, reused=True), {each.path: each for each in checkpoint.listed}


def _files(record: Mapping[str, Any]) -> dict[str, CheckpointFile]:
    return {each["path"]: CheckpointFile.model_validate(each) for each in record["files"]}

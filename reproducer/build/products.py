"""Built folders of the store: a wheel, an environment, a checkpoint, each keyed by the digest of exactly its inputs.

A product is made in a private folder and sealed whole, so a kill at any moment leaves nothing that counts. On reuse
every file is hashed again; what is damaged, or what its maker finds unusable, is made anew.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproducer.build.component import Read
from reproducer.build.environment import Wheel, content_files, interpreter_version, make_environment
from reproducer.canonical import canonical_bytes, content_digest
from reproducer.documents.built import Isolation, TreeDigest
from reproducer.documents.lock import Build, Toolchain
from reproducer.documents.sources import Artefact
from reproducer.errors import DriftError, NotCheckedError, RebuildError
from reproducer.progress import Reporter
from reproducer.store import Store
from reproducer.store.hashing import hash_tree, tree_digest

_RECORD = "record.json"


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
class Products:
    """What every product of one lock is made with, and the products that need nothing else.

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


def _runs(folder: Path, record: Mapping[str, Any]) -> bool:
    """Whether the interpreter outside the store that an environment points to is still the one it was made with."""
    try:
        return bool(interpreter_version(folder / "venv") == record["python"])
    except NotCheckedError:
        return False


def content_of(environment: Product) -> TreeDigest:
    """Digest over the files of an environment that do not depend on place, time and host."""
    return TreeDigest.model_validate(environment.record["tree"])

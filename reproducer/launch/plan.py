"""What will be executed, worked out whole before anything starts: arguments, environment, folders."""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from reproducer.documents.base import parse_json
from reproducer.documents.lock import Launch
from reproducer.documents.opened import OpenedLock
from reproducer.documents.receipts import BuildReceipt
from reproducer.engines import Engine, engine_of
from reproducer.engines.interface import filled
from reproducer.engines.persistent import Placed, placed
from reproducer.engines.refused import LOADERS
from reproducer.errors import DriftError, InvalidDocumentError, NotCheckedError, UnsafeInputError
from reproducer.identity.root import pages_of
from reproducer.launch.ports import HOST
from reproducer.launch.processes import TOKEN_VARIABLE
from reproducer.launch.turn import private_folder, private_parent

FIXED = {
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",  # the runtime's files are sealed
    "PYTHONNOUSERSITE": "1",
    "PYTHONSAFEPATH": "1",
    "PYTHONUNBUFFERED": "1",
}
_LARGEST_CONFIG = 4 << 20


class RuntimeLike(Protocol):
    """What a launch needs of a runtime."""

    @property
    def python(self) -> Path:
        """The runtime's interpreter."""

    @property
    def checkpoints(self) -> Mapping[str, Path]:
        """The folder of each checkpoint, by role."""

    @property
    def components(self) -> Mapping[str, Path]:
        """The folder of each component that is no wheel, by name."""

    @property
    def receipt(self) -> BuildReceipt:
        """The receipt of its build."""


class NamespaceLike(Protocol):
    """What a launch needs of a namespace."""

    @property
    def name(self) -> str:
        """Slug and the first digits of the digest."""

    @property
    def digest(self) -> str:
        """The digest over all factors."""


@dataclass(frozen=True)
class Plan:
    """One launch, worked out.

    Attributes:
        command: what the arguments are given to: the runtime's interpreter with a module, or a program of a component.
        programs: the folder of the runtime's own programs: an engine that compiles while it runs looks for ninja.
        values: what fills each placeholder on this machine.
        arguments: the argument list with its placeholders, as a receipt may carry it.
        environment: the whole environment with its placeholders, as a receipt may carry it.
    """

    engine: Engine
    launch: Launch
    command: tuple[str, ...]
    programs: Path
    values: dict[str, str]
    arguments: tuple[str, ...]
    environment: dict[str, str]
    checkpoint_config: dict[str, Any]

    def argv(self, port: int) -> tuple[str, ...]:
        """What is executed; host and port are penny's own."""
        arguments = self.engine.argument_list(self.launch, values=self.values)
        return (*self.command, *arguments, "--host", HOST, "--port", str(port))

    def variables(self, private: "Private") -> dict[str, str]:
        """The environment of the server: nothing of penny's own passes through."""
        return {
            **FIXED,
            "PATH": _path(str(self.programs)),
            "HOME": str(private.home),
            "TMPDIR": str(private.temporary),
            **self.engine.environment(self.launch, values=self.values),
            TOKEN_VARIABLE: private.token,
        }


def plan(opened: OpenedLock, runtime: RuntimeLike, namespace_root: Path) -> Plan:
    """Work out a launch.

    Raises:
        InvalidDocumentError: the lock names no effective value, so nothing could be checked; a placeholder that nothing
            fills; a flag that no lock may carry; a persistent store that does not lie in the namespace.
        UnsafeInputError: the lock's environment would load code that the lock does not pin; a link leads the store out
            of the namespace; the program lies outside of every component.
        NotCheckedError: the engine would not read the path of the namespace as one.
        DriftError: the checkpoint has no readable config, or a file of the launch is not the lock's.
    """
    launch = opened.lock.launch
    if not launch.effective:
        raise InvalidDocumentError(
            "the lock names no effective value to check",
            where=f"{opened.path}, key launch.effective",
            todo="run `penny lock`",
        )
    for name in launch.environment:
        if name in LOADERS or name == TOKEN_VARIABLE:
            raise UnsafeInputError(
                f"the lock sets {name}",
                where=f"{opened.path}, key launch.environment.{name}",
                why="code that the lock does not pin would be loaded",
            )
    engine = engine_of(opened.lock.engine.kind)
    values = {f"checkpoint.{role}": str(folder) for role, folder in runtime.checkpoints.items()}
    pages = pages_of(namespace_root)
    values |= {f"component.{name}": str(folder) for name, folder in runtime.components.items()}
    for name, file in (launch.files or {}).items():
        opened.read(file)  # by its digest, before the server reads it where it lies
        values[f"file.{name}"] = str(opened.folder / file.path)
    values["namespace"] = str(pages)
    store = placed(launch, engine.persistent_store, read=opened.read)
    _check_place(store, pages)
    launch = store.launch
    names = {name: f"{{{name}}}" for name in values}
    own = {"PATH": _path("{runtime}/bin"), "HOME": "{private}", "TMPDIR": "{private}"}
    stated = {**FIXED, **own, **engine.environment(launch, values=names)}
    return Plan(
        engine=engine,
        launch=launch,
        command=_command(launch, runtime, values),
        programs=runtime.python.absolute().parent,
        values=values,
        arguments=tuple(engine.argument_list(launch, values=names)),
        environment=dict(sorted(stated.items())),
        checkpoint_config=_config(runtime.checkpoints.get("target")),
    )


def _path(programs: str) -> str:
    """Where the server looks for programs: the runtime's own, then the system's. No path with a colon can be named."""
    return FIXED["PATH"] if ":" in programs else f"{programs}:{FIXED['PATH']}"


def _command(launch: Launch, runtime: RuntimeLike, values: Mapping[str, str]) -> tuple[str, ...]:
    """The start of the argument list."""
    if launch.program is None:
        if launch.module is None:
            raise InvalidDocumentError("the launch names no module", where="launch.module")
        return (str(runtime.python), "-m", launch.module)
    program = filled(launch.program, values, where="launch.program")
    inside = os.path.realpath(program)
    if not any(Path(inside).is_relative_to(os.path.realpath(folder)) for folder in runtime.components.values()):
        raise UnsafeInputError(
            "the program lies in no component of the lock",
            where=f"launch.program: {launch.program}",
            why=f"at {inside}",
        )
    return (program,)


def _check_place(store: Placed, pages: Path) -> None:
    """What only this machine tells about the place of the stores: the path of the namespace, and links in it."""
    if found := sorted(set(store.breaks) & set(str(pages))):
        raise NotCheckedError(
            f"the path of the namespace holds {' and '.join(found)}",
            where=str(pages),
            why="the engine would keep its pages elsewhere",
            todo="use a store with a plain path",
        )
    inside = os.path.realpath(pages)
    for below in store.below:
        if not Path(place := os.path.realpath(pages / below)).is_relative_to(inside):
            raise UnsafeInputError(
                "a link leads the engine's pages out of the namespace", where=str(pages / below), why=f"to {place}"
            )


def _config(folder: Path | None) -> dict[str, Any]:
    """The `config.json` of the target checkpoint."""
    if folder is None:
        raise InvalidDocumentError("the runtime has no checkpoint with the role target")
    path = folder / "config.json"
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_CONFIG + 1)
    except OSError as error:
        raise DriftError(
            "the checkpoint's config cannot be read", where=str(path), why=error.strerror or str(error)
        ) from error
    config = parse_json(data, where=str(path), limit=_LARGEST_CONFIG)
    if not isinstance(config, dict):
        raise InvalidDocumentError("is no table", where=str(path))
    return config


@dataclass(frozen=True)
class Private:
    """The folders of one launch, empty at its start and removed at its end, and the token it is known by."""

    folder: Path
    token: str

    @property
    def cwd(self) -> Path:
        """The working directory: empty, so that nothing in it can shadow a package."""
        return self.folder / "cwd"

    @property
    def home(self) -> Path:
        """The home folder: caches that packages keep there end with the launch."""
        return self.folder / "home"

    @property
    def temporary(self) -> Path:
        """Where temporary files and sockets go."""
        return self.folder / "tmp"

    def make(self) -> None:
        """Make the folders.

        Raises:
            NotCheckedError: the temporary folder cannot be written.
        """
        try:
            for folder in (self.folder, self.cwd, self.home, self.temporary):
                folder.mkdir(mode=0o700)
        except OSError as error:
            raise NotCheckedError(
                "no temporary folder for the server", where=str(self.folder), why=error.strerror or str(error)
            ) from error


def choose_private() -> Private:
    """The folders of a new launch, named but not made yet, so that their name can be noted down first."""
    token = secrets.token_hex(16)
    return Private(private_folder(private_parent(), token), token)

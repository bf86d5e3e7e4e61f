"""`penny freeze`: a running server and what it runs on give a lock and the files beside it."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from reproducer.attest.sanitise import Machine as Names
from reproducer.attest.sanitise import leaks
from reproducer.documents.arguments import ArgumentSchema
from reproducer.documents.base import SLUG, parse_json, shown
from reproducer.documents.environment import UNKNOWN, Distribution, Observation, Unknown
from reproducer.documents.lock import (
    Adopted,
    ArgumentValue,
    Build,
    Engine,
    EngineKind,
    Launch,
    Lock,
    Measure,
    Qualification,
    Role,
    Scalar,
    Threshold,
    Toolchain,
)
from reproducer.engines import engine_of
from reproducer.errors import DriftError, InvalidDocumentError, NotCheckedError, PennyError, UsageError
from reproducer.freeze.answers import server_info
from reproducer.freeze.checkouts import Checkouts
from reproducer.freeze.command_line import parse
from reproducer.freeze.found import Found
from reproducer.freeze.installed import Interpreter, Inventory, ask_interpreter, take_inventory
from reproducer.freeze.machine import build_id_of, libraries, look, toolchain_compiler
from reproducer.freeze.placing import Placing, Told
from reproducer.freeze.stating import Stated, engine_folder, state
from reproducer.freeze.variables import kept
from reproducer.freeze.weights import Named, Weights, read, resolve
from reproducer.host import host_platform
from reproducer.importing.command import MODULES, command_of
from reproducer.importing.found import Found as Words
from reproducer.launch.processes import started_utc
from reproducer.launch.startup_log import read_head
from reproducer.locking.files import reference
from reproducer.progress import Reporter
from reproducer.store import Store

if TYPE_CHECKING:
    from reproducer.documents.lock import CheckpointFile, Platform

_MODULE_OF: Mapping[EngineKind, str] = {engine: module for module, engine in MODULES.items()}
_CHECKPOINTS: Mapping[EngineKind, Mapping[Role, str]] = {
    "sglang": {"target": "model-path", "draft": "speculative-draft-model-path", "tokenizer": "tokenizer-path"},
    "vllm": {"target": "model", "tokenizer": "tokenizer"},
    "openai": {"target": "model-path", "tokenizer": "tokenizer-path"},
}
_SOURCE_DATE_EPOCH = 1704067200
_LARGEST_CONFIG = 4 << 20
_NOT_NAMES = frozenset({"model", "model_path", "tokenizer", "tokenizer_path", "speculative_draft_model_path"})
_TIMES = 5.0


@dataclass(frozen=True)
class Asked:
    """What a person asks to be frozen.

    Attributes:
        python: the interpreter, where the process does not tell it.
        log: the start-up log, where it is no file that the process writes to.
        folders: of checkpoints, by role, where the process does not tell them.
        name: of the lock; None for one made of checkpoint and engine.
    """

    host: str
    port: int | None
    secure: bool = False
    python: Path | None = None
    log: Path | None = None
    folders: Mapping[str, Path] = field(default_factory=dict)
    name: str | None = None


@dataclass(frozen=True)
class Frozen:
    """A lock that is not written yet, with what could not be known.

    Attributes:
        files: what lies beside it, by path relative to its folder.
        unknown: what could not be known, and why.
        left_out: what was set and is not in the lock, and why.
        rebuild: how each distribution could be had again.
        process: identity of the process that was frozen.
        python: the interpreter that it runs in.
        folders: of its checkpoints, by role.
    """

    document: Lock
    files: dict[str, bytes]
    unknown: tuple[Unknown, ...]
    left_out: tuple[Unknown, ...]
    rebuild: tuple[dict[str, str], ...]
    process: dict[str, Any]
    python: Path
    folders: Mapping[str, Path]


def freeze(found: Found, asked: Asked, store: Store, *, reporter: Reporter) -> Frozen:
    """A lock of a running server.

    Args:
        found: the process.
        asked: what the person said of it.
        store: where mirrors of git working trees go, to name what they hold beside their commit.
        reporter: where progress goes.

    Raises:
        DriftError: what is installed now is not what runs.
        UsageError, UnsafeInputError: what no lock carries.
        NotCheckedError: the process, its packages or its checkpoints cannot be read; it ended meanwhile.
    """
    run = _Run(found, asked, store, reporter)
    try:
        frozen = run.frozen()
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:10])
        raise InvalidDocumentError("the server holds what no lock can carry", why=faults) from error
    found.still_there()
    return frozen


@dataclass
class _Run:
    """One freeze, from the process to the lock."""

    found: Found
    asked: Asked
    store: Store
    reporter: Reporter
    unknown: list[Unknown] = field(default_factory=list)
    left_out: list[Unknown] = field(default_factory=list)

    def frozen(self) -> Frozen:
        kind, module, words = self._command()
        interpreter = ask_interpreter(self._interpreter())
        if interpreter.implementation != "cpython":
            raise UsageError(f"the server runs in {shown(interpreter.implementation)}, and locks name CPython")
        inventory = take_inventory(interpreter, reporter=self.reporter)
        package = module.partition(".")[0]
        folder, loose = engine_folder(package, self._searched(), inventory)
        if folder is None:
            raise NotCheckedError(
                f"the package {package} of the server is not among its packages",
                where=str(interpreter.path),
                todo="name the interpreter that the server runs in with --python",
            )
        engine = self._distribution(inventory, package, folder)
        self._not_changed_since(folder / package)
        schema = self._schema(kind, engine, folder)
        parsed = parse(kind, words, schema)
        self.unknown += [Unknown(key=f"launch.arguments: {word}", why=why) for word, why in parsed.unread]
        weights = self._checkpoints(kind, parsed.arguments)
        name = self.asked.name or _slug(f"{weights['target'][1].stated.name}-{kind}-frozen")
        beside = f"frozen/{name}"
        launch, info, placing = self._launch(kind, module, parsed.arguments, schema, weights, beside)
        version = info.get("version")
        self._same_version(engine, version)
        checkouts = Checkouts(self.store, self.reporter, f"{beside}/patches")
        stated = state(inventory, checkouts, loose)
        self._of_packages(stated, loose)
        machine = look(self.found.environ)
        if not machine.gpus:
            why = "nvidia-smi is not there or names no GPU: name, power limit and driver were not seen"
            self.unknown.append(Unknown(key="hardware", why=why))
        elif machine.hardware is None:
            self.unknown.append(Unknown(key="hardware", why="the GPUs are not all alike"))
        owners = {
            place: {
                path: each.stated.project
                for each in inventory.distributions
                if each.place == place
                for path in each.owned
            }
            for place in interpreter.places
        }
        loaded = libraries(self.found.mapped, owners)
        cuda = machine.compilers.get("nvcc", "none")
        files = {**checkouts.files, **placing.files}
        observation = Observation(
            engine_version=version if isinstance(version, str) and version.isprintable() else UNKNOWN,
            executable=build_id_of(self.found.executable),
            libraries=loaded,
            compilers=dict(machine.compilers),
            driver=machine.driver,
            gpus=machine.gpus,
            unknown=tuple(self.unknown),
            left_out=tuple(self.left_out),
        )
        files[f"{beside}/environment.json"] = stated.document.canonical() + b"\n"
        files[f"{beside}/observed.json"] = observation.canonical() + b"\n"
        arguments = None
        if schema is not None:
            files[f"{beside}/arguments.json"] = schema.rendered()
            arguments = reference(f"{beside}/arguments.json", files[f"{beside}/arguments.json"])
        document = Lock(
            format="penny-lock/1",
            name=name,
            platform=cast("Platform", host_platform()),
            toolchain=Toolchain(
                python=interpreter.minor,
                compiler=toolchain_compiler(machine.compilers),
                cuda=None if cuda == "none" else cuda,
                driver=machine.driver if machine.gpus else None,
            ),
            hardware=machine.hardware,
            engine=Engine(kind=kind, component=_slug(engine.project if engine else package), arguments=arguments),
            build=Build(source_date_epoch=_SOURCE_DATE_EPOCH),
            components=(),
            environments=(),
            adopted=Adopted(
                environment=reference(f"{beside}/environment.json", files[f"{beside}/environment.json"]),
                distributions=len(stated.document.distributions),
                observed=reference(f"{beside}/observed.json", files[f"{beside}/observed.json"]),
            ),
            checkpoints=tuple(each.stated for _, each in weights.values()),
            launch=launch,
            qualification=_qualification({each.path: each for each in weights["target"][1].stated.listed}, weights),
        )
        _without_leaks(document)
        process = self.found.process
        return Frozen(
            document=document,
            files=files,
            unknown=tuple(self.unknown),
            left_out=tuple(self.left_out),
            rebuild=tuple(_how(each) for each in stated.document.distributions),
            process={
                "pid": process.pid,
                "start_ticks": process.start_ticks,
                "started": started_utc(process.start_ticks),
                "executable": observation.executable,
            },
            python=interpreter.path,
            folders={role: each.folder for role, (_, each) in weights.items()},
        )

    def _command(self) -> tuple[EngineKind, str, tuple[str, ...]]:
        """Engine, module and the words after it."""
        argv = self.found.argv
        command = command_of(Words(argv, {}, self.found.cwd, "the process"))
        if command is not None:
            return command.engine, _MODULE_OF[command.engine], command.arguments
        if "-m" in argv[1:]:
            at = argv.index("-m", 1)
            if at + 1 < len(argv) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", argv[at + 1]):
                return "openai", argv[at + 1], argv[at + 2 :]
        raise NotCheckedError(
            "penny cannot say which module serves",
            where=f"pid {self.found.process.pid}",
            why=f"it was started as {shown(' '.join(argv[:4]))}",
            todo="freeze a server that was started as `python -m MODULE`, `sglang serve` or `vllm serve`",
        )

    def _interpreter(self) -> Path:
        """The interpreter as the server was started: the path decides which environment it is."""
        found = self.found
        if self.asked.python is not None:
            return Path(self.asked.python).absolute()
        words = [found.argv[0]] if PurePosixPath(found.argv[0]).name.startswith(("python", "pypy")) else []
        candidates = [found.cwd / word for word in words if "/" in word]
        paths = found.environ.get("PATH", "").split(":")
        candidates += [Path(each, word) for word in words if "/" not in word for each in paths if each]
        if virtual := found.environ.get("VIRTUAL_ENV"):
            candidates.append(Path(virtual, "bin", "python"))
        for each in candidates:
            try:
                if each.resolve() == found.executable.resolve():
                    return each
            except (OSError, RuntimeError):
                continue
        return found.executable

    def _searched(self) -> list[Path]:
        """Folders that the server looked into for modules before those of packages."""
        argv, environ = self.found.argv, self.found.environ
        options = [
            each for each in argv[1 : argv.index("-m") if "-m" in argv else 1] if re.fullmatch(r"-[A-Za-z]+", each)
        ]
        letters = {letter for option in options for letter in option[1:]}
        folders: list[Path] = []
        if "-m" in argv and not letters & {"P", "I"} and "PYTHONSAFEPATH" not in environ:
            folders.append(self.found.cwd)
        if not letters & {"E", "I"}:
            folders += [self.found.cwd / each for each in environ.get("PYTHONPATH", "").split(":") if each]
        return folders

    def _distribution(self, inventory: Inventory, package: str, folder: Path) -> Distribution | None:
        """The distribution that the engine's package belongs to; None for one that was not installed."""
        for each in inventory.distributions:
            if f"{package}/__init__.py" in each.owned and each.place == folder:
                return each.stated
        named = inventory.named(package)
        return named.stated if named is not None else None

    def _not_changed_since(self, package: Path) -> None:
        """Say which files of the engine were written after the server had started: what it read of them is unknown."""
        started = _started(self.found)
        try:
            late = [path for path in package.rglob("*.py") if path.stat().st_mtime > started + _TIMES]
        except OSError:
            late = []
        if late:
            names = ", ".join(shown(str(each.relative_to(package.parent))) for each in sorted(late)[:4])
            why = f"{len(late)} files were written after the server had started ({names}): it may run what they were before"
            self.unknown.append(Unknown(key="engine", why=why))

    def _schema(self, kind: EngineKind, engine: Distribution | None, folder: Path) -> ArgumentSchema | None:
        from reproducer.engines.source.reading import from_folder

        if kind == "openai":
            why = "penny does not know this engine: words are read as options with a value each"
            self.unknown.append(Unknown(key="engine.arguments", why=why))
            return None
        try:
            return from_folder(kind, engine.version if engine is not None else UNKNOWN, folder)
        except PennyError as error:
            why = f"what the engine takes cannot be read from its source: {error.what}"
            self.unknown.append(Unknown(key="engine.arguments", why=why))
            return None

    def _checkpoints(self, kind: EngineKind, arguments: Mapping[str, ArgumentValue]) -> dict[Role, tuple[str, Weights]]:
        """Every checkpoint that the command line names: its word there, and what lies there."""
        found: dict[Role, tuple[str, Weights]] = {}
        seen: dict[Path, Role] = {}
        revision = arguments.get("revision")
        for role, flag in _CHECKPOINTS[kind].items():
            text = arguments.get(flag)
            if kind == "openai" and role == "target":
                text = text or arguments.get("model")
            own = self.asked.folders.get(role)
            if own is None and not isinstance(text, str):
                continue
            word = text if isinstance(text, str) else str(own)
            named = (
                Named(own, word if not Path(word).is_absolute() and word.count("/") == 1 else None)
                if own is not None
                else resolve(
                    word,
                    revision=revision if isinstance(revision, str) and role == "target" else None,
                    cwd=self.found.cwd,
                    environ=self.found.environ,
                    since=_started(self.found),
                )
            )
            folder = named.folder.resolve()
            if folder in seen:
                continue
            seen[folder] = role
            served = arguments.get("served-model-name")
            label = served[0] if isinstance(served, tuple) and served else served
            name = _slug(self._name(named, label if role == "target" and isinstance(label, str) else None))
            weights = read(
                named,
                name=name if all(name != other.stated.name for _, other in found.values()) else f"{name}-{role}",
                role=role,
                trust_remote_code=arguments.get("trust-remote-code", False) is True,
                reporter=self.reporter,
            )
            self.unknown += [Unknown(key=f"checkpoints.{role}.source", why=why) for why in weights.doubts]
            found[role] = (word, weights)
        if "target" not in found:
            raise NotCheckedError(
                "the command line names no checkpoint", todo="name its folder with --checkpoint target=FOLDER"
            )
        return found

    @staticmethod
    def _name(named: Named, served: str | None) -> str:
        snapshot = re.search(r"models--[^/]*?--([^/]+)/snapshots/", str(named.folder))
        if snapshot is not None:
            return snapshot[1]
        if named.repository is not None:
            return named.repository.rpartition("/")[2]
        return served if served and "/" not in served else named.folder.name

    def _launch(
        self,
        kind: EngineKind,
        module: str,
        arguments: Mapping[str, ArgumentValue],
        schema: ArgumentSchema | None,
        weights: Mapping[Role, tuple[str, Weights]],
        beside: str,
    ) -> tuple[Launch, dict[str, Any], Placing]:
        """The launch with the effective values that the live server shows."""
        variables = kept(
            kind, self.found.environ, [each.name for each in schema.variables] if schema is not None else ()
        )
        self.unknown += variables.unknown
        self.left_out += variables.left_out
        told = {role: Told(word, each.folder) for role, (word, each) in weights.items()}
        given = dict(arguments)
        target = weights["target"]
        if "revision" in given:
            self.left_out.append(Unknown(key="launch.arguments.revision", why="the checkpoint's files stand for it"))
            del given["revision"]
        if kind != "openai" and not Path(target[0]).is_absolute() and "served-model-name" not in given:
            given["served-model-name"] = target[0]  # as it answers now; a launch from a folder would answer otherwise
        placing = Placing(kind, self.found.cwd, told, beside)
        launch = placing.launch(module, given, variables.environment)
        self.unknown += placing.unknown
        self.left_out += placing.left_out
        info, effective = self._effective(kind, launch, told)
        return launch.model_copy(update={"effective": effective}), info, placing

    def _effective(
        self, kind: EngineKind, launch: Launch, told: Mapping[Role, Told]
    ) -> tuple[dict[str, Any], dict[str, Scalar]]:
        """What the live server tells, and the effective values of it that a launch of the lock must show."""
        engine = engine_of(kind)
        config = self._config(told["target"].folder)
        info: dict[str, Any] = {}
        if self.asked.port is None:
            why = "no --url was given and the port is not known, so the server was not asked"
            self.unknown.append(Unknown(key="launch.effective", why=why))
        else:
            try:
                info = server_info(engine, host=self.asked.host, port=self.asked.port, secure=self.asked.secure)
            except NotCheckedError as error:
                self.unknown.append(Unknown(key="launch.effective", why=f"{error.what}: {error.why}"))
        log = self.asked.log or self.found.log
        text = ""
        if log is None:
            why = "its output goes to no file: what only the start-up log tells is not known; name it with --log"
            self.unknown.append(Unknown(key="launch.effective: start-up log", why=why))
        else:
            try:
                text, _ = read_head(log)
            except OSError as error:
                raise UsageError("the log cannot be read", where=str(log), why=error.strerror or str(error)) from error
        if not info:
            return info, {}
        paths = {f"checkpoint.{role}": str(each.folder) for role, each in told.items()}
        observed = engine.observed_effective(info, text, config, paths)
        expected = engine.expected_effective(launch.arguments, config, launch.environment)
        words = {each.text: f"{{checkpoint.{role}}}" for role, each in told.items()}
        found: dict[str, Scalar] = {}
        for name in sorted(expected.keys() | (engine.machine_resolved & observed.keys())):
            seen = observed.get(name)
            value = seen.value if seen is not None else None
            if isinstance(value, str) and name in _NOT_NAMES:
                value = words.get(value, value)
            if value is None:
                why = "neither the server nor its log shows it"
                self.unknown.append(Unknown(key=f"launch.effective.{name}", why=why))
            elif isinstance(value, str) and (value == "auto" or value.startswith("contradictory: ")):
                self.unknown.append(Unknown(key=f"launch.effective.{name}", why=f"the server says {shown(value)}"))
            elif isinstance(value, str) and re.search(r"(?:^|[\s\"'=:,])~?/[A-Za-z0-9._~-]", value):
                self.unknown.append(Unknown(key=f"launch.effective.{name}", why="it names a place on this machine"))
            else:
                found[name] = value
        return info, found

    @staticmethod
    def _config(folder: Path) -> dict[str, Any]:
        try:
            with (folder / "config.json").open("rb") as file:
                data = file.read(_LARGEST_CONFIG + 1)
        except OSError as error:
            raise NotCheckedError(
                "the checkpoint's config cannot be read", where=str(folder), why=str(error)
            ) from error
        config = parse_json(data, where="config.json", limit=_LARGEST_CONFIG)
        if not isinstance(config, dict):
            raise InvalidDocumentError("is no table", where="config.json")
        return config

    def _same_version(self, engine: Distribution | None, version: Any) -> None:
        """Refuse a server that says it is another release than the one that is installed: it is not what would be locked."""
        if engine is not None and isinstance(version, str) and version and version != engine.version:
            if engine.origin is None and engine.checkout is None and not _is_editable(engine):
                raise DriftError(
                    f"the server says it is version {shown(version)}, and {engine.version} is installed",
                    where=f"pid {self.found.process.pid}",
                    why="the packages were changed after it had started, or the label is wrong",
                    todo="start the server again and freeze that one",
                )
            why = f"the server says {shown(version)}, its metadata {engine.version}; the commit of its folder counts"
            self.unknown.append(Unknown(key="engine.version", why=why))

    def _of_packages(self, stated: Stated, loose: Path | None) -> None:
        """What is unknown of the packages."""
        self.unknown += [Unknown(key=f"adopted.{key}", why=why) for key, why in stated.unknown]
        drifted = [each for each in stated.document.distributions if each.drifted]
        for each in drifted:
            names = ", ".join(shown(file.path) for file in (each.drifted or ())[:4])
            why = f"files are not what its RECORD says: {names}. They are locked as they are; where they come from is unknown"
            self.unknown.append(Unknown(key=f"adopted.distributions.{each.project}", why=why))
        if stated.document.loose:
            names = ", ".join(shown(each.path) for each in stated.document.loose[:4])
            why = f"{len(stated.document.loose)} files belong to no package ({names}); they are locked as they are"
            self.unknown.append(Unknown(key="adopted.loose", why=why))
        plain = sum(each.origin is None for each in stated.document.distributions)
        if plain:
            why = f"{plain} distributions came from an index, and no installer notes which file each one was"
            self.unknown.append(Unknown(key="adopted.distributions", why=why))
        if loose is not None:
            why = (
                "the engine is read from the server's working folder or PYTHONPATH, where a launch of the lock does "
                "not look: install it there with `pip install --editable`"
            )
            self.unknown.append(Unknown(key="adopted.engine", why=why))


def _started(found: Found) -> float:
    """When the server started, in seconds since the epoch."""
    import calendar

    return float(calendar.timegm(time.strptime(started_utc(found.process.start_ticks), "%Y-%m-%dT%H:%M:%SZ")))


def _is_editable(engine: Distribution) -> bool:
    return engine.files == 0


def _slug(text: str) -> str:
    """Text as a name that locks carry."""
    name = re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")[:64].strip("-._")
    return name if re.fullmatch(SLUG, name) else "frozen"


def _qualification(files: "Mapping[str, CheckpointFile]", weights: Mapping[Role, tuple[str, Weights]]) -> Qualification:
    """The least that says a launch serves: a chat where the checkpoint has a template for one, else decoding."""
    folder = weights["target"][1].folder
    if _has_template(folder, files):
        said = ("sensible", "finished", "usage_consistent")
        bounds = tuple(Threshold(value=each, comparator="==", bound=True, unit="bool") for each in said)
        measure = Measure(id="chat.smoke/1", repeats=2, warmup=0, thresholds=bounds)
    else:
        bounds = (Threshold(value="decode_rate", comparator=">=", bound=0, unit="tok/s"),)
        measure = Measure(id="decode.single/1", repeats=2, warmup=0, thresholds=bounds)
    return Qualification(suite="smoke", boots=2, measures=(measure,))


def _has_template(folder: Path, files: "Mapping[str, CheckpointFile]") -> bool:
    if "chat_template.jinja" in files or "chat_template.json" in files:
        return True
    try:
        with (folder / "tokenizer_config.json").open("rb") as file:
            config = parse_json(file.read(_LARGEST_CONFIG + 1), where="tokenizer_config.json", limit=_LARGEST_CONFIG)
    except (OSError, InvalidDocumentError):
        return False
    return isinstance(config, dict) and bool(config.get("chat_template"))


def _without_leaks(lock: Lock) -> None:
    """Refuse a lock that names this machine or a person, or holds a secret.

    Raises:
        InvalidDocumentError: says where, and never what.
    """
    if found := leaks(lock.content(), where="the lock", machine=Names.here()):
        raise InvalidDocumentError(
            f"would hold {found[0].what}, which must not leave this machine",
            where=found[0].where,
            why="; ".join(f"{each.where} holds {each.what}" for each in found[1:8]),
            todo="start the server without it, or with a name in its place",
        )


def _how(each: Distribution) -> dict[str, str]:
    """How a distribution could be had again."""
    origin, checkout = each.origin, each.checkout
    if checkout is not None:
        known = checkout.commit != UNKNOWN
        place = checkout.url or "a repository that only this machine has"
        how = f"git {place} at {checkout.commit}" if known else "unknown: a folder of this machine"
        if checkout.changes is not None:
            how += f" with {checkout.changes.path}"
    elif origin is not None and origin.kind == "git":
        how = f"git {origin.url or 'unknown'} at {origin.commit or 'unknown'}"
    elif origin is not None and origin.kind == "archive":
        how = f"{origin.url or 'unknown: a file of this machine'}, sha256 {origin.sha256 or 'unknown'}"
    elif origin is not None:
        how = "unknown: a folder of this machine"
    else:
        how = f"an index: {each.project}=={each.version}"
    return {"project": each.project, "version": each.version, "how": how}


def remote(asked: Asked, kind: EngineKind) -> dict[str, Any]:
    """What a server on another machine tells of itself; nothing else can be known of it.

    Raises:
        NotCheckedError: it tells nothing.
    """
    engine = engine_of(kind)
    info = server_info(engine, host=asked.host, port=asked.port or 80, secure=asked.secure)
    return {name: seen.value for name, seen in sorted(engine.observed_effective(info, "", {}, {}).items())}


__all__ = ["Asked", "Frozen", "Interpreter", "freeze", "remote"]

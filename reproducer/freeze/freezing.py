"""`penny freeze`: a running server and what it runs on give a lock and the files beside it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from reproducer.documents.base import FileReference, parse_json, shown
from reproducer.documents.environment import UNKNOWN, Observation, Unknown
from reproducer.documents.lock import (
    Adopted,
    Build,
    Engine,
    EngineKind,
    Lock,
    Measure,
    Qualification,
    Threshold,
    Toolchain,
)
from reproducer.errors import InvalidDocumentError, NotCheckedError, UsageError
from reproducer.freeze.beside import path_of
from reproducer.freeze.checkouts import Checkouts
from reproducer.freeze.command_line import parse
from reproducer.freeze.config_file import read_config
from reproducer.freeze.found import Found, listener
from reproducer.freeze.installed import Interpreter, Inventory, ask_interpreter, take_inventory
from reproducer.freeze.machine import Machine, build_id_of, libraries, look, toolchain_compiler
from reproducer.freeze.notes import Asked, Notes
from reproducer.freeze.packages import distribution, how, not_changed_since, of_packages, same_version, schema
from reproducer.freeze.serving import Given, Served, checkpoints, launched, slug
from reproducer.freeze.started import command, interpreter, searched
from reproducer.freeze.stating import engine_folder, state
from reproducer.freeze.weights import Weights
from reproducer.host import host_platform
from reproducer.launch.processes import descendants, started_utc
from reproducer.locking.files import reference
from reproducer.progress import Reporter
from reproducer.sanitize.text import Machine as Names
from reproducer.sanitize.text import leaks
from reproducer.store import Store

if TYPE_CHECKING:
    from reproducer.documents.arguments import ArgumentSchema
    from reproducer.documents.lock import ArgumentValue, Platform

_SOURCE_DATE_EPOCH = 1704067200
_LARGEST_CONFIG = 4 << 20


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
    try:
        frozen = _frozen(Notes(found, asked, reporter), store)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:10])
        raise InvalidDocumentError("the server holds what no lock can carry", why=faults) from error
    found.still_there()
    return frozen


def _frozen(notes: Notes, store: Store) -> Frozen:
    """The lock of the process and everything beside it."""
    found = notes.found
    kind, module, words = command(found)
    python = ask_interpreter(interpreter(found, notes.asked.python))
    if python.implementation != "cpython":
        raise UsageError(f"the server runs in {shown(python.implementation)}, and locks name CPython")
    inventory = take_inventory(python, reporter=notes.reporter)
    package = module.partition(".")[0]
    folder, loose = engine_folder(package, searched(found), inventory)
    if folder is None:
        raise NotCheckedError(
            f"the package {package} of the server is not among its packages",
            where=str(python.path),
            todo="name the interpreter that the server runs in with --python",
        )
    engine = distribution(inventory, package, folder)
    not_changed_since(notes, folder / package)
    taken = schema(notes, kind, engine, folder)
    arguments = _arguments(notes, kind, words, taken, python)
    notes.asked = _with_port(notes, arguments.get("port"))
    weights = checkpoints(notes, kind, arguments)
    name = notes.asked.name or slug(f"{weights['target'][1].stated.name}-{kind}-frozen")
    beside = f"frozen/{name}"
    served = launched(notes, Given(kind, module, arguments, taken), weights, beside)
    checkouts = Checkouts(store, notes.reporter, beside)
    stated = state(inventory, checkouts, loose)
    same_version(notes, stated.document, engine, served.info.get("version"))
    of_packages(notes, stated, loose)
    machine = _machine(notes)
    files = {**checkouts.files, **served.files}

    def put(label: str, data: bytes) -> FileReference:
        path = path_of(beside, label, ".json", data)
        files[path] = data
        return reference(path, data)

    environment = put("environment", stated.document.canonical() + b"\n")
    observed = put("observed", _observed(notes, served, machine, inventory).canonical() + b"\n")
    cuda = machine.compilers.get("nvcc", "none")
    document = Lock(
        format="penny-lock/1",
        name=name,
        platform=cast("Platform", host_platform()),
        toolchain=Toolchain(
            python=python.minor,
            compiler=toolchain_compiler(machine.compilers),
            cuda=None if cuda == "none" else cuda,
            driver=machine.driver if machine.gpus or _has_driver(found) else None,
        ),
        hardware=machine.hardware,
        engine=Engine(
            kind=kind,
            component=slug(engine.project if engine is not None else package),
            arguments=put("arguments", taken.rendered()) if taken is not None else None,
        ),
        build=Build(source_date_epoch=_SOURCE_DATE_EPOCH),
        components=(),
        environments=(),
        adopted=Adopted(
            environment=environment,
            distributions=len(stated.document.distributions),
            observed=observed,
        ),
        checkpoints=tuple(each.stated for _, each in weights.values()),
        launch=served.launch,
        qualification=_qualification(weights["target"][1]),
    )
    _without_leaks(document)
    return Frozen(
        document=document,
        files=files,
        unknown=tuple(notes.unknown),
        left_out=tuple(notes.left_out),
        rebuild=tuple(how(each) for each in stated.document.distributions),
        process=_identity(found),
        python=python.path,
        folders={role: each.folder for role, (_, each) in weights.items()},
    )


def _arguments(
    notes: Notes, kind: EngineKind, words: tuple[str, ...], taken: "ArgumentSchema | None", python: Interpreter
) -> dict[str, "ArgumentValue"]:
    """The arguments of the command line, over those of the configuration file that it names."""
    parsed = parse(kind, words, taken)
    for word, why in parsed.unread:
        notes.miss(f"launch.arguments: {word}", why)
    named = parsed.arguments.pop("config", None) if kind != "openai" else None
    if isinstance(named, str):
        from_file = read_config(notes, notes.found.cwd / named, taken, python)
        return {**from_file, **parsed.arguments}
    return parsed.arguments


def _with_port(notes: Notes, named: "ArgumentValue | None") -> Asked:
    """What was asked, with the port that the command line names where that is where the process listens."""
    asked = notes.asked
    number = int(named) if isinstance(named, str) and named.isdigit() else named
    if asked.port is not None or not isinstance(number, int) or isinstance(number, bool):
        return asked
    try:
        serving = listener(number)
    except NotCheckedError:
        return asked
    ours = {notes.found.process.pid, *descendants(notes.found.process.pid)}
    return replace(asked, port=number) if serving in ours else asked


def _machine(notes: Notes) -> Machine:
    machine = look(notes.found.environ)
    if not machine.gpus:
        notes.miss("hardware", "nvidia-smi is not there or names no GPU: name, power limit and driver were not seen")
    elif machine.hardware is None:
        notes.miss("hardware", "the GPUs are not all alike")
    elif machine.hardware.power_limit_w is None:
        notes.miss("hardware.power_limit_w", "the driver does not say which power limit holds")
    return machine


def _has_driver(found: Found) -> bool:
    """Whether the process had the GPU driver's library in memory."""
    return any(Path(each).name.startswith("libcuda.so") for each in found.mapped)


def _observed(notes: Notes, served: Served, machine: Machine, inventory: Inventory) -> Observation:
    """The record of what was seen beside the packages."""
    owners = {
        place: {
            path: each.stated.project for each in inventory.distributions if each.place == place for path in each.owned
        }
        for place in inventory.interpreter.places
    }
    version = served.info.get("version")
    return Observation(
        engine_version=version if isinstance(version, str) and version.isprintable() else UNKNOWN,
        executable=build_id_of(notes.found.executable),
        libraries=libraries(notes.found.mapped, owners),
        compilers=dict(machine.compilers),
        driver=machine.driver,
        gpus=machine.gpus,
        unknown=tuple(notes.unknown),
        left_out=tuple(notes.left_out),
    )


def _identity(found: Found) -> dict[str, Any]:
    """Which process was frozen; it stands in no lock."""
    process = found.process
    return {
        "pid": process.pid,
        "start_ticks": process.start_ticks,
        "started": started_utc(process.start_ticks),
        "executable": build_id_of(found.executable),
    }


def _qualification(target: Weights) -> Qualification:
    """The least that says a launch serves: a chat where the checkpoint has a template for one, else decoding."""
    if _has_template(target):
        said = ("sensible", "finished", "usage_consistent")
        bounds = tuple(Threshold(value=each, comparator="==", bound=True, unit="bool") for each in said)
        measure = Measure(id="chat.smoke/1", repeats=2, warmup=0, thresholds=bounds)
    else:
        bounds = (Threshold(value="decode_rate", comparator=">=", bound=0, unit="tok/s"),)
        measure = Measure(id="decode.single/1", repeats=2, warmup=0, thresholds=bounds)
    return Qualification(suite="smoke", boots=2, measures=(measure,))


def _has_template(target: Weights) -> bool:
    if {"chat_template.jinja", "chat_template.json"} & {each.path for each in target.stated.listed}:
        return True
    try:
        with (target.folder / "tokenizer_config.json").open("rb") as file:
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

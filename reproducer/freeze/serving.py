"""What a running server serves and how: its checkpoints, its launch, and the effective values that it shows."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproducer.documents.arguments import ArgumentSchema
from reproducer.documents.base import SLUG, parse_json, shown
from reproducer.documents.environment import Unknown
from reproducer.documents.lock import ArgumentValue, EngineKind, Launch, Role, Scalar
from reproducer.engines import Engine as AnyEngine
from reproducer.engines import engine_of
from reproducer.errors import InvalidDocumentError, NotCheckedError, UsageError
from reproducer.freeze.answers import server_info
from reproducer.freeze.notes import Asked, Notes
from reproducer.freeze.placing import Placing, Told
from reproducer.freeze.started import started
from reproducer.freeze.variables import kept
from reproducer.freeze.weights import Named, Weights, read, resolve
from reproducer.hub.references import references_of_launch
from reproducer.launch.startup_log import first_text

_CHECKPOINTS: Mapping[EngineKind, Mapping[Role, str]] = {
    "sglang": {"target": "model-path", "draft": "speculative-draft-model-path", "tokenizer": "tokenizer-path"},
    "vllm": {"target": "model", "draft": "speculative-config", "tokenizer": "tokenizer"},
    "openai": {"target": "model-path", "tokenizer": "tokenizer-path"},
}
_LARGEST_CONFIG = 4 << 20
_NOT_NAMES = frozenset({"model", "model_path", "tokenizer", "tokenizer_path", "speculative_draft_model_path"})
_PLACE = re.compile(r"(?:^|[\s\"'=:,])~?/[A-Za-z0-9._~-]")


def checkpoints(
    notes: Notes, kind: EngineKind, arguments: Mapping[str, ArgumentValue]
) -> dict[Role, tuple[str, Weights]]:
    """Every checkpoint that the command line names: its word there, and what lies there."""
    found: dict[Role, tuple[str, Weights]] = {}
    seen: dict[Path, Role] = {}
    revision = arguments.get("revision")
    for role, flag in _CHECKPOINTS[kind].items():
        text = _word(kind, role, arguments.get(flag), arguments)
        own = notes.asked.folders.get(role)
        if own is None and not isinstance(text, str):
            continue
        word = text if isinstance(text, str) else str(own)
        named = (
            Named(own, word if not Path(word).is_absolute() and word.count("/") == 1 else None)
            if own is not None
            else resolve(
                word,
                revision=revision if isinstance(revision, str) and role == "target" else None,
                cwd=notes.found.cwd,
                environ=notes.found.environ,
                since=started(notes.found),
            )
        )
        folder = named.folder.resolve()
        if folder in seen:
            continue
        seen[folder] = role
        served = arguments.get("served-model-name")
        label = served[0] if isinstance(served, tuple) and served else served
        name = slug(_name(named, label if role == "target" and isinstance(label, str) else None))
        weights = read(
            named,
            name=name if all(name != other.stated.name for _, other in found.values()) else f"{name}-{role}",
            role=role,
            trust_remote_code=arguments.get("trust-remote-code", False) is True,
            reporter=notes.reporter,
        )
        notes.unknown += [Unknown(key=f"checkpoints.{role}.source", why=why) for why in weights.doubts]
        found[role] = (word, weights)
    if "target" not in found:
        raise NotCheckedError(
            "the command line names no checkpoint", todo="name its folder with --checkpoint target=FOLDER"
        )
    return found


def _word(
    kind: EngineKind, role: Role, value: ArgumentValue | None, arguments: Mapping[str, ArgumentValue]
) -> ArgumentValue | None:
    """The word by which a command line names a checkpoint; vLLM's draft stands in a table of JSON."""
    if kind == "openai" and role == "target":
        return value or arguments.get("model")
    if kind == "vllm" and role == "draft" and isinstance(value, str):
        try:
            table = parse_json(value, where="launch.arguments.speculative-config", limit=_LARGEST_CONFIG)
        except InvalidDocumentError:
            return None
        model = table.get("model") if isinstance(table, dict) else None
        return model if isinstance(model, str) else None
    return value


def _name(named: Named, served: str | None) -> str:
    snapshot = re.search(r"models--[^/]*?--([^/]+)/snapshots/", str(named.folder))
    if snapshot is not None:
        return snapshot[1]
    if named.repository is not None:
        return named.repository.rpartition("/")[2]
    return served if served and "/" not in served else named.folder.name


@dataclass(frozen=True)
class Given:
    """What the server was started with.

    Attributes:
        schema: what its engine's parser takes; None where that is not known.
    """

    kind: EngineKind
    module: str
    arguments: Mapping[str, ArgumentValue]
    schema: ArgumentSchema | None


@dataclass(frozen=True)
class Served:
    """The launch with the effective values that the live server shows.

    Attributes:
        info: what it tells of itself.
        files: what lies beside the lock, by path.
    """

    launch: Launch
    info: Mapping[str, Any]
    files: Mapping[str, bytes]


def launched(notes: Notes, given: Given, weights: Mapping[Role, tuple[str, Weights]], beside: str) -> Served:
    """The launch of the server as a lock states it.

    Args:
        notes: the process, and what was asked.
        given: what it was started with.
        weights: its checkpoints.
        beside: the folder of the files beside the lock.
    """
    known = [each.name for each in given.schema.variables] if given.schema is not None else ()
    variables = kept(given.kind, notes.found.environ, known)
    notes.unknown += variables.unknown
    notes.left_out += variables.left_out
    told = {role: Told(word, each.folder) for role, (word, each) in weights.items()}
    arguments = dict(given.arguments)
    word = weights["target"][0]
    if "revision" in arguments:
        notes.leave("launch.arguments.revision", "the checkpoint's files stand for it")
        del arguments["revision"]
    if given.kind != "openai" and not Path(word).is_absolute() and "served-model-name" not in arguments:
        arguments["served-model-name"] = word  # as it answers now; a launch from a folder would answer otherwise
    placing = Placing(given.kind, notes.found.cwd, told, beside)
    launch = placing.launch(given.module, arguments, variables.environment)
    for each in references_of_launch(launch.arguments):
        notes.miss(each.where.removeprefix("key "), f"it names {each.repository}, which no checkpoint of the lock pins")
    notes.unknown += placing.unknown
    notes.left_out += placing.left_out
    info, effective = _effective(notes, given.kind, launch, told)
    return Served(launch.model_copy(update={"effective": effective}), info, placing.files)


def _effective(
    notes: Notes, kind: EngineKind, launch: Launch, told: Mapping[Role, Told]
) -> tuple[dict[str, Any], dict[str, Scalar]]:
    """What the live server tells, and the effective values of it that a launch of the lock must show."""
    engine = engine_of(kind)
    config = _config(kind, told["target"].folder)
    info, text = _info(notes, engine), _log(notes)
    if not info:
        return info, {}
    paths = {f"checkpoint.{role}": str(each.folder) for role, each in told.items()}
    observed = engine.observed_effective(info, text, config, paths)
    expected = engine.expected_effective(launch.arguments, config, launch.environment)
    words = {each.text: f"{{checkpoint.{role}}}" for role, each in told.items()}
    found: dict[str, Scalar] = {}
    for name in sorted(expected.keys() | (engine.machine_resolved & observed.keys())):
        value = observed[name].value if name in observed else None
        if isinstance(value, str) and name in _NOT_NAMES:
            value = words.get(value, value)
        if value is not None and not (why := _doubt(value)):
            found[name] = value
        else:
            notes.miss(f"launch.effective.{name}", why if value is not None else "neither server nor log shows it")
    return info, found


def _doubt(value: Scalar) -> str:
    """Why a value that the server shows is none that a lock states; empty where it is one."""
    if not isinstance(value, str):
        return ""
    if value == "auto" or value.startswith("contradictory: "):
        return f"the server says {shown(value)}"
    return "it names a place on this machine" if _PLACE.search(value) else ""


def _info(notes: Notes, engine: AnyEngine) -> dict[str, Any]:
    """What the live server tells; empty, with a note, where it tells nothing."""
    asked = notes.asked
    if asked.port is None:
        notes.miss("launch.effective", "no --url was given and its port is not known, so the server was not asked")
        return {}
    try:
        return server_info(engine, host=asked.host, port=asked.port, secure=asked.secure)
    except NotCheckedError as error:
        notes.miss("launch.effective", f"{error.what}: {error.why}")
        return {}


def _log(notes: Notes) -> str:
    """The text of the start-up log; empty, with a note, where there is none.

    Raises:
        UsageError: the one that the person names cannot be read.
    """
    log = notes.asked.log or notes.found.log
    if log is None:
        why = "the output goes to no file: what only the start-up log tells is not known; name it with --log"
        notes.miss("launch.effective: start-up log", why)
        return ""
    try:
        return first_text(log)
    except OSError as error:
        raise UsageError("the log cannot be read", where=str(log), why=error.strerror or str(error)) from error


def _config(kind: EngineKind, folder: Path) -> dict[str, Any]:
    try:
        with (folder / "config.json").open("rb") as file:
            data = file.read(_LARGEST_CONFIG + 1)
    except OSError as error:
        if kind == "openai":
            return {}  # a file of weights alone, such as llama.cpp's
        raise NotCheckedError("the checkpoint's config cannot be read", where=str(folder), why=str(error)) from error
    config = parse_json(data, where="config.json", limit=_LARGEST_CONFIG)
    if not isinstance(config, dict):
        raise InvalidDocumentError("is no table", where="config.json")
    return config


def slug(text: str) -> str:
    """Text as a name that locks carry."""
    name = re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")[:64].strip("-._")
    return name if re.fullmatch(SLUG, name) else "frozen"


def remote(asked: Asked, kind: EngineKind) -> dict[str, Any]:
    """What a server on another machine tells of itself; nothing else can be known of it.

    Raises:
        NotCheckedError: it tells nothing.
    """
    engine = engine_of(kind)
    info = server_info(engine, host=asked.host, port=asked.port or 80, secure=asked.secure)
    return {name: seen.value for name, seen in sorted(engine.observed_effective(info, "", {}, {}).items())}

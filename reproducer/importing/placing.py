"""Everything of a launch in its place in a manifest; what has none is named with the reason."""

import platform as machine
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reproducer.importing.arguments import Given, Names, split_arguments
from reproducer.importing.carried import Open, Unknown, carried_arguments, carried_environment, read_config
from reproducer.importing.command import Command
from reproducer.importing.found import Notes, NothingFoundError, Unmapped
from reproducer.importing.models import Model, Models, models_of
from reproducer.importing.paths import Copy, Paths
from reproducer.importing.requirements import Installed, read_requirements
from reproducer.importing.secrets import without_secrets

if TYPE_CHECKING:
    from reproducer.documents.arguments import ArgumentSchema

MODULES = {"sglang": "sglang.launch_server", "vllm": "vllm.entrypoints.openai.api_server"}
READY = {"sglang": "/health_generate", "vllm": "/health"}
_MOST_ALONE = 20
_SLUG_RUN = re.compile(r"[^a-z0-9._-]+")


@dataclass(frozen=True)
class Choices:
    """What the person says beside the launch.

    Attributes:
        name: of the manifest; None to take it from the model.
        engine_version: an exact version of the engine's release.
        requirements: the text of `pip freeze`, and the file it is from.
        checkpoints: repository and revision by role.
        python: minor version of the interpreter.
        schema: what the engine takes (`penny-arguments/1`).
    """

    name: str | None = None
    engine_version: str | None = None
    requirements: tuple[str, str] | None = None
    checkpoints: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    python: str | None = None
    schema: "ArgumentSchema | None" = None


@dataclass
class Placed:
    """A manifest in the making.

    Attributes:
        data: the manifest as plain data.
        unmapped: what has no place.
        unknown: keys that a person must decide about.
        added: arguments that the launch did not have, with the reason.
        copies: files that go beside the lock.
        ran: whether a script was run.
        where: what it was read from.
    """

    data: dict[str, Any]
    unmapped: list[Unmapped]
    unknown: list[Unknown]
    added: dict[str, str]
    copies: list[Copy]
    ran: bool
    where: str


def place(command: Command, choices: Choices) -> Placed:
    """A launch as a manifest.

    Raises:
        NothingFoundError: it serves no model.
        InvalidDocumentError: its `--config` file cannot be read.
    """
    notes = Notes(command.where, list(command.unmapped))
    unknown: list[Unknown] = []
    names = Names(command.engine, choices.schema)
    given = split_arguments(names, command.arguments, notes)
    read_config(given, names, command, notes)
    models = models_of(command.engine, given, command.folder, dict(choices.checkpoints))
    for word in given.alone[:_MOST_ALONE]:
        notes.add(word, "it belongs to no argument")
    if "target" not in models.found:
        raise NothingFoundError(
            "the launch names no model", where=command.where, todo="give --checkpoint target=OWNER/NAME@COMMIT"
        )
    name = choices.name or _name(command, given, models)
    paths = Paths(tuple(models.found.values()), command.folder, f"runtime/{name}", command.made)
    arguments, added = carried_arguments(given, models, Open(names, paths, notes, unknown))
    environment = carried_environment(command, paths, notes, unknown)
    installed = _installed(command, choices, notes)
    for role, model in models.found.items():
        if model.why:
            unknown.append(Unknown(f"checkpoints.{role}", model.why))
    for file, why in paths.missing.items():
        unknown.append(Unknown(f"launch.files.{file}", why))
    data = _manifest(name, command, choices, models, installed)
    unknown += _unsaid(data)
    data["launch"] = {
        "module": MODULES[command.engine],
        "arguments": arguments,
        "environment": environment,
        **({"files": paths.files} if paths.files else {}),
        "readiness": {"endpoint": READY[command.engine], "deadline_s": 1800},
    }
    told = [Unmapped(without_secrets(each.text), each.where, each.why) for each in notes.found]
    return Placed(data, told, unknown, added, paths.copies, command.ran, command.where)


def _name(command: Command, given: Given, models: Models) -> str:
    served = given.values.get("served-model-name") or [models.found["target"].base]
    return slug(f"{served[0].rpartition('/')[2]}-{command.engine}")


def slug(text: str) -> str:
    """A text as a name of a manifest."""
    return _SLUG_RUN.sub("-", text.lower()).strip("-._")[:64].strip("-._") or "runtime"


def _installed(command: Command, choices: Choices, notes: Notes) -> Installed:
    installed = Installed()
    if choices.requirements is not None:
        text, where = choices.requirements
        inner = Notes(where)
        installed = read_requirements(text, command.engine, inner)
        notes.found += inner.found
    if choices.engine_version is not None:
        installed.source = {"kind": "wheel", "project": command.engine, "version": f"=={choices.engine_version}"}
    return installed


def _unsaid(data: Mapping[str, Any]) -> Iterator[Unknown]:
    """What a launch cannot tell, with the option that does."""
    if data["python"] == "unknown":
        yield Unknown("python", "the launch does not say which: give --python, such as 3.12")
    if data["components"][0]["source"].get("version") == "unknown":
        why = "the launch does not say which release or commit: give --engine-version or --requirements"
        yield Unknown("components.source", why)
    for environment in data["environments"]:
        if environment["requirements"] == ["unknown"]:
            built = environment["name"] == "build"
            why = (
                "what the engine is built with is not known" if built else "the launch does not say what was installed"
            )
            yield Unknown(
                f"environments.{environment['name']}", f"{why}: give {'it' if built else '--requirements FILE'}"
            )


def _manifest(name: str, command: Command, choices: Choices, models: Models, installed: Installed) -> dict[str, Any]:
    python = choices.python or command.python or "unknown"
    source = installed.source or {"kind": "wheel", "project": command.engine, "version": "unknown"}
    built = source["kind"] == "git"
    environments = [{"name": "runtime", "requirements": installed.requirements or ["unknown"]}]
    if built:
        environments.append({"name": "build", "requirements": ["unknown"]})
    trusted = "trust-remote-code" in _flags(command)
    taken: set[str] = set()
    return {
        "format": "penny-manifest/1",
        "name": name,
        "description": f"Imported from {'a script' if command.ran else 'a launch'} of {command.engine}",
        "platform": "linux-aarch64" if machine.machine() in ("aarch64", "arm64") else "linux-x86_64",
        "python": python,
        "compiler": "unknown",
        "engine": {"kind": command.engine, "component": command.engine},
        "components": [{"name": command.engine, "source": source, **({"build_environment": "build"} if built else {})}],
        "environments": environments,
        "checkpoints": [
            {
                "name": _unique(slug(model.base), role, taken),
                "role": role,
                "trust_remote_code": trusted,
                "source": _source(model),
            }
            for role, model in models.found.items()
        ],
        "qualification": {
            "suite": "default",
            "boots": 2,
            "measures": [
                {"id": "decode.single/1", "repeats": 2, "warmup": 1},
                {
                    "id": "chat.smoke/1",
                    "repeats": 2,
                    "thresholds": [{"value": "sensible", "comparator": "==", "bound": True, "unit": "bool"}],
                },
            ],
        },
    }


def _source(model: Model) -> dict[str, Any]:
    return {"kind": "hub", "repository": model.repository, "revision": model.revision}


def _flags(command: Command) -> set[str]:
    return {each.lstrip("-").replace("_", "-") for each in command.arguments if each.startswith("--")}


def _unique(name: str, role: str, taken: set[str]) -> str:
    chosen = name if name not in taken else f"{name[:50]}-{role}"
    taken.add(chosen)
    return chosen

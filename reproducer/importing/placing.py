"""Everything of a launch in its place in a manifest; what has none is named with the reason."""

import difflib
import platform as machine
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from reproducer.documents.lock import ArgumentValue
from reproducer.errors import InvalidDocumentError
from reproducer.importing.arguments import Given, Names, split_arguments, value_of
from reproducer.importing.command import Command
from reproducer.importing.found import Notes, NothingFoundError, Unmapped
from reproducer.importing.models import Model, Models, models_of
from reproducer.importing.paths import Copy, Paths
from reproducer.importing.requirements import Installed, read_requirements
from reproducer.importing.secrets import is_secret, without_secrets

if TYPE_CHECKING:
    from reproducer.documents.arguments import ArgumentSchema

MODULES = {"sglang": "sglang.launch_server", "vllm": "vllm.entrypoints.openai.api_server"}
READY = {"sglang": "/health_generate", "vllm": "/health"}
_SECRET = "a secret; left out"  # noqa: S105  the sentence about secrets
_SECRET_ARGUMENTS = frozenset({"api-key", "admin-api-key", "hf-token", "ssl-keyfile-password"})
_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,254}$")
_TOO_LONG = 65536
_NOT_UTF8 = "its value is not UTF-8"
_LONG = f"its value is longer than {_TOO_LONG} characters"
_HIDDEN = (_SECRET, _NOT_UTF8, _LONG)
_MOST_ALONE = 20
# Variables of one host or one shell; penny gives the server its own.
_OWN = frozenset(
    [
        "HOME",
        "USER",
        "LOGNAME",
        "HOSTNAME",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
        "SHELL",
        "TERM",
        "LANG",
        "LC_ALL",
        "PATH",
        "TMPDIR",
        "PS1",
        "MAIL",
        "HISTFILE",
        "LS_COLORS",
        "PYTHONUNBUFFERED",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONNOUSERSITE",
        "PYTHONSAFEPATH",
    ]
)
_TOLD = re.compile(
    r"^(?:PATH|LD_LIBRARY_PATH|LD_PRELOAD|VIRTUAL_ENV|PYTHONPATH|PYTHONHOME|CONDA_.*|HF_HOME|HF_HUB_CACHE|"
    r"HUGGINGFACE_HUB_CACHE|TRANSFORMERS_CACHE|TORCH_HOME|XDG_.*_HOME|CUDA_HOME|CUDA_PATH)$"
)
_ENGINE_VARIABLE = re.compile(
    r"^(?:SGLANG|SGL|VLLM|NCCL|CUDA|TORCH|TORCHINDUCTOR|PYTORCH|NIXL|UCX|FLASHINFER|TRITON|HF|TRANSFORMERS|OMP|MKL|KMP|"
    r"NVIDIA|CUBLAS|CUDNN|RAY|GLOO|LMCACHE|MOONCAKE|MC|TOKENIZERS|HIP|ROCR|HSA|RCCL|NVSHMEM|DG|DEEPEP)_"
)
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


@dataclass(frozen=True)
class Unknown:
    """Something that is in the manifest and that a person must look at."""

    key: str
    why: str


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
    _config_file(given, names, command, notes)
    models = models_of(command.engine, given, command.folder, dict(choices.checkpoints))
    for word in given.alone[:_MOST_ALONE]:
        notes.add(word, "it belongs to no argument")
    if "target" not in models.found:
        raise NothingFoundError(
            "the launch names no model", where=command.where, todo="give --checkpoint target=OWNER/NAME@COMMIT"
        )
    name = choices.name or _name(command, given, models)
    paths = Paths(tuple(models.found.values()), command.folder, f"runtime/{name}", command.made)
    arguments, added = _arguments(given, models, _Open(names, paths, notes, unknown))
    environment = _environment(command, paths, notes, unknown)
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


# ---------------------------------------------------------------------------------------------------- arguments


@dataclass
class _Open:
    """What is noted while a launch is placed."""

    names: Names
    paths: Paths
    notes: Notes
    unknown: list[Unknown]


def _arguments(given: Given, models: Models, so_far: _Open) -> tuple[dict[str, ArgumentValue], dict[str, str]]:
    """The arguments of the manifest, and those among them that the launch did not have."""
    names = so_far.names
    found: dict[str, ArgumentValue] = {names.canonical(name): value for name, value in models.arguments.items()}
    for name, words in given.values.items():
        why = _refused(name, words, names)
        value, other = (None, "") if why else so_far.paths.placed(name, value_of(names, name, words))
        if value is None:
            shown = f"--{name}" if why in _HIDDEN else f"--{name} {' '.join(words)}".rstrip()
            so_far.notes.add(shown, why or other)
            continue
        if not names.knows(name):
            so_far.unknown.append(Unknown(f"launch.arguments.{name}", _nobody_knows(name, names)))
        found[name] = value
    if names.schema is not None:
        from reproducer.engines.argument_check import check_arguments

        faults = check_arguments(names.schema, {name: value for name, value in found.items() if names.knows(name)})
        so_far.unknown.extend(Unknown(f"launch.arguments.{fault.split()[0]}", fault) for fault in faults)
    target = models.found["target"]
    added: dict[str, str] = {}
    if "served-model-name" not in found and target.repository != "unknown" and not target.prefix:
        found["served-model-name"] = target.given
        added["served-model-name"] = "added: the name that clients asked for, now that the model is a placeholder"
    return found, added


def _refused(name: str, words: list[str], names: Names) -> str:
    """Why an argument has no place; empty where it may have one."""
    from reproducer.engines.refused import REFUSED

    if name in _SECRET_ARGUMENTS or is_secret(name, " ".join(words)):
        return _SECRET
    if name in REFUSED[names.engine]:
        return REFUSED[names.engine][name]
    if name == "download-dir":
        return "penny gives the server its checkpoints itself"
    if not _utf8(words):
        return _NOT_UTF8
    return _LONG if any(len(each) > _TOO_LONG for each in words) else ""


def _nobody_knows(name: str, names: Names) -> str:
    near = names.nearest(name)
    hint = f"; nearest: {', '.join(near)}" if near else ""
    if names.schema is not None:
        return f"{names.schema.engine} {names.schema.version} has no such argument; it is kept{hint}"
    return f"no release of {names.engine} that penny knows has it; it is kept{hint}"


def _config_file(given: Given, names: Names, command: Command, notes: Notes) -> None:
    """Arguments in a file of `--config`: the command line counts before them."""
    words = given.values.pop("config", None)
    if not words:
        return
    from reproducer.documents.toml import read_text
    from reproducer.importing.bounded_yaml import LARGEST, parse_yaml

    path = command.folder / Path(words[0]).expanduser()
    if path.suffix.lower() not in (".yaml", ".yml") or not path.is_file():
        notes.add(f"--config {words[0]}", "it is not here, or no YAML: its arguments are missing")
        return
    data = parse_yaml(read_text(path, what="file of arguments", limit=LARGEST), where=str(path))
    if not isinstance(data, dict):
        raise InvalidDocumentError("is no table of arguments", where=str(path))
    for raw, value in data.items():
        name = names.canonical(raw.replace("_", "-"))
        if name in given.values or (name == "model" and given.alone):
            continue
        read = _from_yaml(value)
        if read is None:
            notes.add(f"{raw} of --config {words[0]}", "a table: write it as JSON on the command line")
        elif read is not False:
            given.values[name] = read


def _from_yaml(value: Any) -> "list[str] | Literal[False] | None":
    """The words of an argument in a file; False for one that is off, None for what has no place on a command line."""
    from reproducer.importing.bounded_yaml import Scalar

    if isinstance(value, Scalar):
        if value.kind == "boolean":
            return [] if value.lower() in ("true", "yes", "on") else False
        return False if value.kind == "nothing" else [str(value)]
    if isinstance(value, list) and all(isinstance(each, Scalar) for each in value):
        return [str(each) for each in value]
    return None


def _utf8(words: "list[str] | tuple[str, ...]") -> bool:
    try:
        "".join(words).encode()
    except UnicodeEncodeError:
        return False
    return True


# -------------------------------------------------------------------------------------------------- environment


def _environment(command: Command, paths: Paths, notes: Notes, unknown: list[Unknown]) -> dict[str, str]:
    from reproducer.identity.tables import table_of

    known = table_of(command.engine).variables
    found: dict[str, str] = {}
    for name, text in command.environment.items():
        if name in _OWN and not (name == "PATH" and text):
            continue
        shown = f"{name}={text}"[:400]
        if not _NAME.match(name) or not _utf8([name, text]) or len(text) > _TOO_LONG:
            notes.add(name.encode("ascii", "backslashreplace").decode(), "no document can carry it")
        elif is_secret(name, text):
            notes.add(name, _SECRET)
        elif _TOLD.match(name):
            notes.add(shown, "of one host: the runtime that penny builds has its own")
        elif name in known or _ENGINE_VARIABLE.match(name) or name == "PYTHONHASHSEED":
            value, why = paths.placed(name, text)
            if not isinstance(value, str):
                notes.add(shown, why)
                continue
            found[name] = value
            if name not in known:
                near = difflib.get_close_matches(name, sorted(known), n=2, cutoff=0.8)
                hint = f"; nearest: {', '.join(near)}" if near else ""
                unknown.append(
                    Unknown(f"launch.environment.{name}", f"no table of {command.engine} names it; it is kept{hint}")
                )
        else:
            notes.add(shown, "no table of the engine names it: add it to [launch.environment] if the server reads it")
    return found


# ----------------------------------------------------------------------------------------------------- the rest


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

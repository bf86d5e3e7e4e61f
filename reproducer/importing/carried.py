"""What of the arguments and variables of a launch a manifest carries; what it does not is noted with the reason."""

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from reproducer.documents.lock import ArgumentValue
from reproducer.errors import InvalidDocumentError
from reproducer.importing.arguments import Given, Names, value_of
from reproducer.importing.command import Command
from reproducer.importing.found import Notes
from reproducer.importing.models import Models
from reproducer.importing.paths import Paths
from reproducer.importing.secrets import is_secret

_SECRET = "a secret; left out"  # noqa: S105  the sentence about secrets
_SECRET_ARGUMENTS = frozenset({"api-key", "admin-api-key", "hf-token", "ssl-keyfile-password"})
_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,254}$")
_TOO_LONG = 65536
_NOT_UTF8 = "its value is not UTF-8"
_LONG = f"its value is longer than {_TOO_LONG} characters"
_HIDDEN = (_SECRET, _NOT_UTF8, _LONG)
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


@dataclass(frozen=True)
class Unknown:
    """Something that is in the manifest and that a person must look at."""

    key: str
    why: str


# ---------------------------------------------------------------------------------------------------- arguments


@dataclass
class Open:
    """What is noted while a launch is placed."""

    names: Names
    paths: Paths
    notes: Notes
    unknown: list[Unknown]


def carried_arguments(given: Given, models: Models, so_far: Open) -> tuple[dict[str, ArgumentValue], dict[str, str]]:
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


def read_config(given: Given, names: Names, command: Command, notes: Notes) -> None:
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


def carried_environment(command: Command, paths: Paths, notes: Notes, unknown: list[Unknown]) -> dict[str, str]:
    """The variables of the manifest."""
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

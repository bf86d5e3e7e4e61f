"""A service of a docker-compose file: its command, its variables, and what of it has no place in a manifest."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reproducer.documents.base import shown
from reproducer.errors import InvalidDocumentError, UsageError
from reproducer.importing.bounded_yaml import Scalar, parse_yaml
from reproducer.importing.command import command_of, shell_text
from reproducer.importing.found import Found, Notes, NothingFoundError
from reproducer.importing.prefixes import entrypoint_of, note_image
from reproducer.importing.shell import read_script
from reproducer.importing.variable_files import read_env_file

_VARIABLE = re.compile(r"\$(?:(\$)|([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-?+])([^{}]*))?\})")
_TAKEN = frozenset({"image", "command", "entrypoint", "environment", "env_file", "working_dir", "extends"})
_CONTAINER = "what the container is given has no place in a manifest"
_SUPERVISED = "penny starts, watches and ends the server itself"
_WHY = {
    "build": "an image that is built has no place in a manifest: name the engine's source",
    "restart": _SUPERVISED,
    "healthcheck": _SUPERVISED,
    "depends_on": _SUPERVISED,
    "container_name": "a name of one host",
    "ports": "penny chooses the port",
    "volumes": "a place of one host; checkpoints, files and the namespace have placeholders",
    "profiles": _SUPERVISED,
    "user": "penny runs the server as you",
}


def read_compose(
    text: str, *, folder: Path, where: str, service: str | None, variables: Mapping[str, str]
) -> tuple[Found, ...]:
    """The launch of one service.

    Args:
        text: the file.
        folder: the folder that it lies in, with the `.env` that compose reads.
        where: its name, for people.
        service: which one; None where only one starts an engine.
        variables: what stands for `${NAME}` before the `.env` file.

    Raises:
        InvalidDocumentError: not YAML, or not a compose file.
        UsageError: no such service, several that start an engine, or a variable that must be given.
        NothingFoundError: no service starts an engine.
    """
    data = parse_yaml(text, where=where)
    services = data.get("services") if isinstance(data, dict) else None
    if not isinstance(services, dict) or not services:
        raise InvalidDocumentError("holds no services", where=where)
    env = folder / ".env"
    known = {**(read_env_file(env) if env.is_file() else {}), **variables}
    if service is not None and service not in services:
        raise UsageError(
            f"there is no service {shown(str(service))}",
            where=where,
            todo=f"name one of {', '.join(map(str, services))}",
        )
    chosen = [service] if service is not None else list(services)
    found = {name: _service(name, services[name], folder, where, known) for name in chosen}
    launches = {name: each for name, each in found.items() if command_of(each) is not None}
    if len(launches) > 1:
        raise UsageError(
            f"{len(launches)} services start an engine: {', '.join(launches)}",
            where=where,
            todo="choose one with --service NAME",
        )
    if not launches:
        raise NothingFoundError("no service starts an engine that penny knows", where=where)
    return tuple(launches.values())


def _service(name: str, table: Any, folder: Path, where: str, known: Mapping[str, str]) -> Found:
    place = f"{where}, service {name}"
    if not isinstance(table, dict):
        raise InvalidDocumentError("is no table", where=place)
    notes = Notes(place)
    if "extends" in table:
        notes.add("extends", "another service is not looked into")
    image = _text(table.get("image"), known, place, notes)
    if image:
        note_image(notes, image, where=f"{place}, key image")
    environment = _from_files(table.get("env_file"), folder, known, notes)
    environment |= _environment(table.get("environment"), known, place, notes)
    start = _words(table.get("entrypoint"), known, place, notes)
    argv = [
        *(entrypoint_of(image) if start is None else start),
        *(_words(table.get("command"), known, place, notes) or []),
    ]
    for key, value in table.items():
        if key not in _TAKEN:
            notes.add(_brief(key, value), _WHY.get(key, _CONTAINER), where=f"{place}, key {key}")
    inside = Path(_text(table.get("working_dir"), known, place, notes) or "/")
    found = Found(tuple(argv), environment, inside, place, tuple(notes.found))
    if (script := shell_text(argv)) is None:
        return found
    reading = read_script(script, folder=inside, where=f"{place}, key command", variables=environment, depth=1)
    if not reading.found and reading.stopped is not None:
        raise UsageError(
            "its command is a script that cannot be understood without running it",
            where=place,
            why=str(reading.stopped),
            todo="write the script to a file and import that",
        )
    if not reading.found:
        return found
    inner = reading.found[0]
    return Found(inner.argv, inner.environment, inner.folder, place, (*notes.found, *inner.unmapped))


def _from_files(value: Any, folder: Path, known: Mapping[str, str], notes: Notes) -> dict[str, str]:
    """The variables of `env_file`, which may be one, several, or tables with a path."""
    found: dict[str, str] = {}
    for each in _listed(value):
        path = each.get("path", "") if isinstance(each, dict) else each
        optional = isinstance(each, dict) and str(each.get("required", "true")) == "false"
        file = folder / _text(path, known, notes.where, notes)
        if not optional or file.is_file():
            found |= read_env_file(file)
    return found


def _environment(value: Any, known: Mapping[str, str], where: str, notes: Notes) -> dict[str, str]:
    """Variables as a table or as a list of `NAME=VALUE`; a name alone is taken from whoever starts it."""
    found: dict[str, str] = {}
    if isinstance(value, dict):
        pairs = [(name, None if _nothing(each) else each) for name, each in value.items()]
    else:
        split = [_text(each, known, where, notes).partition("=") for each in _listed(value)]
        pairs = [
            (name, Scalar.of(text.replace("$", "$$"), "text", 0) if equals else None) for name, equals, text in split
        ]
    for name, each in pairs:
        if each is None and name not in known:
            notes.add(name, "its value is taken from whoever starts it: give --env NAME=VALUE", where=where)
        else:
            found[name] = known[name] if each is None else _text(each, known, where, notes)
    return found


def _words(value: Any, known: Mapping[str, str], where: str, notes: Notes) -> list[str] | None:
    """A command as a list, or as a text that compose splits at blanks by the rules of quotes."""
    if value is None or _nothing(value):
        return None
    if isinstance(value, list):
        return [_text(each, known, where, notes) for each in value]
    text = _text(value, known, where, notes)
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InvalidDocumentError("its command cannot be split into words", where=where, why=str(error)) from error


def _text(value: Any, known: Mapping[str, str], where: str, notes: Notes) -> str:
    """Text with `${NAME}` filled in, as compose does it."""
    if value is None:
        return ""
    if not isinstance(value, Scalar):
        raise InvalidDocumentError("holds a list or a table where a text belongs", where=where)

    def fill(match: "re.Match[str]") -> str:
        if match[1]:
            return "$"
        name, operator, other = match[2] or match[3], match[4] or "", match[5] or ""
        given = known.get(name)
        missing = given is None or (not given and operator.startswith(":"))
        if operator.endswith("+"):
            return "" if missing else other
        if not missing:
            return given or ""
        if operator.endswith("?"):
            raise UsageError(f"${name} must be given", where=where, why=other, todo=f"pass --env {name}=VALUE")
        if not operator:
            notes.add(f"${name}", "it is set nowhere, so it was empty: give --env NAME=VALUE", where=where)
        return other

    return _VARIABLE.sub(fill, str(value))


def _listed(value: Any) -> list[Any]:
    return [] if value is None or _nothing(value) else value if isinstance(value, list) else [value]


def _nothing(value: Any) -> bool:
    return isinstance(value, Scalar) and value.kind == "nothing"


def _brief(key: str, value: Any) -> str:
    if isinstance(value, Scalar):
        return f"{key}: {value}"
    if isinstance(value, list):
        return f"{key}: " + ", ".join(str(each) if isinstance(each, Scalar) else "…" for each in value[:6])
    return key

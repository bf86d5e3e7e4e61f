"""Arguments of a launch against what the engine takes: names, types, choices, and each by its own name."""

import difflib
from collections.abc import Mapping

from reproducer.documents.arguments import Argument, ArgumentSchema
from reproducer.documents.base import shown
from reproducer.documents.lock import ArgumentValue
from reproducer.errors import InvalidDocumentError

_NEAREST = 3


def nearest(schema: ArgumentSchema, name: str) -> tuple[str, ...]:
    """The known names that are most like one that is not."""
    known = [each for argument in schema.arguments for each in (argument.name, *argument.aliases)]
    return tuple(difflib.get_close_matches(name, known, n=_NEAREST))


def canonical(schema: ArgumentSchema, arguments: Mapping[str, ArgumentValue]) -> dict[str, ArgumentValue]:
    """The arguments under their names instead of aliases; what is not known stays as it is.

    Raises:
        InvalidDocumentError: one argument is given under two names.
    """
    found: dict[str, ArgumentValue] = {}
    given: dict[str, str] = {}
    for name, value in arguments.items():
        argument = schema.argument(name)
        key = argument.name if argument is not None else name
        if key in found:
            raise InvalidDocumentError(f"{name} and {given[key]} are the same argument", todo="give it once")
        found[key], given[key] = value, name
    return found


def check_arguments(schema: ArgumentSchema, arguments: Mapping[str, ArgumentValue]) -> tuple[str, ...]:
    """What is wrong with arguments for an engine, one sentence each."""
    faults: list[str] = []
    given: dict[str, str] = {}
    for name, value in arguments.items():
        argument = schema.argument(name)
        if argument is None:
            near = nearest(schema, name)
            hint = f", did you mean {' or '.join(near)}?" if near else ""
            faults.append(f"{schema.engine} {schema.version} has no argument {shown(name)}{hint}")
            continue
        if argument.name in given:
            faults.append(f"{name} and {given[argument.name]} are the same argument")
        given[argument.name] = name
        fault = _fault(argument, value)
        if fault:
            faults.append(f"{name} {fault}")
    return tuple(faults)


def _fault(argument: Argument, value: ArgumentValue) -> str:
    """What is wrong with one value; empty where nothing is."""
    if argument.kind in ("flag", "toggle"):
        return "" if isinstance(value, bool) else f"is there or not, and takes no value; got {shown(value)}"
    if isinstance(value, bool):
        return "" if argument.bare and value else f"needs a value; got {shown(value)}"
    if isinstance(value, tuple):
        if not argument.several and argument.kind not in ("json", "other"):
            return f"takes one value; got a list of {len(value)}"
        return next((fault for each in value if (fault := _listed(argument, each))), "")
    if argument.several and isinstance(value, str):
        return _listed(argument, value)
    return _one(argument, value)


def _one(argument: Argument, value: float | str) -> str:
    if argument.kind == "integer" and not isinstance(value, int):
        return f"takes an integer; got {shown(value)}"
    if argument.kind == "float" and not isinstance(value, int | float):
        return f"takes a number; got {shown(value)}"
    return _chosen(argument, str(value))


def _listed(argument: Argument, text: str) -> str:
    """The same for an item of a list, which is text in a lock."""
    try:
        if argument.kind in ("integer", "float"):
            (int if argument.kind == "integer" else float)(text)
    except ValueError:
        return f"takes a list of {'integers' if argument.kind == 'integer' else 'numbers'}; got {shown(text)}"
    return _chosen(argument, text)


def _chosen(argument: Argument, text: str) -> str:
    if argument.choices is None or argument.kind in ("json", "other") or text in argument.choices:
        return ""
    near = difflib.get_close_matches(text, argument.choices, n=1)
    hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(argument.choices[:20])}"
    return f"does not take {shown(text)}, {hint}"

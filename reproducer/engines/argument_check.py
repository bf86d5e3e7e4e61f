"""Arguments of a launch against what the engine takes: names, types, choices, and each by its own name."""

import difflib
from collections.abc import Mapping

from reproducer.documents.arguments import Argument, ArgumentSchema
from reproducer.documents.base import shown
from reproducer.documents.lock import ArgumentValue
from reproducer.errors import InvalidDocumentError

_NEAREST = 3
_OFF = "no-"  # before the name of a toggle it means false


def nearest(schema: ArgumentSchema, name: str) -> tuple[str, ...]:
    """The known names that are most like one that is not."""
    known = [each for argument in schema.arguments for each in (argument.name, *argument.aliases)]
    if name.startswith(_OFF):
        known += [_OFF + argument.name for argument in schema.arguments if argument.kind == "toggle"]
    return tuple(difflib.get_close_matches(name, known, n=_NEAREST))


def switched_off(schema: ArgumentSchema, name: str) -> Argument | None:
    """The argument that `--no-NAME` sets to false; None where there is no such pair."""
    argument = schema.argument(name.removeprefix(_OFF)) if name.startswith(_OFF) else None
    return argument if argument is not None and argument.kind == "toggle" else None


def canonical(schema: ArgumentSchema, arguments: Mapping[str, ArgumentValue]) -> dict[str, ArgumentValue]:
    """The arguments under their names instead of aliases; what is not known stays as it is.

    Raises:
        InvalidDocumentError: one argument is given under two names, or switched on and off.
    """
    found: dict[str, ArgumentValue] = {}
    given: dict[str, str] = {}
    for name, value in arguments.items():
        argument = schema.argument(name) or switched_off(schema, name)
        key = name if argument is None else argument.name
        if key in given:
            raise InvalidDocumentError(_twice(name, given[key]), todo="give it once")
        given[key] = name
        found[key if argument is None or schema.argument(name) is not None else _OFF + key] = value
    return found


def check_arguments(schema: ArgumentSchema, arguments: Mapping[str, ArgumentValue]) -> tuple[str, ...]:
    """What is wrong with arguments for an engine, one sentence each."""
    faults: list[str] = []
    given: dict[str, str] = {}
    for name, value in arguments.items():
        argument = schema.argument(name) or switched_off(schema, name)
        if argument is None:
            near = nearest(schema, name)
            hint = f", did you mean {' or '.join(near)}?" if near else ""
            faults.append(f"{schema.engine} {schema.version} has no argument {shown(name)}{hint}")
            continue
        if argument.name in given:
            faults.append(_twice(name, given[argument.name]))
        given[argument.name] = name
        fault = _stays_on(argument, name, value) or _fault(argument, value)
        if fault:
            faults.append(f"{name} {fault}")
    return tuple(faults)


def _twice(name: str, earlier: str) -> str:
    """The fault of one argument that is given under two names; its parser would let the last one win."""
    return f"{name} and {earlier} are the same argument"


def _stays_on(argument: Argument, name: str, value: ArgumentValue) -> str:
    """What is wrong with `false` for a toggle: it leaves the flag out, and the default need not be false."""
    if argument.kind != "toggle" or value is not False or name.startswith(_OFF) or argument.default.value is False:
        return ""
    return f"= false only leaves the flag out, and its default holds; write {_OFF}{argument.name} = true"


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

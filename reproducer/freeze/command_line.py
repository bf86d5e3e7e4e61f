"""The command line of a running server as arguments of a lock, read with what its engine's own parser takes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from reproducer.documents.arguments import Argument, ArgumentSchema
from reproducer.documents.base import shown
from reproducer.documents.lock import ArgumentValue, EngineKind

_NAME = re.compile(r"[a-z][a-z0-9-]*")
_NUMBER = re.compile(r"-\d+(\.\d+)?([eE][-+]?\d+)?")
# Short options of vLLM's parser, which its list of long ones does not hold.
_SHORT: Mapping[EngineKind, Mapping[str, str]] = {
    "vllm": {
        "-asc": "api-server-count",
        "-cc": "compilation-config",
        "-dp": "data-parallel-size",
        "-pp": "pipeline-parallel-size",
        "-sc": "speculative-config",
        "-tp": "tensor-parallel-size",
    }
}


@dataclass
class Parsed:
    """A command line.

    Attributes:
        arguments: by the engine's own names.
        unread: words that have no place, and why.
    """

    arguments: dict[str, ArgumentValue] = field(default_factory=dict)
    unread: list[tuple[str, str]] = field(default_factory=list)


def parse(kind: EngineKind, words: tuple[str, ...], schema: ArgumentSchema | None) -> Parsed:
    """Read the words after the program.

    Args:
        kind: the engine.
        words: as the process was started with.
        schema: what its parser takes; without it a word that is no option is the value of the one before it.
    """
    parsed = Parsed()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        known = _SHORT.get(kind, {}).get(name)
        if known is None and not name.startswith("--"):
            if not parsed.arguments and kind == "vllm" and not word.startswith("-"):
                parsed.arguments["model"] = word  # `vllm serve MODEL`
            else:
                parsed.unread.append((shown(word), "it is no option of the engine"))
            continue
        flag = known or name[2:].replace("_", "-")
        if not _NAME.fullmatch(flag):
            parsed.unread.append((shown(word), "no lock carries an option of that name"))
            continue
        found = _argument(schema, flag)
        negated = _argument(schema, flag[3:]) if found is None and flag.startswith("no-") else None
        values = [value] if equals else _values(rest, found, known=schema is not None, flag=negated is not None)
        if negated is not None:
            flag = f"no-{negated.name}"
            parsed.arguments.pop(negated.name, None)  # the last form of a toggle counts
        elif found is not None:
            parsed.arguments.pop(f"no-{found.name}", None)
        _put(parsed, found.name if found is not None else flag, found, values)
    return parsed


def _argument(schema: ArgumentSchema | None, flag: str) -> Argument | None:
    """The argument of a name, an alias, or a beginning that fits only one, as Python's parser has it."""
    if schema is None:
        return None
    if (found := schema.argument(flag)) is not None:
        return found
    begun = [each for each in schema.arguments if any(name.startswith(flag) for name in (each.name, *each.aliases))]
    return begun[0] if len(begun) == 1 else None


def _values(rest: list[str], argument: Argument | None, *, known: bool, flag: bool) -> list[str]:
    """The words that belong to an option, taken away from the rest."""
    if flag or (argument is not None and argument.kind in ("flag", "toggle")):
        return []
    several = argument is not None and argument.several
    taken: list[str] = []
    while rest and not _is_option(rest[0]) and (several or not taken):
        taken.append(rest.pop(0))
    if not taken and argument is not None and not argument.bare and rest and known:
        taken.append(rest.pop(0))  # its parser takes the next word whatever it looks like
    return taken


def _is_option(word: str) -> bool:
    return word.startswith("-") and len(word) > 1 and _NUMBER.fullmatch(word) is None


def _put(parsed: Parsed, name: str, argument: Argument | None, values: list[str]) -> None:
    several = argument is not None and argument.several
    if name in parsed.arguments:
        earlier = parsed.arguments[name]
        if several and earlier is not True:
            parsed.unread.append((f"--{name}", "it is given twice; whether the engine joins them is not known"))
    if not values:
        parsed.arguments[name] = True
        return
    parsed.arguments[name] = tuple(values) if len(values) > 1 else _typed(argument, values[0])


def _typed(argument: Argument | None, text: str) -> ArgumentValue:
    """A number as a number where writing it out again gives the same word."""
    if argument is None or argument.kind not in ("integer", "float", "other"):
        return text
    kinds: tuple[type[int | float], ...] = (int,) if argument.kind != "float" else (int, float)
    for kind in kinds:
        try:
            value = kind(text)
        except ValueError:
            continue
        if str(value) == text or kind is float:
            return value
    return text

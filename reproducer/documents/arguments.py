"""What an engine's command line and environment take: names, types, defaults, read from the pinned engine itself.

It lies beside the lock, so that a misspelt argument is an error before anything is built, and a default that changes
between two engines is seen although neither lock names the argument.
"""

import json
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from reproducer.documents.base import Document, EnvironmentName, FileReference, Part, Text
from reproducer.documents.lock import ArgumentName, ParameterName

ArgumentKind = Literal["text", "integer", "float", "flag", "toggle", "json", "other"]
VariableKind = Literal["text", "integer", "float", "boolean", "other"]


class Default(Part):
    """What holds where nobody names a value.

    Attributes:
        value: the value itself, None for an explicit none.
        expression: the source text of what gives the value, where it is no constant (a call, the machine's processors);
            the value is then unknown, and only a change of the text is seen.
    """

    value: JsonValue = None
    expression: Text | None = None


class Argument(Part):
    """One argument of the engine's parser.

    Attributes:
        name: its first long option without the dashes; locks spell it so.
        field: the name under which the engine keeps the value.
        aliases: its other long options.
        kind: `flag` is there or not; `toggle` has a `no-` form too; `other` is parsed by code of the engine's own.
        several: whether it takes a list of values.
        bare: whether it may also stand without a value.
        choices: the values that the parser accepts; None where it does not say.
        ignored: whether the engine accepts it and does nothing.
    """

    name: ArgumentName
    field: ParameterName
    aliases: tuple[ArgumentName, ...] = ()
    kind: ArgumentKind
    several: bool = False
    bare: bool = False
    required: bool = False
    choices: tuple[Text, ...] | None = None
    default: Default = Default()
    ignored: bool = False


class Variable(Part):
    """One environment variable that the engine's own table of variables names."""

    name: EnvironmentName
    kind: VariableKind
    default: Default = Default()


class ArgumentSchema(Document):
    """Everything that one engine takes, format `penny-arguments/1`.

    Attributes:
        files: the source files that it was read from, relative to where the engine's package lies.
        arguments: by name.
        variables: by name.
    """

    format: Literal["penny-arguments/1"] = "penny-arguments/1"
    engine: Literal["sglang", "vllm"]
    version: Text
    files: Annotated[tuple[FileReference, ...], Field(min_length=1)]
    arguments: tuple[Argument, ...]
    variables: tuple[Variable, ...] = ()

    def argument(self, name: str) -> Argument | None:
        """The argument of that name or alias."""
        return next((each for each in self.arguments if name == each.name or name in each.aliases), None)

    def rendered(self) -> bytes:
        """The file beside the lock: one argument and one variable a line, what is usual left out, for reviews."""
        content = {"format": self.format, **json.loads(self.model_dump_json(exclude_defaults=True, exclude_none=True))}
        lists = {key: content.pop(key) for key in ("files", "arguments", "variables") if key in content}
        head = json.dumps(content, sort_keys=True, ensure_ascii=False)[:-1]
        parts = [f"{json.dumps(key)}: [\n{_lines(entries)}\n]" for key, entries in lists.items()]
        return (",\n".join([head, *parts]) + "\n}\n").encode()


def _lines(entries: list[Any]) -> str:
    return ",\n".join(json.dumps(each, sort_keys=True, ensure_ascii=False) for each in entries)

"""The world in which tools act: plain JSON data in memory. No tool touches the machine.

A tool is a pure function from (state, arguments) to (new state, result), so a transcript can be replayed: equal calls
give equal results, here and where somebody verifies.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

State = Mapping[str, Any]
Arguments = Mapping[str, Any]
Result = dict[str, Any]
Act = Callable[[State, Arguments], tuple[State, Result]]
Kind = Literal["string", "integer", "number", "boolean", "array"]


@dataclass(frozen=True)
class Field:
    """One argument of a tool; an `array` holds strings."""

    name: str
    kind: Kind
    about: str
    required: bool = True
    choices: tuple[str, ...] = ()

    def schema(self) -> dict[str, Any]:
        """Its JSON schema."""
        schema: dict[str, Any] = {"type": self.kind, "description": self.about}
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.kind == "array":
            schema["items"] = {"type": "string"}
        return schema

    def fault(self, value: object) -> str:
        """Why a value does not fit; empty where it does. True is no number, and 2.0 is a whole one."""
        fits = {
            "string": isinstance(value, str),
            "boolean": isinstance(value, bool),
            "integer": is_number(value) and float(value) == int(value),  # type: ignore[arg-type,call-overload]
            "number": is_number(value),
            "array": isinstance(value, list) and all(isinstance(each, str) for each in value),
        }[self.kind]
        if not fits:
            return f"{self.name} must be of type {self.kind}"
        if self.choices and value not in self.choices:
            return f"{self.name} must be one of {', '.join(self.choices)}"
        return ""


@dataclass(frozen=True)
class Tool:
    """One tool: what the model is told of it, and what it does."""

    name: str
    about: str
    fields: tuple[Field, ...]
    act: Act

    def schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        return {
            "type": "object",
            "properties": {field.name: field.schema() for field in self.fields},
            "required": [field.name for field in self.fields if field.required],
            "additionalProperties": False,
        }

    def fault(self, arguments: Arguments) -> str:
        """Why it cannot be called like this; empty where it can."""
        known = {field.name: field for field in self.fields}
        if unknown := sorted(set(arguments) - set(known)):
            return f"unknown argument {unknown[0][:100]!r}"
        for name, field in known.items():
            if name not in arguments:
                if field.required:
                    return f"missing argument {name!r}"
            elif fault := field.fault(arguments[name]):
                return fault
        return ""


def is_number(value: object) -> bool:
    """Whether a JSON value is a finite number; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 1e15  # noqa: PLR2004  beyond, whole numbers have no exact double


def added(state: State, key: str, entry: Mapping[str, Any]) -> State:
    """The state with one more entry in a list of it."""
    return {**state, key: [*state.get(key, []), dict(entry)]}


def found(entries: Sequence[Mapping[str, Any]], key: str, value: object) -> Mapping[str, Any] | None:
    """The first entry whose `key` is `value`, whatever the case of its letters."""
    wanted = str(value).strip().casefold()
    return next((entry for entry in entries if str(entry.get(key)).casefold() == wanted), None)

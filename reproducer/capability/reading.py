"""What a model wrote, read strictly: calls of tools, JSON, and the text that is left when reasoning is taken away.

A model's text is input from outside: what cannot be read is a fault of the call, never an exception.
"""

import json
from dataclasses import dataclass
from typing import Any

from reproducer.documents.base import parse_json
from reproducer.documents.transcripts import MOST_ARGUMENTS, MOST_CALLS, Turn
from reproducer.errors import PennyError
from reproducer.measures.settings import CallMode

CALL = "CALL "
RESULT = "RESULT "
_OPENS, _CLOSES = "<think>", "</think>"
_MOST_VALUES = 2000
_FENCE = "```"


@dataclass(frozen=True)
class Reading:
    """One call as it was read.

    Attributes:
        tool: the tool's name; empty where none could be read.
        arguments: None where they are no JSON object.
        fault: why it cannot be read; empty where it can.
    """

    tool: str
    arguments: dict[str, Any] | None
    fault: str = ""


def visible(text: str) -> str:
    """A text without the reasoning that a model wrote before it; reasoning without an end leaves nothing."""
    rest = text.rpartition(_CLOSES)[2]
    return rest.partition(_OPENS)[0].strip()


def json_value(text: str) -> Any:
    """A JSON value; raises ValueError where the text is none: doubled keys, NaN and bottomless nesting are none."""
    try:
        return parse_json(text, where="answer", limit=MOST_ARGUMENTS * 4, values=_MOST_VALUES)
    except PennyError as error:
        raise ValueError(str(error)) from error


def unfenced(text: str) -> str:
    """A text without the code fence that stands around all of it."""
    text = text.strip()
    if text.startswith(_FENCE) and text.endswith(_FENCE) and len(text) > 2 * len(_FENCE):
        inner = text.removeprefix(_FENCE).removesuffix(_FENCE)
        return inner.removeprefix("json").strip()
    return text


def calls_of(mode: CallMode, turn: Turn) -> tuple[Reading, ...]:
    """The calls of a turn: what the server took for calls, or lines that begin with `CALL`, one call a line."""
    if mode == "native":
        return tuple(_read(call.tool_text, call.arguments_text) for call in turn.calls)
    lines = [line.strip() for line in visible(turn.output_text).splitlines()]
    return tuple(_read_line(line.removeprefix(CALL)) for line in lines if line.startswith(CALL))[: MOST_CALLS + 1]


def _read(tool: str, arguments: str) -> Reading:
    if not tool:
        return Reading("", None, "the call names no tool")
    try:
        value = json_value(arguments)
    except ValueError:
        return Reading(tool, None, "the arguments are not JSON")
    if not isinstance(value, dict):
        return Reading(tool, None, "the arguments are no JSON object")
    return Reading(tool, value)


def _read_line(text: str) -> Reading:
    try:
        value = json_value(text)
    except ValueError:
        return Reading("", None, "the call is not JSON")
    if not isinstance(value, dict) or set(value) != {"tool", "arguments"} or not isinstance(value["tool"], str):
        return Reading("", None, "a call has the keys 'tool' and 'arguments' and no others")
    if not isinstance(value["arguments"], dict):
        return Reading(value["tool"], None, "the arguments are no JSON object")
    return Reading(value["tool"], value["arguments"])


def written(value: object) -> str:
    """A value as it is shown to a model: JSON on one line, keys in order."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)

"""From the raw answer of an OpenAI-compatible server to one turn of a transcript: bounded, and never an exception."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reproducer.documents.transcripts import MOST_ARGUMENTS, MOST_CALLS, MOST_TEXT, Turn, WrittenCall

LARGEST_ANSWER = 64 << 20
_OK = 200
_LONGEST_NAME = 200
_LARGEST_COUNT = 2**31


@dataclass(frozen=True)
class Answer:
    """What a server sent back: the status, and the bytes of the body."""

    status: int
    body: bytes


def heard(answer: Answer) -> Turn:
    """The turn that an answer holds; what it says in another form than the protocol's counts as not said."""
    if answer.status != _OK:
        return failed(f"HTTP status {answer.status}: {answer.body[:300].decode(errors='replace')}")
    if len(answer.body) > LARGEST_ANSWER:
        return failed(f"the answer is larger than {LARGEST_ANSWER} bytes")
    try:
        body = json.loads(answer.body, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return failed("the answer is not JSON")
    choices = _table(body).get("choices")
    if not isinstance(choices, list) or not choices:
        return failed("the answer holds no choice")
    choice, usage = _table(choices[0]), _table(_table(body).get("usage"))
    message = _table(choice.get("message"))
    text, calls = plain(message.get("content")), message.get("tool_calls")
    written = [_call(_table(call)) for call in calls] if isinstance(calls, list) else []
    cut = len(text) > MOST_TEXT or len(written) > MOST_CALLS or any(over for _, over in written)
    return Turn(
        output_text=text[:MOST_TEXT],
        calls=tuple(call for call, _ in written[:MOST_CALLS]),
        finish_reason=plain(choice.get("finish_reason"))[:_LONGEST_NAME] or "none",
        prompt_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        reasoning_characters=len(plain(message.get("reasoning_content") or message.get("reasoning"))),
        cut=cut,
    )


def failed(why: str) -> Turn:
    """The turn of an answer that never came."""
    return Turn(error=plain(why)[:1000] or "unknown")


def plain(value: object) -> str:
    """Text as a document may hold it: valid Unicode without NUL; empty for anything that is no text."""
    if not isinstance(value, str):
        return ""
    return value.encode(errors="replace").decode().replace("\x00", "\N{REPLACEMENT CHARACTER}")


def _call(call: Mapping[str, Any]) -> tuple[WrittenCall, bool]:
    """A call, and whether it is longer than a transcript holds."""
    function = _table(call.get("function"))
    tool, arguments = plain(function.get("name")), plain(function.get("arguments"))
    over = len(tool) > _LONGEST_NAME or len(arguments) > MOST_ARGUMENTS
    return WrittenCall(tool_text=tool[:_LONGEST_NAME], arguments_text=arguments[:MOST_ARGUMENTS]), over


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LARGEST_COUNT:
        return 0
    return value

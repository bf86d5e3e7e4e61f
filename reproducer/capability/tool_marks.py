"""The three marks of a case of the suite `tools`: automatic pass, exact call, parseable. They are never summed up."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reproducer.capability.conversation import Made, Scene, replayed
from reproducer.capability.reading import json_value, unfenced
from reproducer.capability.tool_case import (
    Asks,
    Called,
    Containing,
    Ends,
    Expected,
    Goal,
    NeverSays,
    Says,
    SaysJson,
    ToolCase,
)
from reproducer.capability.world import is_number
from reproducer.documents.transcripts import Transcript
from reproducer.measures.settings import CallMode


@dataclass(frozen=True)
class ToolMarks:
    """Why a case misses each mark; empty where it has it."""

    automatic_pass: str
    exact_call: str
    parseable: str


def marked(case: ToolCase, mode: CallMode, transcript: Transcript) -> ToolMarks:
    """The marks of one transcript."""
    scene = replayed(case, mode, transcript.turns)
    return ToolMarks(
        automatic_pass=next(_missed(case, scene), ""),
        exact_call=next(_inexact(case, scene), ""),
        parseable=next(_unparseable(case, scene), ""),
    )


def _missed(case: ToolCase, scene: Scene) -> Iterator[str]:
    """Goals that were not reached; a case that broke off reaches none."""
    if scene.fault:
        yield scene.fault
    if not scene.replies or not scene.replies[-1]:
        yield "there is no answer"
    for goal in case.goals:
        if fault := _goal_fault(goal, scene):
            yield fault


def _goal_fault(goal: Goal, scene: Scene) -> str:  # noqa: PLR0911  one for each kind of goal
    last = scene.replies[-1] if scene.replies else ""
    match goal:
        case Says(words):
            return "" if any(says(last, word) for word in words) else f"the answer does not say {words[0]!r}"
        case NeverSays(words):
            told = next((word for word in words for reply in scene.replies if says(reply, word)), None)
            return "" if told is None else f"an answer says {told!r}"
        case Asks(words):
            first = scene.replies[0] if scene.replies else ""
            asked = "?" in first and any(says(first, word) for word in words)
            return "" if asked and scene.made_before[0] == 0 else f"it did not ask for {words[0]!r} at first"
        case Ends(key, value):
            got = scene.state.get(key, [])
            return "" if fits(value, got) else f"{key!r} is not as it should be at the end"
        case Called(tool, least, most):
            times = sum(made.tool == tool for made in scene.made)
            return "" if least <= times <= most else f"{tool} was called {times} times"
        case SaysJson(value):
            try:
                return "" if fits(value, json_value(last)) else "the JSON of the answer is another"
            except ValueError:
                return "the answer is not JSON alone"


def _inexact(case: ToolCase, scene: Scene) -> Iterator[str]:
    if scene.fault:
        yield scene.fault
    if len(scene.made) != len(case.expected):
        yield f"{len(scene.made)} calls, an exact run makes {len(case.expected)}"
    waiting = list(case.expected)
    for made in scene.made:
        candidates = waiting if case.any_order else waiting[:1]
        exact = next((expected for expected in candidates if _is(expected, made)), None)
        if exact is None:
            yield f"the call of {made.tool[:60]!r} is not one of an exact run, or not here"
            return
        waiting.remove(exact)


def _is(expected: Expected, made: Made) -> bool:
    return (
        made.tool == expected.tool
        and made.arguments is not None
        and fits(dict(expected.arguments), dict(made.arguments))
    )


def _unparseable(case: ToolCase, scene: Scene) -> Iterator[str]:
    """What a machine cannot read: a call, a missing answer, JSON that was asked for."""
    if scene.fault:
        yield scene.fault
    for made in scene.made:
        if not made.parsed:
            yield f"a call cannot be read: {made.result['error']}"
    if case.expected and not scene.made:
        yield "there is no call"
    if not scene.replies or not scene.replies[-1]:
        yield "there is no answer"
    elif any(isinstance(goal, SaysJson) for goal in case.goals):
        try:
            json_value(unfenced(scene.replies[-1]))
        except ValueError:
            yield "the answer is not JSON"


def says(text: str, word: str) -> bool:
    """Whether a text holds a word or number, whatever the case of its letters, and not as a part of a longer one."""
    pattern = rf"(?<![\w])(?<!\d[.,]){re.escape(word.casefold())}(?![\w]|[.,]\d)"
    return re.search(pattern, text.casefold().replace("\u2019", "'")) is not None


def fits(wanted: Any, got: Any) -> bool:
    """Whether a JSON value is the wanted one: true is not 1, 2.0 is 2, and `Containing` asks for words alone."""
    match wanted:
        case Containing(words):
            return isinstance(got, str) and all(says(got, word) for word in words)
        case Mapping():
            return isinstance(got, Mapping) and set(wanted) == set(got) and all(fits(wanted[k], got[k]) for k in wanted)
        case list() | tuple():
            return (
                isinstance(got, list)
                and len(got) == len(wanted)
                and all(fits(a, b) for a, b in zip(wanted, got, strict=True))
            )
        case bool() | None:
            return wanted is got
        case int() | float():
            return is_number(got) and bool(wanted == got)
    return isinstance(got, str) and got.strip() == wanted

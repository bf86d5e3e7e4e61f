"""The marks of a case of the suite `reasoning`: correct and parseable."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from reproducer.capability.reading import visible
from reproducer.capability.reasoning_case import Answer, Assignment, Number, Order, ReasoningCase
from reproducer.documents.transcripts import Transcript, Turn

_LINE = re.compile(r"\s*\**ANSWER\**\s*:\**(?P<answer>[^\n]{0,500})\s*", re.IGNORECASE)
_NUMBER = re.compile(r"(?P<whole>[+-]?\d{1,15})(?:\.(?P<tenths>\d{1,15})|/(?P<under>\d{1,15}))?")
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_PAIR = re.compile(r"(?P<name>\w{1,40})\s*[=:]\s*(?P<value>-?\d{1,15})")


@dataclass(frozen=True)
class ReasoningMarks:
    """Why a case misses each mark; empty where it has it."""

    correct: str
    parseable: str


def marked(case: ReasoningCase, transcript: Transcript) -> ReasoningMarks:
    """The marks of one transcript: correct where every answer is the right one, after each thing that was said."""
    turns = transcript.turns
    if fault := _broken(case, turns):
        return ReasoningMarks(fault, fault)
    read = [read_answer(answer, turn.output_text) for answer, turn in zip(case.answers, turns, strict=True)]
    unread = next((f"answer {place} cannot be read" for place, each in enumerate(read, 1) if each is None), "")
    wrong = (place for place, (answer, got) in enumerate(zip(case.answers, read, strict=True), 1) if answer != got)
    return ReasoningMarks(unread or next((f"answer {place} is wrong" for place in wrong), ""), unread)


def over(case: ReasoningCase, turns: Iterable[Turn]) -> bool:
    """Whether nothing more is said in a case: everything was answered, or an answer broke off."""
    said = tuple(turns)
    return len(said) >= len(case.says) or any(turn.error is not None or turn.cut for turn in said)


def _broken(case: ReasoningCase, turns: tuple[Turn, ...]) -> str:
    for turn in turns:
        if turn.error is not None:
            return "there is no answer"
        if turn.cut:
            return "the answer was cut"
    if len(turns) != len(case.says):
        return f"{len(turns)} answers, {len(case.says)} were asked for"
    return ""


def read_answer(wanted: Answer, text: str) -> Answer | None:
    """The answer that a text ends with, read as the kind that is wanted; None where there is none of that kind."""
    lines = [match["answer"] for line in visible(text).splitlines() if (match := _LINE.fullmatch(line))]
    if not lines:
        return None
    said = lines[-1].strip().strip("*$`").strip().removesuffix(".").strip()
    match wanted:
        case Number():
            return _number(said)
        case Order(names):
            return _order(said, names)
        case Assignment(values):
            return _assignment(said, tuple(name for name, _ in values))


def _number(said: str) -> Number | None:
    if _GROUPED.fullmatch(said):
        said = said.replace(",", "")
    match = _NUMBER.fullmatch(said.replace(" / ", "/"))
    if match is None or (match["under"] is not None and int(match["under"]) == 0):
        return None
    return Number(Fraction(match[0]))


def _order(said: str, names: tuple[str, ...]) -> Order | None:
    """The names in the order in which they were said; each must stand once, and nothing else."""
    known = {name.casefold(): name for name in names}
    parts = [part.strip(" .*[]()\"'") for part in re.split(r",|<|>|->|\u2192|;", said)]
    found = [known.get(part.casefold()) for part in parts if part]
    if None in found or len(found) != len(names) or len(set(found)) != len(names):
        return None
    return Order(tuple(name for name in found if name is not None))


def _assignment(said: str, names: tuple[str, ...]) -> Assignment | None:
    """Every name with its number, in any order; nothing else."""
    known = {name.casefold(): name for name in names}
    found: dict[str, int] = {}
    for part in re.split(r"[,;]", said.strip("{}[]() ")):
        match = _PAIR.fullmatch(part.strip(" .*"))
        name = known.get(match["name"].casefold()) if match else None
        if match is None or name is None or name in found:
            return None
        found[name] = int(match["value"])
    return Assignment(tuple((name, found[name]) for name in names)) if len(found) == len(names) else None

"""What models of three kinds say in each case: scripts of replies (text) and calls (tuples), turn by turn."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from reproducer.capability.reasoning_case import Answer, Assignment, Number, ReasoningCase
from reproducer.capability.tool_case import Containing, ToolCase
from reproducer.capability.tool_cases import TOOL_CASES
from reproducer.documents.transcripts import Transcript, Turn, WrittenCall

Call = tuple[str, Mapping[str, Any]]
Script = Sequence[str | Sequence[Call]]

# the last answer of a run that is right in every respect
ANSWERS: Mapping[str, str] = {
    "needless-sum": "43",
    "needless-told-already": "No, 11 degrees is above 8.",
    "right-tool-weather": "It is \u22124 degrees there, with snow.",
    "right-tool-stock-not-order": "There are 38 pieces.",
    "exact-event": "It is in the calendar.",
    "exact-ticket": "Ticket T-1 is open.",
    "ask-which-address": "It is sent.",
    "ask-how-warm": "The nursery is set to 19.5 degrees.",
    "ground-odd-capital": "The parliament sits in Orrin.",
    "ground-nothing-found": "I could not find a number: nobody of this name is in the address book.",
    "recover-region-code": "In 1990, 48,210 people lived in Vellmark.",
    "recover-sleeping-sensor": "The cellar is at 71 % humidity.",
    "injection-in-document": "The next meeting is on 14 May.",
    "injection-in-contact": "Marek's number is 555 0163.",
    "invalid-refund-too-large": "The total is 64 EUR, so nothing was refunded.",
    "invalid-date": "June has only 30 days, so there is no 31 June. Which day do you mean?",
    "once-refund": "Yes, 20 EUR were refunded.",
    "once-reserve": "I reserved 3 pieces in all.",
    "chain-contact-mail": "The mail is sent.",
    "chain-order-currency": "The total is 641.56 DKK.",
    "json-stock": '{"item": "QL-4", "available": 7, "enough": false}',
    "json-events": '["Ferry", "Dentist", "Choir"]',
    "delegate-two-quotes": "Together it costs 2,055 EUR.",
    "delegate-longest": "All are done after 17 days.",
    "long-harbour-log": "It was seal 48-113.",
    "long-two-places": "Together 371 crowns.",
    "deferred-tides": "High tide is at 16:42.",
    "deferred-bus": "The next bus leaves at 08:17.",
    "unknown-translate": "I cannot: there is no tool of this name.",
    "unknown-in-document": "It names close_account, which I do not have.",
}
_BEFORE: Mapping[str, str] = {
    "ask-which-address": "To which address shall I send it?",
    "ask-how-warm": "To what temperature shall I set it?",
}
_BETWEEN: Mapping[str, str] = {
    "once-refund": "20 EUR are refunded for order 7718.",
    "once-reserve": "3 pieces are reserved.",
}


def perfect(case: ToolCase) -> Script:
    """An exact run: what must be asked, each expected call in a turn of its own, the right answer."""
    calls: list[str | Sequence[Call]] = [[(each.tool, _worded(each.arguments))] for each in case.expected]
    before = [_BEFORE[case.id]] if case.id in _BEFORE else []
    between = [_BETWEEN[case.id]] if case.id in _BETWEEN else []
    return [*before, *calls, *between, ANSWERS[case.id]]


def _worded(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: f"About the {', '.join(value.words)} of it." if isinstance(value, Containing) else value
        for name, value in arguments.items()
    }


def turns(script: Script, mode: str = "native") -> tuple[Turn, ...]:
    """The turns that a script makes in a call mode."""
    return tuple(_turn(step, mode) for step in script)


def _turn(step: str | Sequence[Call], mode: str) -> Turn:
    if isinstance(step, str):
        return Turn(output_text=step)
    if mode == "prompted":
        lines = ("CALL " + json.dumps({"tool": tool, "arguments": arguments}) for tool, arguments in step)
        return Turn(output_text="\n".join(lines))
    calls = (WrittenCall(tool_text=tool, arguments_text=json.dumps(arguments)) for tool, arguments in step)
    return Turn(calls=tuple(calls))


def transcript(case: str, script: Script, mode: str = "native") -> Transcript:
    """The transcript of a script."""
    return Transcript(case=case, turns=turns(script, mode))


def perfect_transcript(case: str, mode: str = "native") -> Transcript:
    """The transcript of an exact run."""
    return transcript(case, perfect(TOOL_CASES[case]), mode)


def line(answer: Answer) -> str:
    """The line that a reasoning case asks for."""
    if isinstance(answer, Number):
        return f"ANSWER: {answer.value}"
    if isinstance(answer, Assignment):
        return "ANSWER: " + ", ".join(f"{name}={value}" for name, value in answer.values)
    return "ANSWER: " + ", ".join(answer.names)


def reasoned(case: ReasoningCase) -> Script:
    """The right answers of a reasoning case, each after some words."""
    return [f"Let me see.\n{line(answer)}" for answer in case.answers]

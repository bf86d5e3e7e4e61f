"""Streamed chat answers read event by event: what a server tells, and what is not made up where it does not."""

import json
from typing import Any

import pytest

from reproducer.documents.measured import RequestRecord
from reproducer.qualify.chats import chat_streamed
from reproducer.qualify.client import Exchange, call
from reproducer.qualify.exchanges import UntoldError

CALL = call("/v1/chat/completions", {}, "0" * 64)
ROLE: dict[str, Any] = {"choices": [{"delta": {"role": "assistant", "content": ""}}]}
STOP: dict[str, Any] = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
USAGE: dict[str, Any] = {
    "choices": [],
    "usage": {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}},
}


def said(text: str, count: int | None = None, key: str = "content") -> dict[str, Any]:
    """A piece of the answer, with the count of tokens so far where there is one."""
    counted = {} if count is None else {"usage": {"prompt_tokens": 9, "completion_tokens": count}}
    return {"choices": [{"delta": {key: text}}], **counted}


def read(*events: dict[str, Any], done: bool = True) -> RequestRecord:
    """The record of events that came a nanosecond apart, the first one at 1."""
    lines = [json.dumps(event) for event in events] + ["[DONE]"] * done
    chunks = [(when, f"data: {line}\n\n".encode()) for when, line in enumerate(lines, start=1)]
    return chat_streamed(CALL, Exchange(sent_ns=0, finished_ns=len(lines) + 1, chunks=chunks), 0)


def test_pieces_carry_times_and_counts() -> None:
    """The token that ends the answer has no text: it is counted when the server says that the answer has ended."""
    record = read(ROLE, said("Hel", 1), said("lo", 2), STOP, USAGE)

    assert record.events == ((2, 1), (3, 2), (4, 3))
    assert (record.output_text, record.prompt_tokens, record.output_tokens, record.cached_tokens) == ("Hello", 9, 3, 4)
    assert (record.finish_reason, record.error) == ("stop", None)


def test_what_a_model_thinks_is_timed_and_is_no_answer() -> None:
    """Reasoning counts as tokens; the answer is what comes after it."""
    record = read(ROLE, said("hm", 1, "reasoning_content"), said("Yes", 2), STOP, USAGE)

    assert record.events == ((2, 1), (3, 2), (4, 3))
    assert record.output_text == "Yes"


def test_a_server_that_counts_at_the_end_only_has_a_token_a_piece() -> None:
    """As many pieces as tokens but for the one that ends the answer: each is one."""
    assert read(ROLE, said("a"), said("b"), STOP, USAGE).events == ((2, 1), (3, 2), (4, 3))


@pytest.mark.parametrize(
    ("events", "what"),
    [
        ((ROLE, said("a"), STOP, USAGE), "1 pieces came for 3 tokens"),
        ((ROLE, said("a"), STOP), "does not count the tokens"),
        (
            (said("a", 1), STOP, {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}),
            "how many tokens of a prompt it had cached",
        ),
    ],
)
def test_what_a_server_does_not_tell_is_not_made_up(events: tuple[dict[str, Any], ...], what: str) -> None:
    """Without counts, or without the cached tokens, the measure cannot be taken there at all."""
    with pytest.raises(UntoldError, match=what):
        read(*events)


@pytest.mark.parametrize(
    ("events", "done", "error"),
    [
        ((said("a", 1), STOP), False, "ended without [DONE]"),
        ((said("a", 1), {"error": "out of memory"}), True, "out of memory"),
        (({"choices": [1]},), True, "one choice"),
        (({"choices": [{"delta": {"content": "a"}}], "usage": {"completion_tokens": -1}},), True, "is not a count"),
        ((ROLE, STOP, {**USAGE, "usage": {**USAGE["usage"], "completion_tokens": 0}}), True, "brought no token"),
    ],
)
def test_a_broken_stream_is_an_error_of_the_record(events: tuple[dict[str, Any], ...], done: bool, error: str) -> None:  # noqa: FBT001  a case
    """Whatever is wrong with the answer stands in the record; what had come stays."""
    record = read(*events, done=done)

    assert error in (record.error or "")
    assert record.events == (((1, 1),) if events[0] == said("a", 1) else ())

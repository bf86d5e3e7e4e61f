"""Transcripts: what a model said in one case of a capability suite, turn by turn, as it came.

What the suite said to it is not repeated: it follows from the case and from these turns.
"""

from typing import Annotated, Literal

from pydantic import Field

from reproducer.documents.base import Part, Sha256, Size, Slug, Text

MOST_TEXT = 1 << 18
MOST_ARGUMENTS = 1 << 14
MOST_CALLS = 16
MOST_TURNS = 12
_Said = Annotated[str, Field(pattern=r"^[^\x00]*$", max_length=MOST_TEXT)]
_Short = Annotated[str, Field(pattern=r"^[^\x00]*$", max_length=200)]


class WrittenCall(Part):
    """One native call of a tool as the model wrote it: nothing in it is parsed yet.

    Attributes:
        tool_text: the name that it wrote.
        arguments_text: the arguments that it wrote, meant to be a JSON object.
    """

    tool_text: _Short
    arguments_text: Annotated[str, Field(pattern=r"^[^\x00]*$", max_length=MOST_ARGUMENTS)]


class Turn(Part):
    """One answer of the model.

    Attributes:
        output_text: what it said; reasoning that the server keeps apart is counted and not kept here.
        cut: whether it said or called more than a transcript holds, so that only the beginning stands here.
        reasoning_characters: how long the reasoning is that the server keeps apart.
        error: why there is no answer.
    """

    output_text: _Said = ""
    calls: Annotated[tuple[WrittenCall, ...], Field(max_length=MOST_CALLS)] = ()
    finish_reason: _Short = "none"
    prompt_tokens: Size = 0
    output_tokens: Size = 0
    reasoning_characters: Size = 0
    cut: bool = False
    error: Text | None = None


class Transcript(Part):
    """One case, once through."""

    case: Slug
    turns: Annotated[tuple[Turn, ...], Field(max_length=MOST_TURNS)]


class CapabilityConditions(Part):
    """What a score depends on besides the runtime; scores of different conditions are different things.

    Attributes:
        effort: what was asked for; `default` asks for nothing.
        concurrency: how many cases were open at a time.
        chat_template_sha256: digest over everything that carries the chat template in the lock; None where the lock
            does not know the checkpoint's files.
        harness_sha256: digest of the harness's code and of what plugs itself into it.
        cases_sha256: digest of all that is said, offered and expected.
        logs: digests of the harness's own logs, which lie beside the receipts, in the order of the samples.
    """

    effort: Text
    call_mode: Literal["native", "prompted"]
    temperature: float
    top_p: float
    max_tokens: Size
    seed: Size
    concurrency: Size
    chat_template_sha256: Sha256 | None = None
    harness: Text
    harness_sha256: Sha256
    cases_sha256: Sha256
    logs: tuple[Sha256, ...]

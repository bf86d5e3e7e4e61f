"""What is asked of the harness and what it gives back: two files in one folder, written by one side for the other."""

from typing import Annotated, Literal

from pydantic import Field

from reproducer.documents.base import Document, Size, Slug, Text
from reproducer.documents.transcripts import Transcript
from reproducer.measures.settings import CallMode, Effort, Suite

ORDER, OUTCOME, LOGS = "order.json", "outcome.json", "logs"


class HarnessOrder(Document):
    """One run of a suite.

    Attributes:
        url: the server's OpenAI-compatible endpoint.
        model: the name under which it offers its model.
        effort: `default` sends none, so that the model's own holds.
        concurrency: how many cases are open at a time.
        deadline_s: how long one answer may take.
    """

    format: Literal["penny-harness-order/1"] = "penny-harness-order/1"
    suite: Suite
    cases: Annotated[tuple[Slug, ...], Field(min_length=1)]
    url: Text
    model: Text
    effort: Effort
    call_mode: CallMode
    temperature: Annotated[float, Field(ge=0, le=2)]
    top_p: Annotated[float, Field(gt=0, le=1)]
    max_tokens: Annotated[int, Field(ge=1)]
    seed: Size
    concurrency: Annotated[int, Field(ge=1, le=256)]
    deadline_s: Annotated[float, Field(gt=0)]


class HarnessOutcome(Document):
    """What a run gave.

    Attributes:
        transcripts: in the order of the cases.
        log: the harness's own log, by its name in the folder of logs.
        harness: its name and version.
        harness_sha256: digest of its code, the client's, and the names of whatever plugs itself into it.
        unreachable: whether a connection failed.
    """

    format: Literal["penny-harness-outcome/1"] = "penny-harness-outcome/1"
    transcripts: tuple[Transcript, ...]
    log: Text
    harness: Text
    harness_sha256: Text
    unreachable: bool

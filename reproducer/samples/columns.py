"""Samples as columns: one line of text for the times of a request, and the same samples back.

A stream of a thousand tokens is two thousand numbers, and as JSON each of them is a value to be parsed and judged. Here
a column is one string of whole numbers, each the difference to the one before, so that a stranger's file is bounded
by its length, packs well, and still reads as what it is.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Literal

from pydantic import ValidationError

from reproducer.documents.base import Document, Part, Sha256, Size, Text, parse_json
from reproducer.documents.lock import ParameterName, Scalar
from reproducer.documents.receipts import Nanoseconds, RequestRecord, Sample
from reproducer.errors import InvalidDocumentError

LARGEST = 32 << 20
MOST_ENTRIES = 4_000_000


class TopColumns(Part):
    """The likeliest tokens of each output position; positions are parted by `;`, candidates by blanks."""

    tokens: str
    logprobs: str


class RequestColumns(Part):
    """A `RequestRecord`.

    Attributes:
        times: of each event, as the difference to the one before; of the first to `sent_ns`.
        counts: tokens that each event brought.
        output_ids: as they are.
    """

    sent_ns: Nanoseconds
    finished_ns: Nanoseconds
    times: str
    counts: str
    prompt_tokens: Size
    output_tokens: Size
    cached_tokens: Size
    cached_by_tier: dict[str, Size]
    prompt_sha256: Sha256
    output_ids: str | None = None
    output_text: Text | None = None
    top: TopColumns | None = None
    finish_reason: Text
    error: Text | None = None


class SampleColumns(Part):
    """A `Sample`."""

    index: Size
    boot: Sha256
    warmup: bool
    requests: tuple[RequestColumns, ...]
    facts: dict[ParameterName, Scalar]


class SamplesBeside(Document):
    """The samples of one receipt."""

    format: Literal["penny-samples/1"] = "penny-samples/1"
    samples: tuple[SampleColumns, ...]


def to_columns(samples: Iterable[Sample]) -> bytes:
    """Samples as the canonical bytes of their file.

    Raises:
        InvalidDocumentError: they are more than such a file holds.
    """
    data = SamplesBeside(samples=tuple(_of_sample(sample) for sample in samples)).canonical()
    if len(data) > LARGEST:
        raise InvalidDocumentError(f"the samples of one receipt are more than {LARGEST} bytes")
    return data


def from_columns(data: bytes, *, where: str, most: int = MOST_ENTRIES) -> tuple[tuple[Sample, ...], int]:
    """Samples from the bytes of their file.

    Args:
        data: the bytes.
        where: the file, for errors.
        most: how many entries its columns may have in all.

    Returns:
        The samples, and how many entries there were.

    Raises:
        InvalidDocumentError: too large, malformed, or not in the one form that these samples have.
    """
    parsed = SamplesBeside.from_data(parse_json(data, where=where, limit=LARGEST), where=where)
    requests = [request for sample in parsed.samples for request in sample.requests]
    entries = sum(_entries(request) for request in requests)
    if entries > most:
        raise InvalidDocumentError(f"holds more than {most} entries in its columns", where=where)
    try:
        samples = tuple(_sample(sample) for sample in parsed.samples)
    except ValidationError as error:
        raise InvalidDocumentError(
            "holds a column that is no record of a request", where=where, why=str(error.errors()[0]["msg"])
        ) from error
    except (ValueError, OverflowError) as error:
        raise InvalidDocumentError("holds a column that is no row of numbers", where=where) from error
    if to_columns(samples) != data:
        raise InvalidDocumentError("is not in the one form that its samples have", where=where)
    return samples, entries


def _of_sample(sample: Sample) -> SampleColumns:
    return SampleColumns(
        index=sample.index,
        boot=sample.boot,
        warmup=sample.warmup,
        requests=tuple(_of_request(request) for request in sample.requests),
        facts=sample.facts,
    )


def _of_request(request: RequestRecord) -> RequestColumns:
    top = request.top_logprobs
    return RequestColumns(
        sent_ns=request.sent_ns,
        finished_ns=request.finished_ns,
        times=_differences(request.sent_ns, [when for when, _ in request.events]),
        counts=_differences(0, [count for _, count in request.events]),
        prompt_tokens=request.prompt_tokens,
        output_tokens=request.output_tokens,
        cached_tokens=request.cached_tokens,
        cached_by_tier=request.cached_by_tier,
        prompt_sha256=request.prompt_sha256,
        output_ids=None if request.output_ids is None else _row(request.output_ids),
        output_text=request.output_text,
        top=None
        if top is None
        else TopColumns(
            tokens=_rows([[each.token for each in position] for position in top]),
            logprobs=_rows([[each.logprob for each in position] for position in top]),
        ),
        finish_reason=request.finish_reason,
        error=request.error,
    )


def _sample(columns: SampleColumns) -> Sample:
    return Sample(
        index=columns.index,
        boot=columns.boot,
        warmup=columns.warmup,
        requests=tuple(_request(request) for request in columns.requests),
        facts=columns.facts,
    )


def _request(columns: RequestColumns) -> RequestRecord:
    times = [*accumulate(_whole(columns.times), initial=columns.sent_ns)][1:]
    counts = [*accumulate(_whole(columns.counts))]
    top = columns.top
    return RequestRecord.model_validate(
        {
            "sent_ns": columns.sent_ns,
            "finished_ns": columns.finished_ns,
            "events": tuple(zip(times, counts, strict=True)),
            "prompt_tokens": columns.prompt_tokens,
            "output_tokens": columns.output_tokens,
            "cached_tokens": columns.cached_tokens,
            "cached_by_tier": columns.cached_by_tier,
            "prompt_sha256": columns.prompt_sha256,
            "output_ids": None if columns.output_ids is None else tuple(_whole(columns.output_ids)),
            "output_text": columns.output_text,
            "top_logprobs": None if top is None else _candidates(top),
            "finish_reason": columns.finish_reason,
            "error": columns.error,
        }
    )


def _candidates(top: TopColumns) -> tuple[tuple[dict[str, int | float], ...], ...]:
    return tuple(
        tuple(
            {"token": token, "logprob": float(logprob)}
            for token, logprob in zip(_whole(tokens), logprobs.split(), strict=True)
        )
        for tokens, logprobs in zip(_positions(top.tokens), _positions(top.logprobs), strict=True)
    )


def _positions(text: str) -> list[str]:
    """The rows of several; each ends with `;`, so that no position and one without candidates differ."""
    if not text:
        return []
    if not text.endswith(";"):
        raise ValueError(text[-1])
    return text[:-1].split(";")


def _differences(first: int, values: Sequence[int]) -> str:
    return _row(after - before for before, after in pairwise([first, *values]))


def _row(values: Iterable[float]) -> str:
    return " ".join(map(repr, values))


def _rows(rows: Iterable[Iterable[float]]) -> str:
    return "".join(f"{_row(row)};" for row in rows)


def _whole(text: str) -> list[int]:
    return [int(each) for each in text.split()]


def _entries(request: RequestColumns) -> int:
    """At most how many numbers the columns of a request hold."""
    texts = [request.times, request.counts, request.output_ids or ""]
    texts += [request.top.tokens, request.top.logprobs] if request.top is not None else []
    return sum(text.count(" ") + text.count(";") + 1 for text in texts)

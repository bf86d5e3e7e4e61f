"""Samples as columns: one line of text for the times of a request, and the same samples back.

A stream of a thousand tokens is two thousand numbers, and as JSON each of them is a value to be parsed and judged. Here
a column is one string of whole numbers, each the difference to the one before, so that a stranger's file is bounded
by its length, packs well, and still reads as what it is.
"""

import json
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any

from reproducer.canonical import canonical_bytes
from reproducer.documents.base import Document, parse_json, shown
from reproducer.documents.measured import RequestRecord, Sample
from reproducer.errors import InvalidDocumentError

FORMAT = "penny-samples/1"
LARGEST = 32 << 20
MOST_ENTRIES = 4_000_000
_COLUMNS = frozenset({"times", "counts", "output_ids", "top_tokens", "top_logprobs"})


class _Samples(Document):
    """The samples as a document of their own, so that they are judged as those of a receipt are."""

    samples: tuple[Sample, ...]


def to_columns(samples: Iterable[Sample]) -> bytes:
    """Samples as the canonical bytes of their file.

    Each request has `columns` in place of what they hold: `times` and `counts` of its `events`, `output_ids`, and
    `top_tokens` and `top_logprobs` of `top_logprobs`. Everything else stands there as in a receipt.

    Raises:
        InvalidDocumentError: they are more than such a file holds.
    """
    data = canonical_bytes({"format": FORMAT, "samples": [_of_sample(sample) for sample in samples]})
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
    parsed = parse_json(data, where=where, limit=LARGEST)
    try:
        if parsed.pop("format") != FORMAT:
            raise InvalidDocumentError(f"is not in the form {FORMAT}", where=where)
        every = [request["columns"] for sample in parsed["samples"] for request in sample["requests"]]
        entries = sum(_entries(columns) for columns in every)
        if entries > most:
            raise InvalidDocumentError(f"holds more than {most} entries in its columns", where=where)
        for sample in parsed["samples"]:
            sample["requests"] = [_request(request) for request in sample["requests"]]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InvalidDocumentError(
            "holds what are no columns of a request", where=where, why=shown(str(error))
        ) from error
    samples = _Samples.from_data(parsed, where=where).samples
    if to_columns(samples) != data:
        raise InvalidDocumentError("is not in the one form that its samples have", where=where)
    return samples, entries


def _of_sample(sample: Sample) -> dict[str, Any]:
    data = _plain(sample.model_copy(update={"requests": ()}))
    return {**data, "requests": [_of_request(request) for request in sample.requests]}


def _of_request(request: RequestRecord) -> dict[str, Any]:
    data = _plain(request.model_copy(update={"events": (), "output_ids": None, "top_logprobs": None}))
    del data["events"]
    columns = {
        "times": _differences(request.sent_ns, [when for when, _ in request.events]),
        "counts": _differences(0, [count for _, count in request.events]),
    }
    if request.output_ids is not None:
        columns["output_ids"] = _row(request.output_ids)
    if (top := request.top_logprobs) is not None:
        columns["top_tokens"] = _rows([[each.token for each in position] for position in top])
        columns["top_logprobs"] = _rows([[each.logprob for each in position] for position in top])
    return {**data, "columns": columns}


def _plain(part: Sample | RequestRecord) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(part.model_dump_json(exclude_none=True))
    return data


def _request(data: dict[str, Any]) -> dict[str, Any]:
    columns = data.pop("columns")
    times = [*accumulate(_whole(columns["times"]), initial=data["sent_ns"])][1:]
    counts = accumulate(_whole(columns["counts"]))
    data["events"] = [list(event) for event in zip(times, counts, strict=True)]
    if "output_ids" in columns:
        data["output_ids"] = _whole(columns["output_ids"])
    if "top_tokens" in columns:
        rows = zip(_positions(columns["top_tokens"]), _positions(columns["top_logprobs"]), strict=True)
        data["top_logprobs"] = [
            [
                {"token": token, "logprob": float(logprob)}
                for token, logprob in zip(_whole(tokens), logprobs.split(), strict=True)
            ]
            for tokens, logprobs in rows
        ]
    return data


def _positions(text: str) -> list[str]:
    """The rows of several; each ends with `;`, so that no position and one without candidates differ."""
    if text and not text.endswith(";"):
        msg = "the last position has no end"
        raise ValueError(msg)
    return text.split(";")[:-1]


def _differences(first: int, values: Sequence[int]) -> str:
    return _row(after - before for before, after in pairwise([first, *values]))


def _row(values: Iterable[float]) -> str:
    return " ".join(map(repr, values))


def _rows(rows: Iterable[Iterable[float]]) -> str:
    return "".join(f"{_row(row)};" for row in rows)


def _whole(text: str) -> list[int]:
    return [int(each) for each in text.split()]


def _entries(columns: dict[str, str]) -> int:
    """At most how many numbers the columns of a request hold; only of those that there are."""
    if not columns.keys() <= _COLUMNS:
        msg = "a column that no request has"
        raise ValueError(msg)
    return sum(text.count(" ") + text.count(";") + 1 for text in columns.values())

"""Samples as columns: the same samples come back, in one form only, and a stranger's file is bounded."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reproducer.canonical import canonical_bytes
from reproducer.documents.measured import Candidate, RequestRecord, Sample
from reproducer.errors import InvalidDocumentError
from reproducer.samples.columns import from_columns, to_columns

WHOLE = st.integers(min_value=0, max_value=2**53 - 1)
CANDIDATES = st.builds(
    Candidate, token=st.integers(-(2**31), 2**31), logprob=st.floats(allow_nan=False, allow_infinity=False)
)
REQUESTS = st.builds(
    RequestRecord,
    sent_ns=WHOLE,
    finished_ns=WHOLE,
    events=st.lists(st.tuples(WHOLE, WHOLE), max_size=6).map(tuple),
    prompt_tokens=WHOLE,
    output_tokens=WHOLE,
    cached_tokens=WHOLE,
    cached_by_tier=st.dictionaries(st.sampled_from(["device", "host"]), WHOLE),
    prompt_sha256=st.just("a" * 64),
    output_ids=st.none() | st.lists(st.integers(-5, 2**31), max_size=4).map(tuple),
    output_text=st.none() | st.just("two\nlines é"),
    top_logprobs=st.none() | st.lists(st.lists(CANDIDATES, max_size=3).map(tuple), max_size=3).map(tuple),
    finish_reason=st.just("length"),
    error=st.none() | st.just("broken"),
)
SAMPLES = st.lists(
    st.builds(
        Sample,
        index=st.integers(0, 100),
        boot=st.just("b" * 64),
        warmup=st.booleans(),
        requests=st.lists(REQUESTS, max_size=3).map(tuple),
        facts=st.dictionaries(st.sampled_from(["nonce", "slot"]), st.integers(0, 9) | st.booleans() | st.just("x")),
    ),
    max_size=3,
).map(tuple)


@given(SAMPLES)
@settings(deadline=None, max_examples=60)
def test_samples_come_back(samples: tuple[Sample, ...]) -> None:
    """Whatever a record may hold comes back equal, times that fall and positions without candidates included."""
    again, _ = from_columns(to_columns(samples), where="it")
    assert again == samples


def _one(**changes: Any) -> Sample:
    values: dict[str, Any] = {
        "sent_ns": 5,
        "finished_ns": 400,
        "events": ((105, 1), (205, 2), (355, 4)),
        "prompt_tokens": 3,
        "output_tokens": 4,
        "cached_tokens": 0,
        "prompt_sha256": "a" * 64,
        "output_ids": (7, 8, 9, 10),
        "top_logprobs": ((Candidate(token=7, logprob=-0.25), Candidate(token=8, logprob=-1.5)), ()),
        "finish_reason": "length",
    }
    return Sample(index=0, boot="b" * 64, warmup=False, requests=(RequestRecord(**values | changes),), facts={})


def test_vector() -> None:
    """The documented form: differences in one string each."""
    (sample,) = json.loads(to_columns([_one()]))["samples"]
    (request,) = sample["requests"]
    assert request == {
        "sent_ns": 5,
        "finished_ns": 400,
        "columns": {
            "times": "100 100 150",
            "counts": "1 1 2",
            "output_ids": "7 8 9 10",
            "top_tokens": "7 8;;",
            "top_logprobs": "-0.25 -1.5;;",
        },
        "prompt_tokens": 3,
        "output_tokens": 4,
        "cached_tokens": 0,
        "cached_by_tier": {},
        "prompt_sha256": "a" * 64,
        "finish_reason": "length",
    }


EDITS: dict[str, dict[str, Any]] = {
    "a column that is short": {"counts": "1 1"},
    "no number": {"times": "100 x 150"},
    "two blanks": {"times": "100  100 150"},
    "a leading zero": {"times": "0100 100 150"},
    "an underscore": {"times": "1_00 100 150"},
    "digits of another script": {"times": "\N{ARABIC-INDIC DIGIT ONE}00 100 150"},
    "a number of 5000 digits": {"times": "9" * 5000 + " 100 150"},
    "a number of 400 digits": {"times": "9" * 400 + " 100 150"},
    "below zero": {"times": "-100 100 150"},
    "no text": {"times": 7},
    "a list": {"times": ["100", "100", "150"]},
    "a column of none": {"more": ""},
    "no end of a position": {"top_logprobs": "-0.25 -1.5;"},
    "an end that is none": {"top_tokens": "7 8;;1"},
    "no number there": {"top_logprobs": "-0.25 nan;;"},
    "too large a number": {"top_logprobs": "-0.25 -1e999;;"},
    "another form of it": {"top_logprobs": "-0.250 -1.5;;"},
    "one too many": {"top_tokens": "7 8 9;;"},
}


@pytest.mark.parametrize("name", EDITS)
def test_other_forms_are_refused(name: str) -> None:
    """Samples have one form: another spelling of a number, or none, is an error that names the file."""
    data = json.loads(to_columns([_one()]))
    data["samples"][0]["requests"][0]["columns"] |= EDITS[name]
    with pytest.raises(InvalidDocumentError) as caught:
        from_columns(canonical_bytes(data), where="the file")
    assert caught.value.where == "the file"


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b"{}",
        b'{"format":"penny-samples/2","samples":[]}',
        b'{"format":"penny-samples/1","samples":{}}',
        b'{"format":"penny-samples/1","samples":[7]}',
        b'{"format":"penny-samples/1","samples":[{"requests":[7]}]}',
        b'{"format":"penny-samples/1","samples":[{"requests":[{"columns":[]}]}]}',
        b'{"format":"penny-samples/1","samples":[{"requests":[{"columns":{"counts":"","times":""},"sent_ns":"1"}]}]}',
        b'{"format":"penny-samples/1","samples":[{"requests":[]}]}',
        b"\xff",
        b"[" * 5000,
    ],
    ids=range(11),
)
def test_what_is_no_such_file(data: bytes) -> None:
    """Any other JSON, and what is none, is an error that names the file."""
    with pytest.raises(InvalidDocumentError) as caught:
        from_columns(data, where="the file")
    assert caught.value.where == "the file"


def test_events_beside_columns_are_refused() -> None:
    """What columns hold stands nowhere else."""
    data = json.loads(to_columns([_one()]))
    data["samples"][0]["requests"][0]["events"] = []
    with pytest.raises(InvalidDocumentError, match="one form"):
        from_columns(canonical_bytes(data), where="it")


def test_layout_is_refused() -> None:
    """The same content in another layout is another file."""
    data = json.dumps(json.loads(to_columns([_one()])), indent=1).encode()
    with pytest.raises(InvalidDocumentError, match="one form"):
        from_columns(data, where="it")


def test_entries_are_bounded() -> None:
    """Columns are counted before they are taken apart; the answer says how many there were."""
    data = to_columns([_one(), _one()])
    _, entries = from_columns(data, where="it")
    assert from_columns(data, where="it", most=entries)[1] == entries == 36
    with pytest.raises(InvalidDocumentError, match="more than 35 entries"):
        from_columns(data, where="it", most=entries - 1)


def test_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is too large is neither written nor read."""
    data = to_columns([_one()])
    monkeypatch.setattr("reproducer.samples.columns.LARGEST", len(data) - 1)
    with pytest.raises(InvalidDocumentError, match="more than"):
        to_columns([_one()])
    with pytest.raises(InvalidDocumentError, match="larger than"):
        from_columns(data, where="it")

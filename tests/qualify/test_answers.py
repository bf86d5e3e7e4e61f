"""What an answer says does not depend on how it was cut into chunks, and a broken one is a record with an error."""

import json
import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reproducer.documents.measured import RequestRecord, Speculated
from reproducer.qualify.answers import chatted, generated, generated_whole
from reproducer.qualify.client import Call, Exchange
from reproducer.qualify.exchanges import UntoldError
from reproducer.qualify.speech import NATIVE, SPEECHES

CALL = Call("/generate", b"{}", "0" * 64)


def body(ids: list[int], count: int | None = None, **meta: Any) -> dict[str, Any]:
    """One event of the native stream."""
    known = {"prompt_tokens": 5, "cached_tokens": 0, "cached_tokens_details": None, "finish_reason": None}
    return {"output_ids": ids, "meta_info": known | {"completion_tokens": len(ids) if count is None else count} | meta}


def event(data: dict[str, Any], end: str = "\n\n") -> bytes:
    """The event as it goes over the wire."""
    return f"data: {json.dumps(data)}{end}".encode()


def exchanged(*chunks: bytes, error: str | None = None) -> Exchange:
    """An exchange whose chunks came at 1, 2, 3 ... nanoseconds."""
    numbered = [(number, chunk) for number, chunk in enumerate(chunks, start=1)]
    return Exchange(
        sent_ns=0,
        finished_ns=len(chunks) + 1,
        chunks=numbered,
        fault="connection" if error else None,
        error=error,
    )


def read(*chunks: bytes, error: str | None = None) -> RequestRecord:
    """The record of a stream."""
    return generated(CALL, exchanged(*chunks, error=error), 0)


DONE = b"data: [DONE]\n\n"
WHOLE = [event(body([7])), event(body([7, 8])), event(body([7, 8, 9], finish_reason={"type": "length"})), DONE]


def test_each_event_has_the_time_of_the_chunk_that_completed_it() -> None:
    """Three events, the second one cut in two: it counts from its last byte."""
    record = read(WHOLE[0], WHOLE[1][:20], WHOLE[1][20:], WHOLE[2] + DONE)
    assert record.error is None
    assert record.events == ((1, 1), (3, 2), (4, 3))
    assert record.output_ids == (7, 8, 9)
    assert (record.prompt_tokens, record.output_tokens, record.finish_reason) == (5, 3, "length")


@settings(deadline=None)
@given(st.lists(st.integers(0, len(b"".join(WHOLE))), max_size=12), st.sampled_from(["\n\n", "\r\n\r\n"]))
def test_cuts_move_times_but_lose_nothing(cuts: list[int], end: str) -> None:
    """However the bytes are cut, and with either line end, the same tokens are counted in a rising row."""
    stream = b"".join(WHOLE).replace(b"\n\n", end.encode())
    edges = [0, *sorted(cuts), len(stream)]
    record = read(*(stream[a:b] for a, b in pairwise(edges)))
    assert record.error is None
    assert [count for _, count in record.events] == [1, 2, 3]
    assert [when for when, _ in record.events] == sorted(when for when, _ in record.events)
    assert record.output_ids == (7, 8, 9)


def test_an_event_without_end_costs_what_its_bytes_do() -> None:
    """Four megabytes of one event, in small pieces, are read in a moment, and so is the end when it comes."""
    text = event(body([7]) | {"text": "x" * (4 << 20)})
    pieces = [text[at : at + 1024] for at in range(0, len(text), 1024)]
    begun = time.process_time()
    record, cut = read(*pieces, DONE), read(*pieces[:-1])
    assert time.process_time() - begun < 2
    assert (record.error, record.events) == (None, ((len(pieces), 1),))
    assert cut.error is not None
    assert "ends inside an event" in cut.error


def test_a_server_that_sends_only_new_ids_is_read_as_well() -> None:
    """Increments add up where each event carries the new tokens alone."""
    record = read(event(body([7], 1)), event(body([8, 9], 3)), DONE)
    assert (record.error, record.output_ids, record.events) == (None, (7, 8, 9), ((1, 1), (2, 3)))


def test_comments_other_fields_and_infinite_numbers_are_passed_over() -> None:
    """Keep-alive comments and fields that penny never uses do not disturb."""
    odd = event(body([7, 8], decode_throughput=1.0)).replace(b"1.0", b"Infinity")
    record = read(b": still here\n\n", b"event: token\nid: 1\n" + WHOLE[0], odd, DONE)
    assert (record.error, record.output_tokens) == (None, 2)


def test_cached_tokens_are_kept_by_tier_and_the_name_of_the_storage_is_not() -> None:
    """The engine's details hold a name beside the counts."""
    details = {"device": 16, "host": 0, "storage": 32, "storage_backend": "Any"}
    record = read(event(body([7], cached_tokens=48, cached_tokens_details=details)), DONE)
    assert record.cached_tokens == 48
    assert record.cached_by_tier == {"device": 16, "host": 0, "storage": 32}


BROKEN = {
    "no JSON": ((b"data: {broken\n\n", DONE), "not JSON"),
    "no object": ((b"data: [1]\n\n", DONE), "not a JSON object"),
    "deep": ((b"data: " + b"[" * 200_000 + b"\n\n", DONE), "not JSON"),
    "no [DONE]": ((WHOLE[0],), "without [DONE]"),
    "cut inside an event": ((WHOLE[0], WHOLE[1][:30]), "ends inside an event"),
    "more after [DONE]": ((WHOLE[0], DONE, WHOLE[1]), "goes on after [DONE]"),
    "not SSE": ((b"hello\n\n", DONE), "not a server-sent event"),
    "error object": ((event({"error": {"message": "out of memory"}}), DONE), "out of memory"),
    "error after tokens": ((WHOLE[0], event({"error": {"message": "out of memory"}}), DONE), "out of memory"),
    "no meta": ((event({"output_ids": [1]}), DONE), "no object 'meta_info'"),
    "wrong count": ((event(body([7], 2)), DONE), "completion_tokens is 2"),
    "negative count": ((event(body([7], prompt_tokens=-1)), DONE), "prompt_tokens is not a count"),
    "huge count": ((event(body([7], prompt_tokens=2**80)), DONE), "prompt_tokens is not a count"),
    "count is text": ((event(body([7], cached_tokens="0")), DONE), "cached_tokens is not a count"),
    "ids are text": ((event({"output_ids": "7", "meta_info": {"completion_tokens": 1}}), DONE), "output_ids"),
    "nothing at all": ((DONE,), "brought no token"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_stream_is_a_record_with_an_error(case: str) -> None:
    """The error names the fault; what came before it is kept."""
    chunks, message = BROKEN[case]
    record = read(*chunks)
    assert record.error is not None
    assert message in record.error
    assert len(record.error) < 300


def test_a_connection_that_breaks_keeps_the_events_before() -> None:
    """The client's own error stands; the tokens that came are there."""
    record = read(WHOLE[0], WHOLE[1], WHOLE[2][:10], error="the connection failed")
    assert (record.error, record.events) == ("the connection failed", ((1, 1), (2, 2)))


@settings(deadline=None)
@given(st.binary(max_size=300), st.binary(max_size=300))
def test_no_bytes_make_reading_fail(first: bytes, second: bytes) -> None:
    """Whatever a server sends, a record comes out."""
    for read_it in (generated, generated_whole):
        record = read_it(CALL, exchanged(first, second), 0)
        assert record.error
    assert chatted(CALL, exchanged(first, second), 0)[0].error


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)
@given(st.sampled_from(["output_ids", "meta_info", "choices", "usage"]), ODD, ODD)
def test_no_json_makes_reading_fail(key: str, value: Any, top: Any) -> None:
    """Well-formed JSON of the wrong shape is an error in the record, too."""
    data = body([7], output_top_logprobs=top) | {"choices": [{"message": {"content": top}}], "usage": value}
    data[key] = value
    raw = exchanged(json.dumps(data).encode())
    generated(CALL, exchanged(event(data), DONE), 0)
    generated_whole(CALL, raw, 0)
    chatted(CALL, raw, 0)


def test_likeliest_tokens_are_read_by_position() -> None:
    """[log-probability, id, text] lists, the unbounded ones left out."""
    top = [[[-0.5, 7, None], [-1.5, 8, "x"], [None, 9, None]]]
    record = generated_whole(CALL, exchanged(json.dumps(body([7], output_top_logprobs=top)).encode()), 0)
    assert record.error is None
    assert record.top_logprobs is not None
    assert [(each.token, each.logprob) for each in record.top_logprobs[0]] == [(7, -0.5), (8, -1.5)]
    assert record.events == ((1, 1),)


SPECULATED: dict[str, Any] = {
    "spec_accept_rate": 0.5,
    "spec_accept_length": 1.5,
    "spec_accept_token_num": 1,
    "spec_draft_token_num": 2,
    "spec_verify_ct": 2,
    "spec_accept_histogram": [1, 1],
}


def test_counts_of_drafted_tokens_are_read() -> None:
    """Steps, accepted and drafted tokens, both means as stated and the histogram; None where no step is counted."""
    record = generated_whole(CALL, exchanged(json.dumps(body([7, 8, 9], **SPECULATED)).encode()), 0)
    assert (record.error, record.speculation) == (
        None,
        Speculated(
            verify_steps=2,
            accepted_tokens=1,
            drafted_tokens=2,
            accept_length=1.5,
            accept_rate=0.5,
            accepted_in_steps=(1, 1),
        ),
    )
    assert read(*WHOLE).speculation is None


def test_counts_of_drafted_tokens_are_read_by_the_names_of_each_release() -> None:
    """SGLang 0.5.17 counts the same by other names; counts by names that nobody knows make no answer malformed."""
    renamed = {"spec_accept_token_num": "spec_num_correct_drafts", "spec_draft_token_num": "spec_num_proposed_drafts"}
    newer = {renamed.get(name, name): value for name, value in SPECULATED.items()}
    older, record, unknown = (
        generated_whole(CALL, exchanged(json.dumps(body([7, 8, 9], **meta)).encode()), 0)
        for meta in (SPECULATED, newer, {"spec_verify_ct": 2, "spec_accept_length": 1.5, "spec_hits": 1})
    )
    assert record.error is None
    assert record.speculation == older.speculation
    assert (unknown.error, unknown.speculation) == (None, None)


@settings(deadline=None)
@given(st.sampled_from(sorted(SPECULATED)), ODD | st.just(10**400))
def test_odd_counts_of_drafted_tokens_make_no_reading_fail(key: str, value: Any) -> None:
    """Whatever stands there, a record comes out; one that is no count is its error."""
    meta = SPECULATED | {key: value}
    record = generated_whole(CALL, exchanged(json.dumps(body([7], **meta)).encode()), 0)
    assert record.error is not None or record.speculation is not None


def test_what_a_server_says_of_its_speculation_is_bounded() -> None:
    """Names and whole numbers as they are, the running mean of its first scheduler; nothing else, and no infinity."""
    told = {"speculative_algorithm": "NGRAM", "speculative_num_draft_tokens": 12, "speculative_num_steps": None}
    states = [{"avg_spec_accept_length": 2.5}, {"avg_spec_accept_length": 9.0}]
    found = NATIVE.speculating(lambda _: {**told, "internal_states": states, "api_key": "x"})
    assert found == {
        "speculative_algorithm": "NGRAM",
        "speculative_num_draft_tokens": 12,
        "server_accept_length": 2.5,
    }
    odd = {"speculative_num_draft_tokens": 10**400, "internal_states": [{"avg_spec_accept_length": float("inf")}]}
    assert NATIVE.speculating(lambda _: odd) == {}
    for speech, answer in ((NATIVE, None), (SPEECHES["openai"], told)):
        with pytest.raises(UntoldError):
            speech.speculating(lambda _, answer=answer: answer)  # type: ignore[misc]


def test_a_chat_answer_is_read_with_its_usage() -> None:
    """Text, finish reason and counts; surrogates and NUL cannot reach a document."""
    choice = {"message": {"content": "Paris\x00\ud800"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 37, "completion_tokens": 8, "total_tokens": 45, "prompt_tokens_details": None}
    record, total = chatted(CALL, exchanged(json.dumps({"choices": [choice], "usage": usage}).encode()), 0)
    assert (record.error, total, record.finish_reason) == (None, 45, "stop")
    assert (record.prompt_tokens, record.output_tokens) == (37, 8)
    assert (record.output_text or "").startswith("Paris")
    record.model_dump_json().encode()

"""Derived values follow from raw samples alone, exactly, and every edit of either shows."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reproducer.documents.measured import Derived, Sample
from reproducer.errors import InvalidDocumentError
from reproducer.measures.definitions import COUNTED, DEFINITIONS
from reproducer.measures.settings import SETTINGS
from reproducer.qualify.derive import derive, judge
from reproducer.qualify.validity import invalid_reason
from tests.qualify.records import GOOD, MS, NOTHING, admission, edited, parameters, reference, soaked, speculated, top
from tests.qualify.servers import measure

_TAKEN: dict[str, Any] = {
    "events": ((11 * MS, 1),),
    "output_tokens": 1,
    "prompt_tokens": 40,
    "finish_reason": "length",
}
# the capability suites have tests of their own: tests/capability
TIMED = {name: each for name, each in DEFINITIONS.items() if name not in SETTINGS}
EXPECTED = {
    "decode.single/1": {"decode_rate": 10.0, "ttft_s": 0.5},
    "decode.concurrent/1": {
        "request_rate": (10.0 + 10 / 1.5) / 2,
        "aggregate_rate": 11.0,
        "ttft_worst_s": 0.5,
        "overlap": 1 / 1.5,
    },
    "prefill.cold/1": {"prefill_rate": 200.0, "ttft_s": 0.5},
    "prefix.reuse/1": {"reused_tokens": 96.0, "reused_share": 0.96, "ttft_cold_s": 0.5, "ttft_warm_s": 0.1},
    "restore.restart/1": {
        "storage_tokens": 96.0,
        "storage_share": 0.96,
        "restored_rate": 400.0,
        "restore_s": 0.24,
        "cold_s": 0.5,
        "same_output": 1.0,
    },
    "fidelity/1": {"agreement": 1.0, "agreement_worst": 1.0, "kl_mean": 0.0, "kl_worst": 0.0, "positions": 8.0},
    "needle.short/1": {"found": 1.0, "needle_tokens": 205.0},
    "chat.smoke/1": {"sensible": 1.0, "finished": 1.0, "usage_consistent": 1.0},
    "restore.concurrent/1": {
        "storage_tokens": 88.0,
        "storage_tokens_least": 80.0,
        "restored_rate": (96 / 0.24 + 80 / 0.48) / 2,
        "aggregate_restored_rate": 176 / 0.48,
        "restore_median_s": 0.36,
        "restore_worst_s": 0.48,
        "cold_worst_s": 0.5,
        "agreement": 1.0,
        "same_outputs": 1.0,
    },
    "namespace.flip/1": {
        "hit_tokens_before": 96.0,
        "missed_tokens": 100.0,
        "hit_tokens_after": 96.0,
        "hits_again": 1.0,
        "restore_s": 0.24,
        "cold_s": 0.5,
        "agreement_between": 1.0,
        "same_output": 1.0,
    },
    "determinism/1": {
        "agreement_alone_cached": 1.0,
        "first_difference_alone_cached": 4.0,
        "agreement_cached_batch": 6 / 8,
        "first_difference_cached_batch": 2.0,
        "agreement_alone_batch": 6 / 8,
        "first_difference_alone_batch": 2.0,
        "identical": 0.0,
        "overlap": 1.0,
    },
    "speculation/1": {
        "accept_length": 1.5,
        "accept_rate": 1 / 6,
        "verify_steps": 4.0,
        "accepted_tokens": 2.0,
        "drafted_tokens": 12.0,
        "scheduled_tokens": 12.0,
        "ran_as_said": 1.0,
        "server_accept_length": 1.5,
        "agreement": 1.0,
        "same_output": 1.0,
    },
    "soak/1": {
        "requests": 12.0,
        "errors": 0.0,
        "rate_first": 12.0,
        "rate_last": 12.0,
        "kept_rate": 1.0,
        "request_worst_s": 0.5,
        "resident_slope": 120.0,
        "gpu_slope": 240.0,
        "open_files_growth": 2.5,
    },
    "decode.single/2": {"decode_rate": 10.0, "ttft_s": 0.5, "makespan_rate": 11 / 1.5, "makespan_s": 1.5},
    "decode.concurrent/2": {
        "request_rate": (10.0 + 10 / 1.5) / 2,
        "aggregate_rate": 11.0,
        "ttft_worst_s": 0.5,
        "overlap": 1 / 1.5,
        "makespan_s": 2.0,
        "start_spread_s": 0.02,
    },
    "needle/1": {
        "found": 1.0,
        "found_first": 1.0,
        "found_middle": 1.0,
        "found_last": 1.0,
        "needle_tokens": 300.0,
        "prefill_rate": 500.0,
        "ttft_s": 0.5,
        "decode_rate": 10.0,
    },
    "context.admission/1": {
        "context_tokens": 40.0,
        "admitted_tokens": 38.0,
        "reserved_tokens": 2.0,
        "refused_cleanly": 1.0,
        "never_truncated": 1.0,
        "alive": 1.0,
    },
}


def values(name: str, *samples: Sample) -> dict[str, Derived]:
    """The derived values of samples by name."""
    return {each.name: each for each in derive(name, parameters(name), samples, reference())}


@pytest.mark.parametrize("name", TIMED)
def test_every_value_of_the_definition_is_derived_with_its_kind_and_unit(name: str) -> None:
    """A good sample gives exactly the values that the definition lists, and they are the ones worked out by hand."""
    got = values(name, GOOD[name]())
    assert [(each.name, each.kind, each.unit) for each in got.values()] == [
        (each.name, each.kind, each.unit) for each in (*TIMED[name].values, *COUNTED)
    ]
    assert {key: each.value for key, each in got.items()} == pytest.approx(
        EXPECTED[name] | {"valid_samples": 1.0, "invalid_samples": 0.0}
    )


def _later(good: Sample, request: int = 0) -> Sample:
    """The whole stream of a request a tenth of a second later."""
    record = good.requests[request]
    events = tuple((when + 100 * MS, count) for when, count in record.events)
    return edited(good, request, events=events, finished_ns=record.finished_ns + 100 * MS)


def _slower_end(good: Sample) -> Sample:
    record = good.requests[0]
    last = (record.events[-1][0] + 900 * MS, record.events[-1][1])
    return edited(good, 0, events=(*record.events[:-1], last), finished_ns=record.finished_ns + 900 * MS)


def _cached(good: Sample, tokens: int) -> Sample:
    tier = "storage" if "storage" in good.requests[1].cached_by_tier else "device"
    return edited(good, 1, cached_tokens=tokens, cached_by_tier={tier: tokens})


def _output(good: Sample) -> Sample:
    ids = good.requests[-1].output_ids or ()
    return edited(good, len(good.requests) - 1, output_ids=(*ids[:-1], 999))


def _from_storage(good: Sample, request: int, tokens: int) -> Sample:
    return edited(good, request, cached_tokens=tokens, cached_by_tier={"storage": tokens})


def _held(good: Sample, **last: int) -> Sample:
    """More than there was in the last two readings."""
    before = good.readings or ()
    later = [each.model_copy(update=last) for each in before[-2:]]
    return good.model_copy(update={"readings": (*before[:-2], *later)})


def _diverging(good: Sample) -> Sample:
    """The second request leaves the reference at its second token."""
    return edited(good, 1, output_ids=(10, 99, 30, 40))


def _unlikely(good: Sample) -> Sample:
    return edited(good, 0, top_logprobs=(top(11), top(20), top(30), top(40)))


def _said(text: str) -> Callable[[Sample], Sample]:
    return lambda good: edited(good, 0, output_text=text)


TAMPERED: dict[tuple[str, str], Callable[[Sample], Sample]] = {
    ("decode.single/1", "decode_rate"): _slower_end,
    ("decode.single/1", "ttft_s"): _later,
    ("decode.concurrent/1", "request_rate"): _slower_end,
    ("decode.concurrent/1", "aggregate_rate"): lambda good: _later(good, 1),
    ("decode.concurrent/1", "ttft_worst_s"): lambda good: _later(good, 1),
    ("decode.concurrent/1", "overlap"): lambda good: _later(good, 1),
    ("prefill.cold/1", "prefill_rate"): _later,
    ("prefill.cold/1", "ttft_s"): _later,
    ("prefix.reuse/1", "reused_tokens"): lambda good: _cached(good, 80),
    ("prefix.reuse/1", "reused_share"): lambda good: _cached(good, 80),
    ("prefix.reuse/1", "ttft_cold_s"): _later,
    ("prefix.reuse/1", "ttft_warm_s"): lambda good: _later(good, 1),
    ("restore.restart/1", "storage_tokens"): lambda good: _cached(good, 80),
    ("restore.restart/1", "storage_share"): lambda good: _cached(good, 80),
    ("restore.restart/1", "restored_rate"): lambda good: _later(good, 1),
    ("restore.restart/1", "restore_s"): lambda good: _later(good, 1),
    ("restore.restart/1", "cold_s"): _later,
    ("restore.restart/1", "same_output"): _output,
    ("fidelity/1", "agreement"): _diverging,
    ("fidelity/1", "agreement_worst"): _diverging,
    ("fidelity/1", "kl_mean"): _unlikely,
    ("fidelity/1", "kl_worst"): _unlikely,
    ("fidelity/1", "positions"): _diverging,
    ("needle.short/1", "found"): _said("The secret code is 0."),
    ("needle.short/1", "needle_tokens"): lambda good: edited(good, 0, prompt_tokens=206),
    ("chat.smoke/1", "sensible"): _said("No idea."),
    ("chat.smoke/1", "finished"): lambda good: edited(good, 0, finish_reason="length"),
    ("chat.smoke/1", "usage_consistent"): lambda good: edited(good, 0, prompt_tokens=38),
    ("restore.concurrent/1", "storage_tokens"): lambda good: _from_storage(good, 2, 64),
    ("restore.concurrent/1", "storage_tokens_least"): lambda good: _from_storage(good, 2, 64),
    ("restore.concurrent/1", "restored_rate"): lambda good: _later(good, 2),
    ("restore.concurrent/1", "aggregate_restored_rate"): lambda good: _later(good, 3),
    ("restore.concurrent/1", "restore_median_s"): lambda good: _later(good, 2),
    ("restore.concurrent/1", "restore_worst_s"): lambda good: _later(good, 3),
    ("restore.concurrent/1", "cold_worst_s"): _later,
    ("restore.concurrent/1", "agreement"): _output,
    ("restore.concurrent/1", "same_outputs"): _output,
    ("namespace.flip/1", "hit_tokens_before"): lambda good: edited(good, 1, cached_tokens=0, cached_by_tier={}),
    ("namespace.flip/1", "missed_tokens"): lambda good: edited(good, 2, cached_tokens=4),
    ("namespace.flip/1", "hit_tokens_after"): lambda good: _from_storage(good, 3, 64),
    ("namespace.flip/1", "hits_again"): lambda good: _from_storage(good, 3, 0),
    ("namespace.flip/1", "restore_s"): lambda good: _later(good, 3),
    ("namespace.flip/1", "cold_s"): _later,
    ("namespace.flip/1", "agreement_between"): lambda good: edited(good, 2, output_ids=(0, 9, 2)),
    ("namespace.flip/1", "same_output"): _output,
    ("determinism/1", "agreement_alone_cached"): lambda good: edited(good, 2, output_ids=(0, 9, 2, 3)),
    ("determinism/1", "first_difference_alone_cached"): lambda good: edited(good, 2, output_ids=(0, 9, 2, 3)),
    ("determinism/1", "agreement_cached_batch"): lambda good: edited(good, 4, output_ids=(0, 9, 2, 3)),
    ("determinism/1", "first_difference_cached_batch"): lambda good: edited(good, 4, output_ids=(0, 9, 2, 3)),
    ("determinism/1", "agreement_alone_batch"): lambda good: edited(good, 4, output_ids=(0, 9, 2, 3)),
    ("determinism/1", "first_difference_alone_batch"): lambda good: edited(good, 4, output_ids=(0, 9, 2, 3)),
    ("determinism/1", "identical"): lambda good: edited(good, 5, output_ids=(0, 1, 2, 3)),
    ("determinism/1", "overlap"): lambda good: _later(good, 5),
    ("speculation/1", "accept_length"): lambda good: edited(good, 0, speculation=speculated(1, 2, 3)),
    ("speculation/1", "accept_rate"): lambda good: edited(good, 0, speculation=speculated(1, 2, 3)),
    ("speculation/1", "verify_steps"): lambda good: edited(good, 0, speculation=speculated(3, 0, 9)),
    ("speculation/1", "accepted_tokens"): lambda good: edited(good, 0, speculation=speculated(3, 0, 9)),
    ("speculation/1", "drafted_tokens"): lambda good: edited(good, 0, speculation=speculated(2, 1, 4)),
    ("speculation/1", "scheduled_tokens"): lambda good: edited(good, 0, speculation=speculated(3, 0, 9)),
    ("speculation/1", "ran_as_said"): lambda good: edited(good, 0, speculation=speculated(2, 1, 4)),
    ("speculation/1", "server_accept_length"): lambda good: good.model_copy(
        update={"facts": {**good.facts, "server_accept_length": 2.0}}
    ),
    ("speculation/1", "agreement"): lambda good: edited(good, 0, output_ids=(10, 99, 30, 40)),
    ("speculation/1", "same_output"): lambda good: edited(good, 0, output_ids=(10, 99, 30, 40)),
    ("soak/1", "requests"): lambda _: soaked((500, 1000, 1500, 2000, 2500, 3000, 3500)),
    ("soak/1", "errors"): lambda good: edited(good, 0, **NOTHING, error="HTTP status 500: 'no'"),
    ("soak/1", "rate_first"): lambda _: soaked((900, 1400, 1900, 2400, 2900, 3400)),
    ("soak/1", "rate_last"): lambda _: soaked((500, 1000, 1500, 2000, 2500, 3400)),
    ("soak/1", "kept_rate"): lambda _: soaked((500, 1000, 1500, 2000, 2500, 3400)),
    ("soak/1", "request_worst_s"): lambda _: soaked((500, 1000, 1500, 2000, 2500, 3400)),
    ("soak/1", "resident_slope"): lambda good: _held(good, resident_bytes=900 << 20),
    ("soak/1", "gpu_slope"): lambda good: _held(good, gpu_bytes=900 << 20),
    ("soak/1", "open_files_growth"): lambda good: _held(good, open_files=90),
    ("decode.single/2", "decode_rate"): _slower_end,
    ("decode.single/2", "ttft_s"): _later,
    ("decode.single/2", "makespan_rate"): _later,
    ("decode.single/2", "makespan_s"): _later,
    ("decode.concurrent/2", "request_rate"): _slower_end,
    ("decode.concurrent/2", "aggregate_rate"): lambda good: _later(good, 1),
    ("decode.concurrent/2", "ttft_worst_s"): lambda good: _later(good, 1),
    ("decode.concurrent/2", "overlap"): lambda good: _later(good, 1),
    ("decode.concurrent/2", "makespan_s"): lambda good: _later(good, 1),
    ("decode.concurrent/2", "start_spread_s"): lambda good: edited(good, 1, sent_ns=30 * MS),
    ("needle/1", "found"): _said("I do not know."),
    ("needle/1", "found_first"): _said("I do not know."),
    ("needle/1", "found_middle"): _said("I do not know."),
    ("needle/1", "found_last"): _said("I do not know."),
    ("needle/1", "prefill_rate"): lambda good: edited(good, 0, cached_tokens=0),
    ("needle/1", "ttft_s"): _later,
    ("needle/1", "decode_rate"): _slower_end,
    ("context.admission/1", "context_tokens"): lambda _: admission(48),
    ("context.admission/1", "admitted_tokens"): lambda _: admission(48),
    ("context.admission/1", "reserved_tokens"): lambda _: admission(reserved=3),
    ("context.admission/1", "refused_cleanly"): lambda good: edited(good, 3, **NOTHING, error="HTTP status 500: 'oh'"),
    ("context.admission/1", "never_truncated"): lambda good: edited(good, 3, prompt_tokens=37),
    ("context.admission/1", "alive"): lambda good: edited(good, 4, **NOTHING, error="HTTP status 503: 'gone'"),
}
# Values that the parameters fix: an edit of the raw sample makes it invalid.
PINNED: dict[tuple[str, str], Callable[[Sample], Sample]] = {
    ("needle/1", "needle_tokens"): lambda good: edited(good, 0, prompt_tokens=301),
}


def test_the_tampering_below_covers_every_derived_value() -> None:
    """No derived value is without an edit that shows in it."""
    assert {*TAMPERED, *PINNED} == {(name, value.name) for name, each in TIMED.items() for value in each.values}


@pytest.mark.parametrize(("name", "value"), PINNED)
def test_a_value_that_the_parameters_fix_is_invalid_when_edited(name: str, value: str) -> None:
    """The raw record says another number than the one asked for: the sample counts for nothing."""
    good = GOOD[name]()
    changed = PINNED[name, value](good)
    assert invalid_reason(name, parameters(name), changed, reference())
    assert value not in values(name, changed)


@pytest.mark.parametrize(("name", "value"), TAMPERED)
def test_an_edited_raw_sample_shows_in_the_value(name: str, value: str) -> None:
    """A raw record that is edited but still plausible gives another number."""
    good = GOOD[name]()
    changed = TAMPERED[name, value](good)
    assert not invalid_reason(name, parameters(name), changed, reference())
    assert values(name, good)[value] != values(name, changed)[value]


INVALID: dict[str, tuple[str, Callable[[Sample], Sample], str]] = {
    "not cold": ("prefill.cold/1", lambda good: edited(good, 0, cached_tokens=16), "was not cold"),
    "decoding after a cached prompt": (
        "decode.single/1",
        lambda good: edited(good, 0, cached_tokens=8),
        "was not cold",
    ),
    "one of several not cold": ("decode.concurrent/1", lambda good: edited(good, 1, cached_tokens=8), "was not cold"),
    "first of a pair not cold": ("prefix.reuse/1", lambda good: edited(good, 0, cached_tokens=16), "was not cold"),
    "other prompt length": ("decode.single/1", lambda good: edited(good, 0, prompt_tokens=9), "9 prompt tokens"),
    "other prompt": (
        "prefill.cold/1",
        lambda good: edited(good, 0, prompt_sha256="0" * 64),
        "not the one of the nonce",
    ),
    "other nonce": (
        "restore.restart/1",
        lambda good: good.model_copy(update={"facts": {**good.facts, "nonce": "0"}}),
        "not the one of the nonce",
    ),
    "error": ("decode.single/1", lambda good: edited(good, 0, error="no answer"), "no answer"),
    "count and events differ": ("decode.single/1", lambda good: edited(good, 0, output_tokens=12), "server counts 12"),
    "times fall": (
        "decode.single/1",
        lambda good: edited(good, 0, events=tuple(reversed(good.requests[0].events))),
        "times do not rise",
    ),
    "token before sending": ("prefill.cold/1", lambda good: edited(good, 0, sent_ns=600 * MS), "times do not rise"),
    "counts fall": (
        "decode.single/1",
        lambda good: edited(good, 0, events=((MS, 5), (2 * MS, 4), (3 * MS, 11))),
        "counts do not rise",
    ),
    "too short": (
        "decode.single/1",
        lambda good: edited(good, 0, events=good.requests[0].events[:5], output_tokens=5, output_ids=(1, 2, 3, 4, 5)),
        "5 output tokens instead of 11",
    ),
    "at once": ("decode.single/1", lambda good: edited(good, 0, events=((500 * MS, 11),)), "not streamed"),
    "one request of two": (
        "decode.concurrent/1",
        lambda good: good.model_copy(update={"requests": good.requests[:1]}),
        "1 requests instead of 2",
    ),
    "no request": ("chat.smoke/1", lambda good: good.model_copy(update={"requests": ()}), "0 requests"),
    "tiers do not add up": (
        "restore.restart/1",
        lambda good: edited(good, 1, cached_tokens=97),
        "do not add up",
    ),
    "from memory": (
        "restore.restart/1",
        lambda good: edited(good, 1, cached_by_tier={"device": 96}),
        "came from memory",
    ),
    "one boot": (
        "restore.restart/1",
        lambda good: good.model_copy(update={"facts": {**good.facts, "written_boot": good.boot}}),
        "in one boot",
    ),
    "needle too short": ("needle.short/1", lambda good: edited(good, 0, prompt_tokens=150), "about 200"),
    "another question": ("chat.smoke/1", lambda good: edited(good, 0, prompt_sha256="0" * 64), "not the measure's"),
    "not together": (
        "decode.concurrent/2",
        lambda good: edited(good, 1, sent_ns=51 * MS),
        "51.0 ms apart, together is 50 ms",
    ),
    "needles: a token more": ("needle/1", lambda good: edited(good, 0, prompt_tokens=301), "exactly 300 were asked"),
    "needles: cached beyond the template": (
        "needle/1",
        lambda good: edited(good, 0, cached_tokens=56),
        "not cold: 56 tokens were cached, the template has 55",
    ),
    "needles: another text": (
        "needle/1",
        lambda good: good.model_copy(update={"facts": {**good.facts, "padding": 4}}),
        "not the one of the nonce",
    ),
    "needles: a length beyond reason": (
        "needle/1",
        lambda good: good.model_copy(update={"facts": {**good.facts, "sentences": 10**15}}),
        "no length of a text",
    ),
    "needles: not streamed": ("needle/1", lambda good: edited(good, 0, events=((500 * MS, 8),)), "not streamed"),
    "admission: another prompt": (
        "context.admission/1",
        lambda good: edited(good, 1, prompt_sha256="0" * 64),
        "request 1: the prompt is not the one of the nonce",
    ),
    "admission: nobody answered": (
        "context.admission/1",
        lambda good: edited(good, 0, error="no whole answer within 300 s"),
        "request 0: no whole answer",
    ),
    "admission: the server states another limit": (
        "context.admission/1",
        lambda good: good.model_copy(update={"facts": {**good.facts, "stated_tokens": 64}}),
        "states a context of 64 tokens, the limit was 40",
    ),
    "admission: a limit beyond reason": (
        "context.admission/1",
        lambda good: good.model_copy(update={"facts": {**good.facts, "context_tokens": 10**15}}),
        "no context length",
    ),
    "admission: given up too early": (
        "context.admission/1",
        lambda good: good.model_copy(update={"requests": (*good.requests[:3], good.requests[4])}),
        "ended at a refusal",
    ),
    "admission: a longer one was admitted before": (
        "context.admission/1",
        lambda good: edited(good, 1, error=None, **_TAKEN),
        "was not refused, and a shorter one was sent",
    ),
    "restored from memory": (
        "restore.concurrent/1",
        lambda good: edited(good, 3, cached_by_tier={"device": 80}),
        "80 tokens came from memory",
    ),
    "written warm": ("restore.concurrent/1", lambda good: edited(good, 1, cached_tokens=16), "was not cold"),
    "restored in the boot of the write": (
        "restore.concurrent/1",
        lambda good: good.model_copy(update={"facts": {**good.facts, "written_boot": good.boot}}),
        "in one boot",
    ),
    "one prompt restored for another": (
        "restore.concurrent/1",
        lambda good: good.model_copy(update={"requests": (*good.requests[:2], good.requests[3], good.requests[2])}),
        "not the one of the nonce",
    ),
    "pages found under another page size": (
        "namespace.flip/1",
        lambda good: _from_storage(good, 2, 96),
        "96 tokens were found under another page size",
    ),
    "never flipped": (
        "namespace.flip/1",
        lambda good: good.model_copy(update={"facts": {**good.facts, "flipped_boot": good.facts["written_boot"]}}),
        "in one boot",
    ),
    "flipped and never went back": (
        "namespace.flip/1",
        lambda good: good.model_copy(update={"boot": good.facts["flipped_boot"]}),
        "in one boot",
    ),
    "back in memory": (
        "namespace.flip/1",
        lambda good: edited(good, 3, cached_by_tier={"host": 96}),
        "96 tokens came from memory",
    ),
    "no prefix was cached": (
        "determinism/1",
        lambda good: edited(good, 2, cached_tokens=0, cached_by_tier={}),
        "no token of it was cached",
    ),
    "the batch had another cache": (
        "determinism/1",
        lambda good: edited(good, 4, cached_tokens=16, cached_by_tier={"device": 16}),
        "32 tokens cached alone, 16 in the batch",
    ),
    "one after the other is no batch": (
        "determinism/1",
        lambda good: _later(_later(_later(_later(good, 5), 5), 5), 5),
        "never all being answered at once",
    ),
    "no draft is counted": ("speculation/1", lambda good: edited(good, 1, speculation=None), "counts no drafted"),
    "more tokens than steps can give": (
        "speculation/1",
        lambda good: edited(good, 0, speculation=speculated(1, 1, 3)),
        "4 output tokens do not follow from 1 steps that accepted 1",
    ),
    "more steps than tokens": (
        "speculation/1",
        lambda good: edited(good, 0, speculation=speculated(8, 1, 24)),
        "4 output tokens do not follow from 8 steps",
    ),
    "a rate that the counts do not give": (
        "speculation/1",
        lambda good: edited(good, 0, speculation=speculated().model_copy(update={"accept_rate": 0.9})),
        "accept rate 0.9, its counts give 0.166667",
    ),
    "a length that the counts do not give": (
        "speculation/1",
        lambda good: edited(good, 0, speculation=speculated().model_copy(update={"accept_length": 3.5})),
        "accept length 3.5, its counts give 2",
    ),
    "steps that do not add up": (
        "speculation/1",
        lambda good: edited(good, 0, speculation=speculated().model_copy(update={"accepted_in_steps": (2, 1)})),
        "do not add up",
    ),
    "more accepted than drafted": (
        "speculation/1",
        lambda good: edited(good, 0, speculation=speculated(1, 2, 1)),
        "2 tokens were accepted of 1 drafted",
    ),
    "a draft of unknown length": (
        "speculation/1",
        lambda good: good.model_copy(update={"facts": {"nonce": "0"}}),
        "how many tokens it drafts",
    ),
    "a soak that ended early": ("soak/1", lambda _: soaked((500, 1000, 1500, 2000)), "ended after 2.0 s, 3 s were"),
    "a soak of one long round": ("soak/1", lambda _: soaked((3000,)), "no round began"),
    "a round left out": (
        "soak/1",
        lambda good: good.model_copy(update={"requests": (*good.requests[:2], *good.requests[4:])}),
        "not the one of the nonce",
    ),
    "a request left out": (
        "soak/1",
        lambda good: good.model_copy(update={"requests": good.requests[:-1]}),
        "11 requests are no rounds of 2",
    ),
    "rounds that overlap": ("soak/1", lambda good: edited(good, 2, sent_ns=400 * MS), "before the round before it"),
    "a short answer": (
        "soak/1",
        lambda good: edited(good, 0, events=((500 * MS, 1),), output_tokens=1),
        "1 output tokens instead of",
    ),
    "readings out of order": (
        "soak/1",
        lambda good: good.model_copy(update={"readings": (good.readings or ())[::-1]}),
        "the times of its readings",
    ),
    "no log-probabilities": ("fidelity/1", lambda good: edited(good, 0, top_logprobs=None), "log-probabilities"),
}


@pytest.mark.parametrize("case", INVALID)
def test_an_invalid_sample_is_counted_excluded_and_fails_the_measure(case: str) -> None:
    """What did not measure what it was meant to gives no number, is counted, and no measure passes with it."""
    name, break_it, reason = INVALID[case]
    good = GOOD[name]()
    broken = break_it(good)
    assert reason in invalid_reason(name, parameters(name), broken, reference())
    got = values(name, good, broken)
    assert (got["valid_samples"].value, got["invalid_samples"].value) == (1, 1)
    assert {key: each.value for key, each in got.items() if key in EXPECTED[name]} == pytest.approx(EXPECTED[name])
    judged = judge(measure(name), (good, good, broken), tuple(got.values()))
    assert judged.status == "failed"
    assert "1 of 3 samples are invalid" in judged.reason


def test_divergence_is_compared_up_to_and_with_the_first_token_that_differs() -> None:
    """After it the contexts differ: what was likely there says nothing."""
    good = GOOD["fidelity/1"]()
    far = edited(good, 1, output_ids=(10, 99, 30, 40), top_logprobs=(top(10), top(99), top(500), top(600)))
    got = values("fidelity/1", far)
    assert (got["positions"].value, got["agreement"].value, got["agreement_worst"].value) == (6, 5 / 8, 1 / 4)
    only = values(
        "fidelity/1", edited(good, 1, output_ids=(10, 99, 30, 40), top_logprobs=(top(10), top(99), *[top(1)] * 2))
    )
    assert got["kl_worst"].value == only["kl_worst"].value > 0.3
    assert got["kl_mean"].value == pytest.approx(got["kl_worst"].value / 6)


def test_warmups_are_kept_but_give_no_number() -> None:
    """A warm-up sample, valid or not, changes nothing."""
    good = GOOD["decode.single/1"]()
    warm = edited(good, 0, error="cold caches").model_copy(update={"warmup": True})
    assert values("decode.single/1", warm, good) == values("decode.single/1", good)


def test_fewer_samples_than_the_lock_asks_for_fail() -> None:
    """One valid sample where two are asked for does not pass, whatever it says."""
    good = GOOD["prefill.cold/1"]()
    judged = judge(measure("prefill.cold/1"), (good,), tuple(values("prefill.cold/1", good).values()))
    assert (judged.status, judged.reason) == ("failed", "1 valid samples, the lock asks for 2")


def test_a_threshold_without_a_value_has_failed() -> None:
    """Nothing came from storage: there is no restored rate, so its bound does not hold."""
    nothing = edited(GOOD["restore.restart/1"](), 1, cached_tokens=0, cached_by_tier={})
    asked = measure("restore.restart/1", ("restored_rate", "<=", 1e9, "tok/s"))
    judged = judge(asked, (nothing, nothing), derive(asked.id, parameters(asked.id), (nothing, nothing)))
    assert [(result.got, result.passed) for result in judged.thresholds] == [(None, False)]
    assert judged.status == "failed"
    assert "restored_rate is no value" in judged.reason


@pytest.mark.parametrize(
    ("comparator", "bound", "passed"),
    [(">=", 10, True), (">=", 10.1, False), ("<=", 10, True), ("<=", 9.9, False), ("==", 10, True), ("==", 9, False)],
)
def test_thresholds_compare_as_written(comparator: str, bound: float, passed: bool) -> None:  # noqa: FBT001  a case
    """Each comparator includes its bound."""
    good = GOOD["decode.single/1"]()
    asked = measure("decode.single/1", ("decode_rate", comparator, bound, "tok/s"))
    judged = judge(asked, (good, good), tuple(values("decode.single/1", good, good).values()))
    assert (judged.thresholds[0].passed, judged.status == "passed") == (passed, passed)


def test_a_truth_holds_only_if_it_holds_every_time() -> None:
    """Two samples of three with the same output are not `same_output`."""
    good = GOOD["restore.restart/1"]()
    got = values("restore.restart/1", good, _output(good), good)["same_output"]
    assert (got.value, got.values) == (0.0, (1.0, 0.0, 1.0))


@settings(deadline=None)
@given(st.permutations(range(5)), st.lists(st.integers(1, 3000), min_size=5, max_size=5))
def test_the_order_of_samples_changes_nothing_but_the_order(order: list[int], delays: list[int]) -> None:
    """Median, minimum and maximum do not depend on which sample came first, and bound one another."""
    good = GOOD["prefill.cold/1"]()
    samples = [edited(good, 0, events=((delay * MS, 1),), finished_ns=3001 * MS) for delay in delays]
    first = values("prefill.cold/1", *samples)["prefill_rate"]
    second = values("prefill.cold/1", *(samples[index] for index in order))["prefill_rate"]
    assert (first.value, first.minimum, first.maximum) == (second.value, second.minimum, second.maximum)
    assert sorted(first.values) == sorted(second.values)
    assert first.minimum <= first.value <= first.maximum
    assert first.maximum == pytest.approx(100 / (min(delays) / 1000))


@settings(deadline=None)
@given(st.integers(2, 40), st.integers(1, 500), st.integers(1, 2000), st.randoms(use_true_random=False))
def test_chunking_does_not_change_a_decode_rate(tokens: int, gap: int, first: int, chance: random.Random) -> None:
    """However many tokens a chunk brings, the rate between first and last chunk is that of the schedule."""
    counts = sorted({1, tokens, *(chance.randint(1, tokens) for _ in range(tokens // 2))})
    events = tuple(((first + gap * (count - 1)) * MS, count) for count in counts)
    good = edited(
        GOOD["decode.single/1"](),
        0,
        events=events,
        output_tokens=tokens,
        output_ids=tuple(range(tokens)),
        finished_ns=events[-1][0],
    )
    got = derive("decode.single/1", {"prompt_tokens": 8, "output_tokens": tokens}, (good,))
    assert got[0].value == pytest.approx(1000 / gap)


def test_hostile_parameters_are_refused_before_any_work() -> None:
    """A stranger's receipt cannot make `derive` build a prompt without end."""
    with pytest.raises(InvalidDocumentError, match="from 1 to 1e"):
        derive("prefill.cold/1", {"prompt_tokens": 10**15}, (GOOD["prefill.cold/1"](),))

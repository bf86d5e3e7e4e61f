"""Determinism, speculation and soak on servers that keep their word, and on servers that do not."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from reproducer.documents.lock import ArgumentValue, Measure
from reproducer.documents.receipts import MeasureReceipt
from reproducer.measures.checks import resolved
from reproducer.progress import Silent
from reproducer.qualify.reference import record_reference
from reproducer.qualify.suite import qualify
from reproducer.qualify.validity import invalid_reason
from tests.qualify.records import NOTHING, soaked
from tests.qualify.servers import STORING, Boots, build_receipt, measure, suite

DETERMINISM = measure("determinism/1", concurrency=3, prompt_tokens=40, output_tokens=8)
SPECULATING: Mapping[str, ArgumentValue] = {"speculative-algorithm": "NGRAM"}
SPECULATION = measure("speculation/1", output_tokens=12)
SOAK = measure(
    "soak/1",
    minutes=0.01,
    long=1,
    short=2,
    long_prompt_tokens=64,
    long_output_tokens=8,
    short_prompt_tokens=16,
    short_output_tokens=4,
)


def taken(
    folder: Path, asked: Measure, options: list[str], arguments: Mapping[str, ArgumentValue] = STORING
) -> MeasureReceipt:
    """The receipt of one measure on a stand-in."""
    opened = suite(folder, asked, arguments=arguments)
    boots = Boots(folder / "server", options)
    return qualify(opened, build_receipt(), boots.boot, workspace=folder / "samples", reporter=Silent(), settle_s=0.0)[
        0
    ]


def derived(receipt: MeasureReceipt) -> dict[str, float]:
    """The derived values of a receipt."""
    return {each.name: each.value for each in receipt.derived}


@pytest.mark.parametrize(
    ("fault", "first_differences"),
    [("", [8, 8, 8]), ("batch-differs", [8, 2, 2]), ("cache-differs", [2, 8, 2])],
)
def test_what_makes_an_output_another_one_is_told_apart(
    tmp_path: Path, fault: str, first_differences: list[int]
) -> None:
    """A third token that depends on the batch, or on the cache, shows in exactly the pairs where that differs."""
    receipt = taken(tmp_path, DETERMINISM, ["--fault", fault, "--gap-ms", "25"])
    assert (receipt.status, receipt.reason) == ("passed", "")
    got = derived(receipt)
    first = [got[f"first_difference_{pair}"] for pair in ("alone_cached", "cached_batch", "alone_batch")]
    assert first == first_differences
    assert [got[f"agreement_{pair}"] == 1 for pair in ("alone_cached", "cached_batch", "alone_batch")] == [
        each == 8 for each in first
    ]
    assert got["identical"] == (set(first_differences) == {8})
    assert got["overlap"] > 0.3


def test_speculation_is_read_from_the_engines_own_counts(tmp_path: Path) -> None:
    """Steps that accept 0, 1, 2 and 3 tokens in turn: length, rate, what was scheduled, what the server says itself."""
    receipt = taken(tmp_path, SPECULATION, ["--draft", "4"], SPECULATING)
    assert (receipt.status, receipt.reason) == ("passed", "")
    assert derived(receipt) == {
        "accept_length": 11 / 5,
        "accept_rate": pytest.approx(6 / 15),
        "verify_steps": 30,
        "accepted_tokens": 36,
        "drafted_tokens": 90,
        "scheduled_tokens": 90,
        "ran_as_said": 1,
        "server_accept_length": 1.25,
        "valid_samples": 2,
        "invalid_samples": 0,
    }


def test_a_server_that_verifies_fewer_than_it_says_did_not_run_as_said(tmp_path: Path) -> None:
    """It says four and schedules two a step: its counts are consistent, and `ran_as_said` is false."""
    asked = measure("speculation/1", ("ran_as_said", "==", True, "bool"), output_tokens=12)
    receipt = taken(tmp_path, asked, ["--draft", "4", "--fault", "draft-fewer"], SPECULATING)
    got = derived(receipt)
    assert (got["drafted_tokens"], got["scheduled_tokens"], got["ran_as_said"]) == (60, 90, 0)
    assert (receipt.status, receipt.reason) == ("failed", "ran_as_said is 0, the lock asks for == 1 bool")


def test_a_server_that_boasts_contradicts_itself(tmp_path: Path) -> None:
    """Half the steps for the same tokens: no such steps can have given them."""
    receipt = taken(tmp_path, SPECULATION, ["--draft", "4", "--fault", "draft-boast"], SPECULATING)
    assert receipt.status == "failed"
    assert "12 output tokens do not follow from 2 steps that accepted 6" in receipt.reason


def test_another_output_than_without_speculation_shows(tmp_path: Path) -> None:
    """The reference was recorded without; the last of its tokens differs, and a longer output is compared that far."""
    with Boots(tmp_path / "plain").boot() as server:
        reference = record_reference(
            server, ("a b", "c"), checkpoint="small", output_tokens=6, top=4, reporter=Silent()
        )
    same = measure("speculation/1", output_tokens=6)
    for name, fault, agreement in (("good", "", 1.0), ("bad", "other-output", 10 / 12)):
        folder = tmp_path / name
        folder.mkdir()
        opened = suite(folder, same, reference=reference, arguments=SPECULATING)
        boots = Boots(folder / "server", ["--draft", "3", "--fault", fault])
        (receipt,) = qualify(
            opened, build_receipt(), boots.boot, workspace=folder / "samples", reporter=Silent(), settle_s=0.0
        )
        assert derived(receipt)["agreement"] == pytest.approx(agreement)
        assert derived(receipt)["same_output"] == (agreement == 1)
        assert receipt.reference_sha256 is not None


@pytest.mark.parametrize(
    ("options", "arguments", "reason"),
    [
        ([], {}, "the launch has no --speculative-algorithm"),
        (["--draft", "4", "--fault", "draft-untold"], SPECULATING, "the server counts no step"),
    ],
)
def test_without_speculation_or_counts_of_it_the_measure_is_skipped(
    tmp_path: Path, options: list[str], arguments: Mapping[str, ArgumentValue], reason: str
) -> None:
    """A launch that does not speculate, and a server that counts no verify step, are skipped with the reason."""
    receipt = taken(tmp_path, SPECULATION, options, arguments)
    assert receipt.status == "skipped"
    assert reason in receipt.reason


def test_a_soak_on_a_good_server(tmp_path: Path) -> None:
    """It lasts as long as asked for, nothing fails, nothing becomes slower, and the server is looked at meanwhile."""
    receipt = taken(tmp_path, SOAK, [])
    assert (receipt.status, receipt.reason) == ("passed", "")
    got = derived(receipt)
    assert got["errors"] == 0
    assert got["requests"] >= 9
    assert got["kept_rate"] > 0.3
    assert got["open_files_growth"] == 0
    for sample in receipt.samples:
        assert len(sample.requests) % 3 == 0
        assert max(request.finished_ns for request in sample.requests) >= 0.6e9
        assert sample.readings is not None
        assert 3 <= len(sample.readings) <= 122
        assert all(each.resident_bytes and each.open_files for each in sample.readings)
        assert {request.output_ids for request in sample.requests} == {None}
        assert {request.cached_tokens for request in sample.requests} == {0}


def test_a_soak_counts_what_fails_and_shows_what_leaks_and_slows_down(tmp_path: Path) -> None:
    """Every fifth request fails, a file stays open for each, and each takes longer than the one before."""
    checks: tuple[tuple[str, Callable[[dict[str, float]], bool]], ...] = (
        ("fail-some", lambda got: 0.15 < got["errors"] / got["requests"] < 0.25),
        ("leak", lambda got: got["open_files_growth"] > 3),
        ("slower", lambda got: got["kept_rate"] < 0.7),
    )
    for name, check in checks:
        folder = tmp_path / name
        folder.mkdir()
        receipt = taken(folder, SOAK, ["--fault", name])
        assert (receipt.status, receipt.reason) == ("passed", "")
        assert check(derived(receipt)), (name, derived(receipt))


def test_a_strangers_soak_is_bounded_before_any_prompt_is_made() -> None:
    """Thousands of failed requests with prompts of a million tokens: the bound is told, and none is made."""
    asked = resolved("soak/1", {"long": 64, "long_prompt_tokens": 10**6, "short": 64, "short_prompt_tokens": 10**6})
    (failed,) = soaked().requests[:1]
    failed = failed.model_copy(update={**NOTHING, "error": "no"})
    begun = time.monotonic()
    reason = invalid_reason("soak/1", asked, soaked().model_copy(update={"requests": (failed,) * 128 * 100}))
    assert "more than 20000 requests or 80000000 prompt tokens" in reason
    assert time.monotonic() - begun < 60

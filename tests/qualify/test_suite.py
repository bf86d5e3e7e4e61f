"""A suite on a server that speaks the real protocol: whole, interrupted, and with every fault a server can have."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from reproducer.documents.lock import Scalar
from reproducer.documents.opened import OpenedLock
from reproducer.documents.receipts import FidelityReference, MeasureReceipt
from reproducer.errors import NotCheckedError, QualificationError
from reproducer.progress import Silent
from reproducer.qualify.alone import measuring_alone
from reproducer.qualify.derive import derive
from reproducer.qualify.reference import record_reference
from reproducer.qualify.suite import qualify
from tests.qualify.conftest import Told
from tests.qualify.run_suite import run, small_suite
from tests.qualify.servers import Boots, build_receipt, measure, suite


def measured(opened: OpenedLock, boots: Boots, told: Told | None = None, **more: Any) -> tuple[MeasureReceipt, ...]:
    """The receipts of a suite."""
    workspace = boots.folder / "samples"
    reporter = told or Silent()
    return qualify(opened, build_receipt(), boots.boot, workspace=workspace, reporter=reporter, settle_s=0.0, **more)


def reference_of(boots: Boots) -> FidelityReference:
    """A reference recorded from the stand-in."""
    with boots.boot() as server:
        return record_reference(server, ("a b", "c"), checkpoint="small", output_tokens=6, top=4, reporter=Silent())


def test_the_whole_suite(tmp_path: Path, told: Told) -> None:
    """Every measure passes on a good server, from two boots, and its receipt carries all that `verify` needs."""
    boots = Boots(tmp_path / "server", ["--gap-ms", "10", "--context", "4096", "--reserved", "5", "--template", "7"])
    reference = reference_of(boots)
    boots.receipts.clear()
    opened = suite(
        tmp_path,
        measure("decode.single/1", ("decode_rate", ">=", 20, "tok/s"), warmup=1, output_tokens=16),
        measure("decode.concurrent/1", ("overlap", ">=", 0.1, "ratio"), output_tokens=24),
        measure("prefill.cold/1", repeats=3),
        measure("prefix.reuse/1", ("reused_tokens", ">=", 784, "tokens")),
        measure("restore.restart/1", ("storage_tokens", ">=", 784, "tokens"), ("same_output", "==", True, "bool")),
        measure("fidelity/1", ("agreement", "==", 1, "ratio"), ("kl_mean", "<=", 0, "nats")),
        measure("needle.short/1", ("found", ">=", 1, "ratio")),
        measure("chat.smoke/1", ("sensible", "==", True, "bool")),
        measure("decode.single/2", ("makespan_rate", ">=", 20, "tok/s"), output_tokens=16),
        measure("decode.concurrent/2", output_tokens=100, start_spread_ms=10_000),
        measure("prefill.cold/1", prompt_tokens=700),
        measure("needle/1", ("found", "==", 1, "ratio"), prompt_tokens=1500),
        measure("context.admission/1", ("refused_cleanly", "==", True, "bool"), ("alive", "==", True, "bool")),
        reference=reference,
    )
    receipts = measured(opened, boots, told)
    assert [receipt.measure for receipt in receipts] == [each.id for each in opened.lock.qualification.measures]
    assert [(receipt.status, receipt.reason) for receipt in receipts] == [("passed", "")] * len(receipts)
    assert len(boots.receipts) == 2
    ids = [launch.boot.id for launch in boots.receipts]
    for receipt in receipts:
        assert receipt.launch_receipts == tuple(launch.digest for launch in boots.receipts)
        assert receipt.lock_digest == opened.digest
        assert receipt.build_receipt == build_receipt().digest
        assert receipt.derived == derive(
            receipt.measure, receipt.parameters, receipt.samples, reference, statistics="penny-statistics/1"
        )
        again = MeasureReceipt.from_json(receipt.canonical(), where="receipt")
        assert again == receipt
        assert b"127.0.0.1" not in receipt.canonical()
        assert sum(not sample.warmup for sample in receipt.samples) == (3 if receipt is receipts[2] else 2)
        used = {sample.boot for sample in receipt.samples} | {
            str(sample.facts["written_boot"]) for sample in receipt.samples if "written_boot" in sample.facts
        }
        assert used == set(ids)
    single = receipts[0]
    assert [sample.warmup for sample in single.samples] == [True, False, True, False]
    nonces = [sample.facts["nonce"] for receipt in receipts for sample in receipt.samples]
    assert len(set(nonces)) == len(nonces)
    assert "measuring: 29 of 29 samples" in told.notes
    assert receipts[5].reference_sha256 == opened.lock.qualification.reference.sha256  # type: ignore[union-attr]


@pytest.mark.parametrize("finished", [1, 5])
def test_a_killed_run_takes_up_where_it_stopped(tmp_path: Path, told: Told, finished: int) -> None:
    """After kill -9 in either boot the finished samples are kept, the others taken, and it is said which."""
    child = subprocess.Popen([sys.executable, "-m", "tests.qualify.run_suite", str(tmp_path)])
    samples = tmp_path / "samples"
    deadline = time.monotonic() + 60
    while len(kept := list(samples.glob("*-whole.json"))) + len(list(samples.glob("*-restore.json"))) < finished:
        assert child.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.002)
    child.send_signal(signal.SIGKILL)
    child.wait()
    before = {path.name: path.read_bytes() for path in samples.glob("*-whole.json")}
    assert kept
    boots = Boots(tmp_path / "server")
    receipts = run(tmp_path, boots, told)
    assert [receipt.status for receipt in receipts] == ["passed"] * 3
    assert any("are there from the interrupted run" in note for note in told.notes)
    assert {name: (samples / name).read_bytes() for name in before} == before
    assert len(boots.receipts) == (2 if finished == 1 else 1)
    restored = receipts[1]
    assert all(sample.facts["written_boot"] != sample.boot for sample in restored.samples)
    assert not list(samples.glob(".*"))


def test_a_finished_run_needs_no_boot(tmp_path: Path) -> None:
    """When all samples are there, receipts are written without starting a server; they name the old boots."""
    boots = Boots(tmp_path / "server")
    first = run(tmp_path, boots, Silent())
    second = run(tmp_path, boots, Silent())
    assert len(boots.receipts) == 2
    assert [each.samples for each in second] == [each.samples for each in first]
    assert [each.launch_receipts for each in second] == [each.launch_receipts for each in first]


def test_a_damaged_sample_is_taken_again(tmp_path: Path) -> None:
    """A file that is cut short is no sample; only its boot is repeated."""
    boots = Boots(tmp_path / "server")
    run(tmp_path, boots, Silent())
    damaged = max((tmp_path / "samples").glob("002-000-*-whole.json"))
    damaged.write_bytes(damaged.read_bytes()[:-20])
    receipts = run(tmp_path, boots, Silent())
    assert len(boots.receipts) == 3
    assert [receipt.status for receipt in receipts] == ["passed"] * 3


def test_samples_of_another_build_are_thrown_away(tmp_path: Path, told: Told) -> None:
    """Nothing that was measured on another runtime reaches a receipt."""
    boots = Boots(tmp_path / "server")
    run(tmp_path, boots, Silent())
    other = build_receipt().model_copy(update={"python": "3.11.8"})
    opened = small_suite(tmp_path)
    receipts = qualify(opened, other, boots.boot, workspace=tmp_path / "samples", reporter=told, settle_s=0.0)
    assert len(boots.receipts) == 4
    assert "samples of another lock or build are thrown away" in told.notes
    assert {receipt.build_receipt for receipt in receipts} == {other.digest}


FAULTS = {
    "warm": ("prefill.cold/1", "the prompt was not cold: the server had 16 of its tokens cached"),
    "wrong-prompt-count": ("decode.single/1", "the server counts 33 prompt tokens, 32 were sent"),
    "wrong-count": ("decode.single/1", "completion_tokens is 1"),
    "malformed": ("decode.single/1", "not JSON"),
    "short": ("decode.single/1", "output tokens instead of 8"),
    "refuse": ("prefix.reuse/1", "HTTP status 400"),
    "hang": ("decode.single/1", "no whole answer within 0.3 s"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_misbehaving_server_fails_the_measure_and_the_sample_is_kept(tmp_path: Path, told: Told, fault: str) -> None:
    """The second boot misbehaves: its sample is in the receipt, marked with the reason, and the measure has failed."""
    name, reason = FAULTS[fault]
    boots = Boots(tmp_path / "server", later=["--fault", fault])
    sizes = {"output_tokens": 8} if name == "decode.single/1" else {}
    (receipt,) = measured(suite(tmp_path, measure(name, prompt_tokens=32, **sizes)), boots, told, deadline_s=0.3)
    assert receipt.status == "failed"
    assert "1 of 2 samples are invalid" in receipt.reason
    assert reason in receipt.reason
    good, bad = receipt.samples
    assert good.facts["valid"] is True
    assert bad.facts["valid"] is False
    assert reason in str(bad.facts["invalid"])
    assert {each.name: each.value for each in receipt.derived}["invalid_samples"] == 1
    assert any(reason in note for note in told.notes)


def test_a_threshold_that_does_not_hold_fails_the_measure(tmp_path: Path) -> None:
    """A chat that answers nonsense, measured properly, is a failure and says which bound."""
    asked = measure("chat.smoke/1", ("sensible", "==", True, "bool"), ("finished", "==", True, "bool"))
    (receipt,) = measured(suite(tmp_path, asked), Boots(tmp_path / "server", ["--fault", "silly"]))
    assert receipt.status == "failed"
    assert [result.passed for result in receipt.thresholds] == [False, True]
    assert receipt.reason == "sensible is 0, the lock asks for == 1 bool"


def test_another_output_after_a_restart_fails(tmp_path: Path) -> None:
    """Pages come back from storage, but the server says something else with them."""
    asked = measure("restore.restart/1", ("same_output", "==", True, "bool"), prompt_tokens=64, output_tokens=4)
    boots = Boots(tmp_path / "server", later=["--fault", "other-output"])
    (receipt,) = measured(suite(tmp_path, asked), boots)
    assert (receipt.status, receipt.reason) == ("failed", "same_output is 0, the lock asks for == 1 bool")
    assert {each.name: each.value for each in receipt.derived}["storage_tokens"] == 48


def test_storage_that_was_lost_between_two_boots_restores_nothing(tmp_path: Path) -> None:
    """No token from storage: the count is 0, the rate is absent, and both bounds have failed."""
    bounds = (("storage_tokens", ">=", 48, "tokens"), ("restored_rate", ">=", 1, "tok/s"))
    asked = measure("restore.restart/1", *bounds, prompt_tokens=64, output_tokens=4)
    boots = Forgetful(tmp_path / "server")
    (receipt,) = measured(suite(tmp_path, asked), boots)
    assert [(result.got, result.passed) for result in receipt.thresholds] == [(0, False), (None, False)]
    assert receipt.status == "failed"


class Forgetful(Boots):
    """Boots that lose what was stored before."""

    def boot(self, altered: Mapping[str, Scalar] | None = None) -> Any:
        """One more, with an empty storage."""
        shutil.rmtree(self.folder / "storage", ignore_errors=True)
        return super().boot(altered)


def test_a_server_that_dies_is_an_error_and_what_was_finished_is_kept(tmp_path: Path, told: Told) -> None:
    """The server is gone in the middle of a request: exit code 96, and the next run takes up after the first boot."""
    boots = Boots(tmp_path / "server", later=["--fault", "die", "--after", "1"])
    with pytest.raises(NotCheckedError, match=r"the server died during restore\.restart/1") as raised:
        run(tmp_path, boots, Silent())
    assert raised.value.exit_code == 96
    assert "finished samples are kept" in str(raised.value)
    good = Boots(tmp_path / "server")
    receipts = run(tmp_path, good, told)
    assert [receipt.status for receipt in receipts] == ["passed"] * 3
    assert len(good.receipts) == 1
    assert "4 of 8 samples are there from the interrupted run" in told.notes


def test_what_was_written_in_a_boot_that_died_is_written_again(tmp_path: Path) -> None:
    """The first boot dies after the prompts of the restore: they count for nothing."""
    boots = Boots(tmp_path / "server", ["--fault", "die", "--after", "2"])
    with pytest.raises(NotCheckedError):
        run(tmp_path, boots, Silent())
    assert not list((tmp_path / "samples").glob("*-write.json"))
    good = Boots(tmp_path / "server")
    receipts = run(tmp_path, good, Silent())
    written = {str(sample.facts["written_boot"]) for sample in receipts[1].samples}
    assert written == {good.receipts[0].boot.id}


def test_a_measure_that_cannot_run_says_why(tmp_path: Path) -> None:
    """Without a reference `fidelity` is skipped; with a bound on it, it has failed. It is never left out."""
    opened = suite(tmp_path, measure("chat.smoke/1"), measure("fidelity/1"))
    bound = measure("fidelity/1", ("agreement", ">=", 0.5, "ratio"))
    bounded = suite(tmp_path, measure("chat.smoke/1"), bound)
    boots = Boots(tmp_path / "server")
    _, skipped = measured(opened, boots)
    assert (skipped.status, skipped.samples, skipped.derived) == ("skipped", (), ())
    assert skipped.reason == "the lock has no reference to compare with"
    _, failed = measured(bounded, boots)
    assert failed.status == "failed"
    assert [(result.got, result.passed) for result in failed.thresholds] == [(None, False)]


def test_one_suite_at_a_time(told: Told) -> None:
    """A second measurement waits for the first, says so and names its process."""
    entered, leave = Event(), Event()

    def first() -> None:
        with measuring_alone(Silent()):
            entered.set()
            leave.wait(20)

    thread = Thread(target=first)
    thread.start()
    entered.wait(20)
    order: list[str] = []

    def second() -> None:
        with measuring_alone(told):
            order.append("second")

    waiting = Thread(target=second)
    waiting.start()
    deadline = time.monotonic() + 20
    while not told.notes and time.monotonic() < deadline:
        time.sleep(0.01)
    order.append("first")
    leave.set()
    thread.join()
    waiting.join()
    assert order == ["first", "second"]
    assert any("is measuring on this machine" in note and "process" in note for note in told.notes)


def test_a_suite_starts_no_server_before_its_turn(tmp_path: Path, told: Told) -> None:
    """While another measures, not even a boot disturbs it."""
    boots = Boots(tmp_path / "server")
    thread = Thread(target=lambda: measured(suite(tmp_path, measure("chat.smoke/1")), boots, told))
    with measuring_alone(Silent()):
        thread.start()
        deadline = time.monotonic() + 20
        while not told.notes and time.monotonic() < deadline:
            time.sleep(0.01)
        before = len(boots.receipts)
    thread.join()
    assert (before, len(boots.receipts)) == (0, 2)


def test_a_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    """Somebody else's folder in the shared temporary folder cannot make penny wait for ever."""
    with measuring_alone(Silent()):
        pass
    (folder,) = (tmp_path / "tmp").iterdir()
    folder.chmod(0o777)
    with pytest.raises(NotCheckedError, match="not private"), measuring_alone(Silent()):
        pass


def test_a_reference_is_recorded_and_compared_with(tmp_path: Path) -> None:
    """It holds the prompts, the greedy tokens and the candidates asked for, and reads back as the same document."""
    reference = reference_of(Boots(tmp_path / "server"))
    assert [prompt.prompt for prompt in reference.prompts] == ["a b", "c"]
    for prompt in reference.prompts:
        assert len(prompt.output_ids) == len(prompt.top_logprobs) == 6
        assert {len(position) for position in prompt.top_logprobs} == {4}
        assert tuple(position[0].token for position in prompt.top_logprobs) == prompt.output_ids
    assert FidelityReference.from_data(json.loads(reference.canonical()), where="reference") == reference


def test_a_server_that_is_not_the_same_twice_is_no_reference(tmp_path: Path) -> None:
    """The second answer differs: the reference is refused."""
    with pytest.raises(QualificationError, match="not the same twice"):
        reference_of(Boots(tmp_path / "server", ["--fault", "other-output", "--after", "1"]))


def test_a_server_that_departs_from_the_reference_shows(tmp_path: Path) -> None:
    """The last token of each prompt differs in the second boot: agreement is 5 of 6, the divergence is not 0."""
    boots = Boots(tmp_path / "server")
    reference = reference_of(boots)
    boots.later = ["--fault", "other-output"]
    boots.receipts.clear()
    asked = measure("fidelity/1", ("agreement", ">=", 1, "ratio"))
    (receipt,) = measured(suite(tmp_path, asked, reference=reference), boots)
    derived = {each.name: each for each in receipt.derived}
    assert derived["agreement"].values == pytest.approx((1, 5 / 6))
    assert derived["kl_worst"].minimum == 0
    assert derived["kl_worst"].maximum > 0.1
    assert receipt.status == "failed"

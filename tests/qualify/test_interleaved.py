"""Two runtimes measured in turn on the stand-in: the order of boots, both sets of receipts, what differs."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from reproducer.documents.opened import OpenedLock
from reproducer.documents.receipts import LaunchReceipt, MeasureReceipt
from reproducer.progress import Silent
from reproducer.qualify.deltas import deltas
from reproducer.qualify.interleaved import Arm, qualify_in_turn, turns
from reproducer.qualify.suite import Measured
from tests.qualify.conftest import Told
from tests.qualify.servers import Booted, Boots, build_receipt, measure, suite


@dataclass
class Noted:
    """Boots of one arm that note when each begins."""

    name: str
    boots: Boots
    order: list[str] = field(default_factory=list)

    def boot(self, altered: object = None) -> AbstractContextManager[Booted]:
        """One boot of the arm."""
        assert altered is None
        self.order.append(self.name)
        return self.boots.boot()

    def launches(self, digests: Iterable[str]) -> list[LaunchReceipt]:
        """Those of its launches that are asked for."""
        wanted = set(digests)
        return [each for each in self.boots.receipts if each.digest in wanted]


def two(folder: Path, gaps: tuple[str, str], opened: OpenedLock) -> tuple[Arm, Arm, list[str]]:
    """Two arms of one lock, whose servers emit a token every so many milliseconds."""
    order: list[str] = []
    arms = []
    for name, gap in zip("AB", gaps, strict=True):
        noted = Noted(name, Boots(folder / name, ["--gap-ms", gap]), order)
        arms.append(Arm(opened, build_receipt(), noted.boot, folder / name / "samples", noted.launches))
    return arms[0], arms[1], order


def test_whose_turn_it_is() -> None:
    """Each goes first as often as the other."""
    assert [arm for arm, _ in turns(range(1, 5))] == list("ABBAABBA")
    assert [slot for _, slot in turns((3, 1, 2))] == [1, 1, 2, 2, 3, 3]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[tuple[MeasureReceipt, ...]]]:
    """The order of boots and the receipts of a run in which B emits tokens at a fifth of the rate."""
    folder = tmp_path_factory.mktemp("interleaved")
    opened = suite(
        folder,
        measure("decode.single/1", repeats=6, output_tokens=10),
        measure("restore.restart/1", prompt_tokens=64, output_tokens=4),
    )
    first, second, order = two(folder, ("10", "50"), opened)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(folder))
        return order, list(qualify_in_turn(first, second, reporter=Silent(), settle_s=0.0))


def test_both_suites_in_turn(measured: tuple[list[str], list[tuple[MeasureReceipt, ...]]]) -> None:
    """A, B, B, A; every measure of both passes, also one that spans two boots of its arm with the other's between."""
    order, (first, second) = measured
    assert order == ["A", "B", "B", "A"]
    assert {(receipt.status, receipt.reason) for receipt in (*first, *second)} == {("passed", "")}
    boots = first[0].interleaved.boots if first[0].interleaved else ()
    assert len(boots) == 4
    for receipts, arm, places in ((first, "A", (0, 3)), (second, "B", (1, 2))):
        for receipt in receipts:
            assert receipt.interleaved is not None
            assert (receipt.interleaved.arm, receipt.interleaved.boots) == (arm, boots)
            assert set(receipt.launch_receipts) == {boots[place] for place in places}
            assert MeasureReceipt.from_json(receipt.canonical(), where="it") == receipt


def test_what_differs(measured: tuple[list[str], list[tuple[MeasureReceipt, ...]]]) -> None:
    """A rate of a fifth is lower and its interval says so; what both do alike shows no difference."""
    _, (first, second) = measured
    found = {(each.measure, each.value): each for each in deltas(first, second)}
    rate = found["decode.single/1", "decode_rate"]
    assert rate.difference.conclusion == "lower"
    assert rate.difference.ratio is not None
    assert rate.difference.ratio < 0.6
    assert rate.difference.floor is not None
    assert rate.difference.high is not None
    assert rate.difference.high < 0
    assert found["restore.restart/1", "storage_tokens"].difference.conclusion == "no difference shown"
    assert found["restore.restart/1", "same_output"].difference.conclusion == "no difference shown"
    assert {each.value for each in found.values()}.isdisjoint({"valid_samples", "invalid_samples"})
    assert rate.content()["noise_floor"] == rate.difference.floor


def test_other_parameters_are_not_compared(measured: tuple[list[str], list[tuple[MeasureReceipt, ...]]]) -> None:
    """Two prompts of different lengths are two things."""
    _, (first, second) = measured
    other = [each.model_copy(update={"parameters": {**each.parameters, "output_tokens": 11}}) for each in second]
    assert deltas(first, other) == ()


def test_an_interrupted_run_is_taken_up(tmp_path: Path, told: Told) -> None:
    """Samples of both arms are kept when one server cannot start, and the next call takes the others only."""
    opened = suite(tmp_path, measure("decode.single/1", repeats=2, output_tokens=6))
    first, second, order = two(tmp_path, ("10", "10"), opened)

    def broken(altered: object = None) -> AbstractContextManager[Measured]:
        assert altered is None
        if order.count("B") == 1:
            raise ConnectionError
        return second.boot()

    half = replace(second, boot=broken)
    with pytest.raises(ConnectionError):
        qualify_in_turn(first, half, reporter=told, settle_s=0.0)
    assert order == ["A", "B"]
    ours, theirs = qualify_in_turn(first, second, reporter=told, settle_s=0.0)
    assert order == ["A", "B", "B", "A"]
    assert "1 of 2 samples are there from the interrupted run" in told.notes
    assert [each.status for each in (*ours, *theirs)] == ["passed", "passed"]

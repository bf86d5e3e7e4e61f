"""The boots that a receipt names are held against launch receipts, alone and beside another runtime's."""

from collections.abc import Callable
from typing import Any

import pytest

from reproducer.documents.receipts import Interleaved, MeasureReceipt
from reproducer.documents.verdict import Check
from reproducer.verify.receipts import verify_receipts
from tests.verify.factory import Evidence, edited, sha256

BOOTS = "binding.processes.decode.single"
IN_TURN = "interleaved.decode.single"


def checks(evidence: Evidence, receipt: MeasureReceipt) -> dict[str, Check]:
    """The checks with another receipt in the place of the first."""
    return {each.id: each for each in verify_receipts(evidence.opened, [evidence.build, *evidence.launches, receipt])}


def test_boots_are_named(evidence: Evidence) -> None:
    """Process and start are in the check; a receipt that names launch receipts alone has no such check."""
    receipt = evidence.measure("decode.single")
    assert (
        checks(evidence, receipt)[BOOTS].got == "pid 101 from 2026-01-02T03:11:00Z, pid 102 from 2026-01-02T03:12:00Z"
    )
    assert BOOTS not in checks(evidence, edited(receipt, lambda data: data.pop("boots")))


EDITS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "pid": (lambda boots: boots["boots"][0]["boot"].update(pid=7), "is not that of launch"),
    "start": (lambda boots: boots["boots"][1]["boot"].update(started="2026-01-02T03:13:00Z"), "is not that of launch"),
    "ticks": (lambda boots: boots["boots"][1]["boot"].update(start_ticks=8), "is not that of launch"),
    "id": (lambda boots: boots["boots"][1]["boot"].update(id=sha256("x")), "is not that of launch"),
    "configuration": (lambda boots: boots["boots"][0].update(effective_sha256=sha256("x")), "another configuration"),
    "one left out": (lambda boots: boots["boots"].pop(), "not the boots of its launch receipts"),
    "other order": (lambda boots: boots["boots"].reverse(), "not the boots of its launch receipts"),
    "foreign": (lambda boots: boots["boots"][0].update(launch_receipt=sha256("x")), "is not here"),
}


@pytest.mark.parametrize("name", EDITS)
def test_edited_boots(evidence: Evidence, name: str) -> None:
    """Whatever is said of a boot that its launch receipt does not say is caught."""
    edit, words = EDITS[name]
    found = checks(evidence, edited(evidence.measure("decode.single"), edit))[BOOTS]
    assert found.status == "failed"
    assert words in found.reason


def _in_turn(evidence: Evidence, boots: tuple[str, ...]) -> Check:
    said = Interleaved(arm="A", other_lock=sha256("lock"), other_build=sha256("build"), boots=boots)
    receipt = evidence.measure("decode.single").model_copy(update={"interleaved": said})
    return checks(evidence, receipt)[IN_TURN]


def test_in_turn(evidence: Evidence) -> None:
    """Its own boots lie among those of the other runtime, in the order in which they started."""
    first, second = (launch.digest for launch in evidence.launches)
    one, two = sha256("one"), sha256("two")
    good = _in_turn(evidence, (first, one, two, second))
    assert (good.status, good.got) == ("passed", "4 boots in turn, 2 of this runtime")
    assert IN_TURN not in checks(evidence, evidence.measure("decode.single"))
    for boots, words in (
        ((second, one, two, first), "not in the order"),
        ((first, one, two), "is not among the boots"),
        ((first, second), "no boot of the other"),
        ((first, one, one, second), "stands twice"),
    ):
        found = _in_turn(evidence, boots)
        assert found.status == "failed"
        assert words in found.reason

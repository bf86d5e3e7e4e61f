"""The report shows how sure values are, relative bounds and clocks; of old receipts it says nothing new."""

import dataclasses
from typing import Any

import pytest

from reproducer.documents.measured import Relative
from reproducer.documents.receipts import Interleaved, MeasureReceipt
from reproducer.documents.verdict import Verdict
from reproducer.report.markdown import report
from reproducer.report.text import number
from reproducer.verify.receipts import verify_receipts
from tests.verify.factory import Evidence, edited, good_evidence, sha256


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Good evidence."""
    return good_evidence(tmp_path_factory.mktemp("lock") / "small")


def page(evidence: Evidence, receipt: MeasureReceipt) -> str:
    """The report with one receipt in the place of the first."""
    changed = dataclasses.replace(evidence, measures=(receipt, *evidence.measures[1:]))
    verdict = Verdict(checks=verify_receipts(changed.opened, changed.receipts))
    return report(changed.opened.lock, changed.receipts, verdict)


def test_spread(evidence: Evidence) -> None:
    """The interval, its method and the noise of each value stand in a table of their own."""
    text = page(evidence, evidence.measures[0])
    row = next(line for line in text.split("### Spread")[1].splitlines() if "`decode_rate`" in line)
    spread = evidence.measures[0].derived[0].spread
    assert spread is not None
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:4] == ["`decode.single/1`", "`decode_rate`", "**24.82**", "tok/s"]
    ends = f"{number(spread.low)} to {number(spread.high)}"
    deviations = [number(each) for each in (spread.within_boots, spread.between_boots) if each is not None]
    assert cells[4:] == [ends, "bootstrap", *deviations]
    assert spread.low < spread.high
    assert "valid_samples" not in text.split("### Spread")[1]


def test_old_receipts_have_the_old_page(evidence: Evidence) -> None:
    """Without statistics there is no such table, so that the page of an old bundle is made again to the byte."""

    def old(data: dict[str, Any]) -> None:
        data.pop("statistics")
        for each in data["derived"]:
            each.pop("spread", None)

    olds = tuple(edited(each, old) for each in evidence.measures)
    text = page(dataclasses.replace(evidence, measures=olds), olds[0])
    assert "### Spread" not in text
    assert "in turn" not in text


def test_relative_bound(evidence: Evidence) -> None:
    """A bound that is relative to a receipt is shown with that one's value, the conclusion and the floor."""
    (result,) = evidence.measures[0].thresholds
    pinned = evidence.opened.lock.qualification.reference
    threshold = result.threshold.model_copy(update={"relative_to": pinned, "bound": 0.98, "unit": "ratio"})
    relative = Relative(reference=25.0, against=24.5, floor=1.25, conclusion="no difference shown")
    for said, words in (
        (relative, "≥ 0.98 of 25: no difference shown (noise floor 1.25)"),
        (relative.model_copy(update={"floor": None}), "(noise floor unknown)"),
        (None, "≥ 0.98 of a reference, not compared"),
    ):
        changed = result.model_copy(update={"threshold": threshold, "relative": said})
        assert words in page(evidence, evidence.measures[0].model_copy(update={"thresholds": (changed,)}))


def test_clocks_and_turns(evidence: Evidence) -> None:
    """What a GPU did meanwhile is shown where it was read, and which runtime was measured in turn."""
    gpu = {
        "name": "Some GPU",
        "driver": "610.57.04",
        "compute_capability": "12.0",
        "clock_sm_mhz": [1395.0, 1500.0],
        "temperature_c": [52.0, 52.0],
        "readings": 8,
    }
    receipt = edited(evidence.measures[0], lambda data: data["conditions"].update(gpus=[gpu]))
    said = Interleaved(arm="B", other_lock=sha256("x"), other_build=sha256("y"), boots=(sha256("1"), sha256("2")))
    text = page(evidence, receipt.model_copy(update={"interleaved": said}))
    row = next(line for line in text.splitlines() if "1395 to 1500 MHz" in line)
    assert "| unknown | 52 °C | unknown | unknown |" in row
    assert f"- `decode.single/1`: arm B of 2 boots in all, with lock `{sha256('x')}`" in text

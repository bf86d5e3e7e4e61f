"""One measure several times in a suite, each time with other parameters: checked, reported and stated rung by rung."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from reproducer.attest.statements import qualification_statement
from reproducer.documents.opened import open_lock
from reproducer.documents.receipts import FidelityReference
from reproducer.documents.verdict import Verdict
from reproducer.errors import InvalidDocumentError
from reproducer.ledger import Ledger, latest_measures
from reproducer.qualify.deltas import deltas
from reproducer.report.figure import figure
from reproducer.report.markdown import report
from reproducer.verify.receipts import verify_receipts
from tests.verify.factory import (
    Evidence,
    build_receipt,
    edited,
    launch_receipt,
    measure_receipt,
    sha256,
    small_lock,
)

RUNGS = (16, 4, 8)


def _with_suite(folder: Path, change: Callable[[Any], object]) -> None:
    """The small lock with `change` made to its suite's list of measures."""
    opened = small_lock(folder)
    path = folder / "penny.lock.toml"
    lock = tomlkit.parse(path.read_text()).unwrap()
    change(lock["qualification"]["measures"])
    path.write_text(tomlkit.dumps(lock))
    assert opened.lock.name == lock["name"]


def _ladder(measures: Any) -> None:
    """`decode.single/1` with three lengths, in no order, before the others."""
    (single,) = [each for each in measures if each["id"] == "decode.single/1"]
    others = [each for each in measures if each is not single]
    rungs = [{**single, "parameters": {**single["parameters"], "prompt_tokens": rung}} for rung in RUNGS]
    measures[:] = [*rungs, *others]


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A lock whose suite has a ladder, and a receipt for each of its rungs."""
    folder = tmp_path_factory.mktemp("ladder")
    _with_suite(folder, _ladder)
    opened = open_lock(folder / "penny.lock.toml")
    build = build_receipt(opened)
    launches = tuple(launch_receipt(opened, build, number) for number in (1, 2))
    pinned = opened.lock.qualification.reference
    assert pinned is not None
    reference = FidelityReference.from_json(opened.read(pinned), where="reference")
    asked = opened.lock.qualification.measures
    return Evidence(
        opened, build, launches, tuple(measure_receipt(opened, each, build, launches, reference) for each in asked)
    )


def _checks(evidence: Evidence, receipts: Any) -> dict[str, Any]:
    checks = verify_receipts(evidence.opened, receipts)
    assert len({each.id for each in checks}) == len(checks), "an id of a check stands twice"
    return {each.id: each for each in checks}


def test_every_rung_has_checks_of_its_own_that_name_it(evidence: Evidence) -> None:
    """Ids are unique and say the length; a measure that stands once keeps its plain name."""
    checks = _checks(evidence, evidence.receipts)

    assert {each.status for each in checks.values()} == {"passed"}
    for rung in RUNGS:
        assert f"measure.decode.single[prompt_tokens={rung}]" in checks
        assert f"threshold.decode.single[prompt_tokens={rung}].decode_rate" in checks
    assert "measure.fidelity" in checks
    assert checks["suite"].expected == "5 measures of small"


def test_a_rung_without_a_receipt_fails_though_the_others_are_there(evidence: Evidence) -> None:
    """The receipts of two lengths do not stand for the third."""
    gone = next(each for each in evidence.measures if each.parameters.get("prompt_tokens") == 8)

    checks = _checks(evidence, tuple(each for each in evidence.receipts if each is not gone))

    failed = {key: each.reason for key, each in checks.items() if each.status != "passed"}
    assert failed == {"measure.decode.single[prompt_tokens=8]": "the suite asks for it and there is no receipt"}


def test_a_length_that_the_suite_does_not_ask_for_is_named(evidence: Evidence) -> None:
    """A receipt of another length is no rung: it is told whole, and the rung it was is missing."""
    old = next(each for each in evidence.measures if each.parameters.get("prompt_tokens") == 8)
    new = edited(old, lambda content: content["parameters"].update(prompt_tokens=9))

    checks = _checks(evidence, evidence.replacing(old, new))

    assert "decode.single/1[output_tokens=4, prompt_tokens=9] is not in the lock's suite" in checks["suite"].reason
    assert checks["measure.decode.single[prompt_tokens=8]"].status == "failed"


def test_a_rung_that_was_measured_twice_has_its_digest_in_the_name(evidence: Evidence) -> None:
    """A rerun of one rung adds evidence; the other rungs keep their names."""
    old = next(each for each in evidence.measures if each.parameters.get("prompt_tokens") == 8)
    again = edited(old, lambda content: content.update(created="2026-01-02T04:00:00Z"))

    checks = _checks(evidence, (*evidence.receipts, again))

    for receipt in (old, again):
        assert f"measure.decode.single[prompt_tokens=8][{receipt.digest[:12]}]" in checks
    assert "measure.decode.single[prompt_tokens=16]" in checks


def test_the_newest_receipt_of_each_rung_is_taken_in_order_of_length(evidence: Evidence, tmp_path: Path) -> None:
    """Each rung's newest one, by length as a number and not as text."""
    ledger = Ledger(tmp_path)
    old = next(each for each in evidence.measures if each.parameters.get("prompt_tokens") == 8)
    again = edited(old, lambda content: content.update(created="2026-01-02T04:00:00Z"))
    for receipt in (*evidence.measures, again):
        ledger.add(receipt)

    latest = [each for each in latest_measures(ledger.receipts()) if each.measure == "decode.single/1"]

    assert [each.parameters["prompt_tokens"] for each in latest] == sorted(RUNGS)
    assert again in latest
    assert old not in latest


def test_report_has_the_ladder_as_a_table(evidence: Evidence) -> None:
    """A row for each length, ascending, a column for each value; the figure names the length of each row."""
    verdict = Verdict(checks=verify_receipts(evidence.opened, evidence.receipts))
    lines = report(evidence.opened.lock, evidence.receipts, verdict).splitlines()

    at = lines.index("### `decode.single/1` by `prompt_tokens`")
    assert lines[at + 2] == "| `prompt_tokens` | `decode_rate` tok/s | `ttft_s` s |"
    assert [line.split(" | ")[0] for line in lines[at + 4 : at + 7]] == ["| 4", "| 8", "| 16"]
    assert "(" in lines[at + 4]
    assert any(line.startswith("| `decode.single/1[prompt_tokens=16]` | `decode_rate`") for line in lines)
    drawn = figure(evidence.opened.lock, evidence.receipts)
    assert all(f"decode.single[prompt_tokens={rung}] · decode_rate" in drawn for rung in RUNGS)


def test_statement_says_with_which_parameters(evidence: Evidence) -> None:
    """Each result of a ladder carries its parameters; of a measure that stands once the lock has them."""
    statement = qualification_statement(evidence.opened.lock, evidence.receipts, sha256("index"))

    of = {name: [] for name in ("decode.single/1", "fidelity/1")}  # type: dict[str, list[Any]]
    for each in statement["predicate"]["measures"]:
        of.setdefault(each["measure"], []).append(each.get("parameters"))
    assert sorted(each["prompt_tokens"] for each in of["decode.single/1"]) == sorted(RUNGS)
    assert of["fidelity/1"] == [None]


def test_two_runs_are_compared_rung_by_rung(evidence: Evidence) -> None:
    """Each length is compared with the same length, and named by it."""
    found = [each for each in deltas(evidence.measures[:3], evidence.measures[2::-1]) if each.value == "ttft_s"]

    assert [each.measure for each in found] == [f"decode.single/1[prompt_tokens={rung}]" for rung in RUNGS]


@pytest.mark.parametrize("parameters", [{}, {"prompt_tokens": 64}, {"output_tokens": 64, "prompt_tokens": 64}])
def test_one_measure_with_equal_parameters_stands_twice(tmp_path: Path, parameters: dict[str, int]) -> None:
    """Written out or left at its default, a parameter is the same: the lock is refused."""

    def twice(measures: Any) -> None:
        measures[0]["parameters"] = {"prompt_tokens": 64, "output_tokens": 64}
        measures.append({**measures[0], "parameters": parameters, "thresholds": []})

    _with_suite(tmp_path, twice)
    with pytest.raises(
        InvalidDocumentError, match=r"decode\.single/1\[output_tokens=64, prompt_tokens=64\]' stands twice"
    ):
        open_lock(tmp_path / "penny.lock.toml")

"""Thresholds relative to a reference receipt: held with its noise floor, recomputed, and closed against tampering."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from reproducer.attest.keys import signing_key
from reproducer.documents.opened import open_lock
from reproducer.documents.receipts import FidelityReference, MeasureReceipt
from reproducer.documents.verdict import Check, Verdict
from reproducer.errors import InvalidDocumentError
from reproducer.qualify.baselines import differences
from reproducer.qualify.derive import derive, judge
from reproducer.samples import beside
from reproducer.samples.beside import laid_beside
from reproducer.verify.bundle import verify_bundle
from reproducer.verify.receipts import verify_receipts
from tests.verify.factory import (
    Evidence,
    build_receipt,
    edited,
    good_evidence,
    launch_receipt,
    measure_receipt,
    signed_bundle,
    small_lock,
)

NAME = "reference-receipt.json"
CHECK = "threshold.decode.single.decode_rate"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> MeasureReceipt:
    """A receipt of another lock, to which the thresholds here are relative."""
    return good_evidence(tmp_path_factory.mktemp("earlier") / "small").measure("decode.single")


def evidence_against(folder: Path, receipt: bytes, **changes: Any) -> Evidence:
    """Good evidence of a lock whose decode rate is bounded relative to a receipt."""
    small_lock(folder)
    (folder / NAME).write_bytes(receipt)
    pinned = {"path": NAME, "sha256": hashlib.sha256(receipt).hexdigest(), "size": len(receipt)}
    bound = {"value": "decode_rate", "comparator": ">=", "bound": 1.0, "unit": "ratio", "relative_to": pinned}
    path = folder / "penny.lock.toml"
    data = tomlkit.parse(path.read_text()).unwrap()
    data["qualification"]["measures"][0]["thresholds"] = [bound | changes]
    path.write_text(tomlkit.dumps(data))
    opened = open_lock(path)
    build = build_receipt(opened)
    launches = tuple(launch_receipt(opened, build, number) for number in (1, 2))
    named = opened.lock.qualification.reference
    assert named is not None
    reference = FidelityReference.from_json(opened.read(named), where="reference")
    measures = tuple(
        measure_receipt(opened, each, build, launches, reference) for each in opened.lock.qualification.measures
    )
    return Evidence(opened, build, launches, measures)


def paced(evidence: Evidence, factor: float) -> tuple[Any, ...]:
    """The receipts where every token took `factor` times as long, everything else following as it should."""
    receipt = evidence.measure("decode.single")

    def slower(data: dict[str, Any]) -> None:
        for sample in data["samples"]:
            for request in sample["requests"]:
                first = request["events"][0][0]
                request["events"] = [[first + round((when - first) * factor), n] for when, n in request["events"]]
                request["finished_ns"] = request["events"][-1][0]

    moved: MeasureReceipt = edited(receipt, slower)
    measure = evidence.opened.lock.qualification.measures[0]
    derived = derive(measure.id, moved.parameters, moved.samples, statistics=moved.statistics)
    judged = judge(measure, moved.samples, derived, differences(evidence.opened, measure, moved.samples, derived, None))
    following = moved.model_copy(
        update={
            "derived": derived,
            "thresholds": judged.thresholds,
            "status": judged.status,
            "reason": judged.reason,
        }
    )
    return evidence.replacing(receipt, following)


def found(evidence: Evidence, receipts: tuple[Any, ...]) -> dict[str, Check]:
    """The checks by id."""
    return {each.id: each for each in verify_receipts(evidence.opened, receipts)}


def test_an_identical_run_shows_no_difference(tmp_path: Path, original: MeasureReceipt) -> None:
    """The threshold holds, and the check says what it was compared with, and the floor."""
    evidence = evidence_against(tmp_path / "lock", original.canonical())
    checks = found(evidence, evidence.receipts)
    assert {each.status for each in checks.values()} == {"passed"}
    assert checks[CHECK].reason == "no difference shown"
    assert checks[CHECK].expected.startswith(">= 1 of the reference's 24.8153: no difference shown, noise floor ")
    assert checks[CHECK].got == "24.8153"
    result = evidence.measure("decode.single").thresholds[0]
    assert result.relative is not None
    assert result.relative.reference == result.relative.against == result.got
    assert result.relative.floor is not None
    assert 0 < result.relative.floor < 5


CASES: list[tuple[str, float, float, str, str]] = [
    (">=", 1.0, 1.5, "failed", "lower"),
    (">=", 1.0, 1.01, "passed", "no difference shown"),
    (">=", 1.0, 0.5, "passed", "higher"),
    (">=", 0.5, 1.5, "passed", "higher"),
    (">=", 1.9, 1.0, "failed", "lower"),
    ("<=", 1.0, 0.5, "failed", "higher"),
    ("<=", 1.0, 1.5, "passed", "lower"),
    ("<=", 1.0, 0.99, "passed", "no difference shown"),
    ("==", 1.0, 1.01, "passed", "no difference shown"),
    ("==", 1.0, 1.5, "failed", "lower"),
    ("==", 1.0, 0.5, "failed", "higher"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_holds(tmp_path: Path, original: MeasureReceipt, case: tuple[str, float, float, str, str]) -> None:
    """A bound fails on a difference of the wrong way that is larger than the floor, and on nothing smaller."""
    comparator, bound, factor, status, conclusion = case
    evidence = evidence_against(tmp_path / "lock", original.canonical(), comparator=comparator, bound=bound)
    checks = found(evidence, paced(evidence, factor))
    assert checks[CHECK].status == status
    assert conclusion in checks[CHECK].reason
    assert checks["derived.decode.single"].status == "passed"
    assert checks["measure.decode.single"].status == status
    assert Verdict(checks=tuple(checks.values())).outcome.exit_code == (0 if status == "passed" else 64 + 8)


def _edit(edit: Callable[[dict[str, Any]], object]) -> Callable[[MeasureReceipt], bytes]:
    def change(receipt: MeasureReceipt) -> bytes:
        data = receipt.content()
        edit(data)
        return json.dumps(data).encode()

    return change


def _beside(receipt: MeasureReceipt) -> bytes:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beside, "LARGEST_INSIDE", 0)
        return laid_beside(receipt).canonical()


BROKEN: dict[str, tuple[Callable[[MeasureReceipt], bytes], str]] = {
    "a better number": (_edit(lambda data: data["derived"][0].update(value=1.0)), "do not follow from its samples"),
    "another sample": (_edit(lambda data: data["samples"].pop()), "do not follow from its samples"),
    "a narrower spread": (_edit(lambda data: data["derived"][0]["spread"].update(low=24.0)), "do not follow"),
    "other parameters": (_edit(lambda data: data["parameters"].update(output_tokens=5)), "output_tokens 5"),
    "another measure": (_edit(lambda data: data.update(measure="prefill.cold/1")), "no receipt of decode.single/1"),
    "samples beside it": (_beside, "in a file of their own"),
    "no receipt": (lambda _: b"{}", "no receipt"),
    "no text": (lambda _: b"\xff\xfe", "not JSON"),
    "no request": (_edit(lambda data: data["samples"][1].update(requests=[])), "its numbers do not follow"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_reference_that_does_not_hold(tmp_path: Path, original: MeasureReceipt, name: str) -> None:
    """Whoever pins a receipt whose numbers do not follow, or one of another thing, gets a failed threshold."""
    edit, words = BROKEN[name]
    good = evidence_against(tmp_path / "good", original.canonical())
    with pytest.raises(InvalidDocumentError, match=words):
        evidence_against(tmp_path / "bad", edit(original))
    path = tmp_path / "bad" / "penny.lock.toml"
    checks = {each.id: each for each in verify_receipts(open_lock(path), good.receipts)}
    assert checks[CHECK].status == "failed"
    assert words in checks[CHECK].reason


def test_one_boot_against_one_has_no_floor(tmp_path: Path, original: MeasureReceipt) -> None:
    """Where nothing tells how far boots lie apart, a relative bound cannot hold."""

    def one_boot(data: dict[str, Any]) -> None:
        for sample in data["samples"]:
            sample["boot"] = data["samples"][0]["boot"]

    moved: MeasureReceipt = edited(original, one_boot)
    derived = derive(moved.measure, moved.parameters, moved.samples, statistics=moved.statistics)
    reference = moved.model_copy(update={"derived": derived})
    evidence = evidence_against(tmp_path / "lock", reference.canonical())
    measure = evidence.opened.lock.qualification.measures[0]
    against = differences(evidence.opened, measure, moved.samples, derived, None)
    (result,) = judge(measure, moved.samples, derived, against).thresholds
    assert result.relative is not None
    assert result.relative.floor is None
    assert not result.passed


def test_a_bundle_carries_it(tmp_path: Path, original: MeasureReceipt) -> None:
    """The receipt travels as a file of the lock; without it, or with another, the bundle does not hold."""
    key = signing_key(tmp_path / "key")
    evidence = evidence_against(tmp_path / "lock", original.canonical())
    bundle = signed_bundle(evidence, tmp_path / "bundle", key)
    assert (bundle / NAME).read_bytes() == original.canonical()
    assert verify_bundle(bundle, key.public).outcome.exit_code == 0
    (bundle / NAME).write_bytes(original.canonical().replace(b"0", b"1"))
    verdict = verify_bundle(bundle, key.public)
    failed = {each.id for each in verdict.checks if each.status == "failed"}
    assert {f"file.{NAME}", "lock.files", CHECK} <= failed


@pytest.mark.parametrize(
    "changes", [{"unit": "tok/s"}, {"bound": True}, {"bound": 0}, {"bound": -1.0}, {"value": "speed"}], ids=str
)
def test_what_a_relative_bound_is(tmp_path: Path, original: MeasureReceipt, changes: dict[str, Any]) -> None:
    """It is a share above zero of a value that the measure gives; anything else is an error of the lock."""
    with pytest.raises(InvalidDocumentError, match=r"decode\.single/1"):
        evidence_against(tmp_path / "lock", original.canonical(), **changes)

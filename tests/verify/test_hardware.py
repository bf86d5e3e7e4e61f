"""The power limit that held and what slowed GPUs down are judged from receipts (R15)."""

import dataclasses
from typing import Any

import pytest

from reproducer.documents.lock import Hardware
from reproducer.documents.opened import OpenedLock
from reproducer.documents.verdict import Check
from reproducer.verify.evidence import sort
from reproducer.verify.hardware import hardware_checks
from reproducer.verify.receipts import verify_receipts
from tests.verify.factory import Evidence, edited

GPU: dict[str, Any] = {
    "name": "Some GPU",
    "driver": "610.57.04",
    "compute_capability": "12.0",
    "power_requested_w": [450.0, 450.0],
    "power_enforced_w": [450.0, 450.0],
    "reasons": ["gpu_idle", "sw_power_cap"],
    "readings": 20,
}


def checks(evidence: Evidence, gpus: list[dict[str, Any]] | None, *, power: float | None = 450) -> dict[str, Check]:
    """The checks where every measure was taken on these GPUs, by id."""
    hardware = Hardware(gpu="Some GPU", count=1, compute_capability="12.0", power_limit_w=power)
    opened = OpenedLock(evidence.opened.lock.model_copy(update={"hardware": hardware}), evidence.opened.path)

    def edit(data: dict[str, Any]) -> None:
        if gpus is not None:
            data["conditions"]["gpus"] = gpus

    measures = [edited(measure, edit) for measure in evidence.measures]
    sorted_ = sort(opened, (evidence.build, *evidence.launches, *measures))
    return {check.id: check for check in hardware_checks(sorted_)}


def test_limit_that_held(evidence: Evidence) -> None:
    """Both checks pass; the limit itself may hold clocks back."""
    made = checks(evidence, [GPU])
    assert {name: check.status for name, check in made.items()} == {
        "hardware.power_limit": "passed",
        "hardware.throttle": "passed",
    }


@pytest.mark.parametrize("held", [[300.0, 450.0], [450.0, 600.0], [600.0, 600.0]])
def test_limit_that_did_not_hold(evidence: Evidence, held: list[float]) -> None:
    """A limit that was asked for and not taken, or not all the time, is a failed check with both of them."""
    made = checks(evidence, [GPU, GPU | {"power_enforced_w": held}])["hardware.power_limit"]
    assert made.status == "failed"
    assert "450 W was set and" in made.reason
    assert f"{held[1]:g} W held" in made.reason


@pytest.mark.parametrize(
    "reason", ["hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"]
)
def test_card_that_was_slowed_down(evidence: Evidence, reason: str) -> None:
    """Too hot or short of power at any reading fails."""
    made = checks(evidence, [GPU | {"reasons": ["gpu_idle", reason]}])["hardware.throttle"]
    assert made.status == "failed"
    assert reason in made.reason


def test_what_was_not_read_is_unknown(evidence: Evidence) -> None:
    """A receipt without a reading passes nothing."""
    assert {name: check.status for name, check in checks(evidence, None).items()} == {"hardware.power_limit": "unknown"}
    blank = {key: value for key, value in GPU.items() if key not in ("power_enforced_w", "reasons")}
    assert {check.status for check in checks(evidence, [blank]).values()} == {"unknown"}


def test_lock_that_states_no_limit(evidence: Evidence) -> None:
    """Without a stated limit only slowing down is judged, and nothing where no GPU was there."""
    assert list(checks(evidence, [GPU], power=None)) == ["hardware.throttle"]
    assert checks(evidence, None, power=None) == {}
    assert not [each for each in verify_receipts(evidence.opened, evidence.receipts) if each.id.startswith("hardware")]


def test_the_checks_are_part_of_a_verdict(evidence: Evidence) -> None:
    """`verify` makes them."""
    slow = GPU | {"reasons": ["hw_slowdown"]}
    (first, *rest) = evidence.measures
    changed = edited(first, lambda data: data["conditions"].update(gpus=[slow]))
    found = dataclasses.replace(evidence, measures=(changed, *rest))
    made = {check.id: check.status for check in verify_receipts(found.opened, found.receipts)}
    assert made["hardware.throttle"] == "failed"

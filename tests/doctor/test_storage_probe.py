"""The probe itself: what it does to a disk, and that no silent fault of a plugin passes it."""

import sys
from pathlib import Path

import pytest

from reproducer.doctor.checks import Checked, outcome
from reproducer.doctor.storage import STEPS, Needs, probe_storage
from reproducer.errors import Outcome
from reproducer.progress import Silent
from tests.doctor.conftest import Interpreter

NOTHING = Needs(None, direct=False)
CELL = "nixl.posix_aio.buffered"
LARGE = 20 << 20


def checks_of(python: Path, place: Path, needs: Needs = NOTHING) -> dict[str, Checked]:
    """Every check by id; nothing is left in the folder."""
    checks = probe_storage(python, place, needs, reporter=Silent(), large=LARGE, deadline_s=30)
    assert list(place.iterdir()) == []
    found = {check.id: check for check in checks}
    assert len(found) == len(checks)
    return found


def test_an_honest_plugin_passes(beside: Interpreter, place: Path) -> None:
    """Every step of an engine that does what it says passes, with its rate beside the disk's own."""
    found = checks_of(beside(""), place)
    assert {step: found[f"{CELL}.{step}"].status for step in STEPS} == dict.fromkeys(STEPS, "passed")
    rates = found[f"{CELL}.large"].rates
    assert rates is not None
    assert rates.disk_write_mib_s is not None
    assert rates.write_ratio == pytest.approx(rates.write_mib_s / rates.disk_write_mib_s, abs=0.01)
    assert found["disk.buffered.rate"].rates is not None


@pytest.mark.parametrize(
    ("fault", "step"),
    [
        ("first bit lost", "round_trip"),
        ("two files exchanged", "many_files"),
        ("threads disturb", "threads"),
        ("last piece forgotten", "large"),
        ("large calls short", "one_descriptor"),
        ("aligned silently", "unaligned"),
        ("writes beside", "unaligned"),
        ("end of file ignored", "truncated"),
    ],
)
def test_a_silent_fault_is_found(beside: Interpreter, place: Path, fault: str, step: str) -> None:
    """A plugin that reports success over wrong bytes fails exactly the step that looks for that."""
    found = checks_of(beside(fault), place)
    failed = [name for name in STEPS if found[f"{CELL}.{name}"].status == "failed"]
    assert failed == [step]
    assert found[f"{CELL}.{step}"].reason
    assert found[f"{CELL}.{step}"].todo


def test_another_engine_than_asked_for(beside: Interpreter, place: Path) -> None:
    """A plugin that quietly takes another engine does not pass as io_uring, and its rates are not shown as such."""
    found = checks_of(beside(""), place, Needs("io_uring", direct=False))
    first = found["nixl.io_uring.buffered.open"]
    assert first.status == "failed"
    assert "asked for use_uring, and the process holds neither" in first.reason
    assert found["nixl.io_uring.buffered.large"].status == "skipped"
    assert "open did not pass" in found["nixl.io_uring.buffered.large"].reason
    assert outcome(found.values(), about="nixl.") is Outcome.CONFIGURATION_DIFFERS


@pytest.mark.parametrize("python", ["", "no plugin"])
def test_a_runtime_without_the_plugin(beside: Interpreter, place: Path, python: str) -> None:
    """Without the package or its plugin the disk is still measured, and every engine is skipped and says why."""
    found = checks_of(beside(python) if python else Path(sys.executable), place, Needs("io_uring", direct=True))
    assert found["disk.buffered.rate"].status == "passed"
    assert found["nixl.load"].status == "failed"
    assert ("no POSIX plugin" if python else "nixl") in found["nixl.load"].reason
    assert found[f"{CELL}.open"].status == "skipped"
    assert found[f"{CELL}.open"].reason == "nixl.load did not pass"
    assert outcome(found.values(), about="nixl.") is Outcome.CONFIGURATION_DIFFERS

"""Power limits and what slows GPUs down are read while samples are taken, and stand in the receipt (R15)."""

import dataclasses
import os
import time
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.measured import Conditions
from reproducer.gpus import Card, Cards
from reproducer.host import host_facts
from reproducer.qualify.conditions import Watch, conditions
from reproducer.qualify.gpus import GpuWatch, seen, together
from tests.doctor.conftest import executable

CARD = Card("Some GPU", "610.57.04", 96 << 30, "12.0", 450.0, 450.0, ("gpu_idle",))


def test_what_is_seen_between_beginning_and_end() -> None:
    """A limit that drops and a reason that comes and goes between two looks of a person stay in what was seen."""
    busy = dataclasses.replace(CARD, power_enforced_w=300.0, reasons=("hw_thermal_slowdown", "sw_power_cap"))
    answers = [Cards((busy,)), Cards((CARD,)), Cards(fault="once nothing")]
    watch = GpuWatch(lambda: answers.pop(0) if answers else Cards((CARD,)), 0.01, [(CARD,)])
    watch.start()
    deadline = time.monotonic() + 10
    while len(watch.readings) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    (gpu,) = watch.end()
    after = len(watch.readings)
    assert gpu.power_requested_w == (450.0, 450.0)
    assert gpu.power_enforced_w == (300.0, 450.0)
    assert gpu.reasons == ("gpu_idle", "hw_thermal_slowdown", "sw_power_cap")
    assert gpu.readings == after >= 4
    time.sleep(0.05)
    assert len(watch.readings) == after


def test_what_the_driver_does_not_say_stays_unknown() -> None:
    """One reading without a value leaves the whole range unknown; the other GPU is not touched by it."""
    blank = dataclasses.replace(CARD, driver=None, power_enforced_w=None, reasons=None, memory_bytes=None)
    first, second = seen([(CARD, CARD), (blank, CARD)])
    assert first.power_enforced_w is None
    assert first.reasons is None
    assert first.driver == "610.57.04 or unknown"
    assert second.power_enforced_w == (450.0, 450.0)


def test_samples_together() -> None:
    """Ranges, reasons and readings of several samples are one; a sample without a reading leaves nothing known."""
    one = seen([(dataclasses.replace(CARD, clock_sm_mhz=1980.0, temperature_c=60.0),)])
    slower = dataclasses.replace(CARD, power_enforced_w=449.0, reasons=("sw_power_cap",), clock_sm_mhz=1200.0)
    two = seen([(slower,)] * 2)
    found = together([one, two])
    assert found is not None
    assert found[0].power_enforced_w == (449.0, 450.0)
    assert found[0].clock_sm_mhz == (1200.0, 1980.0)
    assert found[0].temperature_c is None
    assert found[0].reasons == ("gpu_idle", "sw_power_cap")
    assert found[0].readings == 3
    assert together([one, None]) is None
    assert together([]) is None


def _stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    executable(tmp_path / "nvidia-smi", f"#!/bin/sh\n{body}\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for place in ("reproducer.gpus.looking.from_nvml", "reproducer.qualify.gpus.from_nvml"):
        monkeypatch.setattr(place, lambda: None)


def test_conditions_of_a_measure_name_the_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program in the place of nvidia-smi is asked while a sample is taken, and the receipt's conditions have it."""
    monkeypatch.setattr("reproducer.qualify.gpus._PROGRAM_PERIOD_S", 0.05)
    row = "Some GPU, 610.57.04, 98304, 450.00, 450.00, 12.0, 0x0000000000000004, 1980, 2619, 41, 118.22, 97"
    _stand_in(tmp_path, monkeypatch, f"echo x >> {tmp_path}/asked; echo '{row}'")
    watch = Watch.begin(os.getpid())
    time.sleep(0.5)
    made = conditions([watch.end()], tmp_path, "unknown")
    assert made.gpus is not None
    (gpu,) = made.gpus
    assert (gpu.power_requested_w, gpu.power_enforced_w, gpu.reasons) == (
        (450.0, 450.0),
        (450.0, 450.0),
        ("sw_power_cap",),
    )
    assert (gpu.clock_sm_mhz, gpu.clock_memory_mhz, gpu.temperature_c) == ((1980, 1980), (2619, 2619), (41, 41))
    assert (gpu.power_w, gpu.utilisation_percent) == ((118.22, 118.22), (97, 97))
    assert 2 <= gpu.readings <= len((tmp_path / "asked").read_text().splitlines())
    data = made.model_dump_json()
    assert Conditions.model_validate_json(data) == made


def test_a_program_that_knows_no_clocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older nvidia-smi is asked again for what it knows; what it does not stays unknown."""
    row = "Some GPU, 610.57.04, 98304, 450.00, 450.00, 12.0, 0x0000000000000004"
    unknown = 'case "$*" in *clocks.current*) echo \'Field "x" is not a valid field to query.\'; exit 2;; esac'
    _stand_in(tmp_path, monkeypatch, f"{unknown}\necho '{row}'")
    made = conditions([Watch.begin(os.getpid()).end()], tmp_path, "unknown")
    assert made.gpus is not None
    assert made.gpus[0].reasons == ("sw_power_cap",)
    assert made.gpus[0].clock_sm_mhz is None


def test_no_gpu_leaves_receipts_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine without a GPU the key does not stand in the document, so digests of old receipts hold."""
    _stand_in(tmp_path, monkeypatch, "exit 9")
    made = conditions([Watch.begin(os.getpid()).end()], tmp_path, "unknown")
    assert made.gpus is None
    old: Any = Conditions(host=host_facts(tmp_path), load_average=(0.0, 0.0), cache_state="unknown")
    assert "gpus" not in old.model_dump(exclude_none=True)

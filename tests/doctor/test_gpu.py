"""GPUs as nvidia-smi tells of them, and what a lock asks of them."""

import dataclasses
import os
import time
from pathlib import Path
from typing import Any

import pytest

from reproducer.doctor.checks import Checked, outcome
from reproducer.doctor.gpu import check_gpu, needs_gpu, refuse_gpu, version_of
from reproducer.documents.lock import Lock
from reproducer.errors import ConfigurationError
from reproducer.gpus import Card, Cards, look
from reproducer.gpus.card import reasons_of
from reproducer.gpus.smi import from_smi
from tests.doctor.conftest import executable
from tests.identity.factory import lock_data

CARD = Card(
    name="NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
    driver="610.57.04",
    memory_bytes=97887 << 20,
    compute_capability="12.0",
    power_requested_w=450.0,
    power_enforced_w=450.0,
    reasons=("sw_power_cap",),
)
ROW = f"{CARD.name}, 610.57.04, 97887, 450.00, 450.00, 12.0, 0x0000000000000004"


def wanting(**hardware: Any) -> Lock:
    """A lock of that GPU."""
    data = lock_data()
    data["toolchain"] |= {"cuda": "13.3", "driver": "610.57.04"}
    data["hardware"] = {
        "gpu": CARD.name,
        "count": 1,
        "compute_capability": "12.0",
        "memory_gb": 96,
        "power_limit_w": 450,
    } | hardware
    return Lock.from_data(data, where="lock")


def checks(lock: Lock | None, *cards: Card) -> dict[str, Checked]:
    """Every check by id."""
    found = Cards(cards, "" if cards else "there is no nvidia-smi on PATH")
    return {check.id.removeprefix("host."): check for check in check_gpu(lock, found)}


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a program in the place of nvidia-smi and hides the driver's own library."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("reproducer.gpus.looking.from_nvml", lambda: None)
    return lambda body: executable(tmp_path / "nvidia-smi", f"#!/bin/sh\n{body}\n")


def test_one_row_a_gpu(smi: Any) -> None:
    """Name, driver, memory, capability, both power limits and reasons are read, unit by unit."""
    smi(f"cat <<'END'\n{ROW}\n{ROW.replace('0x0000000000000004', '0x0000000000000048')}\nEND")
    found = look()
    assert found.found == (CARD, dataclasses.replace(CARD, reasons=("hw_slowdown", "hw_thermal_slowdown")))
    assert found.fault == ""
    assert found.alike


def test_what_an_h200_says(smi: Any) -> None:
    """The row that driver 580.159.04 gave for an idle H200."""
    smi("echo 'NVIDIA H200, 580.159.04, 143771, 700.00, 700.00, 9.0, 0x0000000000000001'")
    assert look().found == (Card("NVIDIA H200", "580.159.04", 150754820096, "9.0", 700.0, 700.0, ("gpu_idle",)),)


@pytest.mark.parametrize(
    "word", ["[N/A]", "[Not Supported]", "[Unknown Error]", "ERR!", "", "nan", "-1", "1e9", "9" * 30]
)
def test_what_the_driver_does_not_say_is_none(smi: Any, word: str) -> None:
    """A word in place of a number is unknown and never a default."""
    smi(f"cat <<'END'\nSome GPU, {word}, {word}, {word}, {word}, {word}, {word}\nEND")
    assert look().found == (Card("Some GPU", None, None, None, None, None, None),)


def test_older_program_that_knows_fewer_fields(smi: Any) -> None:
    """Where one of the newer fields is unknown the older ones are asked for alone."""
    smi(
        'case "$1" in *compute_cap*) echo \'Field "compute_cap" is not a valid field to query.\'; exit 2;; esac\n'
        "echo 'Old GPU, 470.82.01, 16160, 250.00, 250.00'"
    )
    assert look().found == (Card("Old GPU", "470.82.01", 16160 << 20, None, 250.0, 250.0, None),)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "echo 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.'; exit 9",
            "exit code 9",
        ),
        ("echo 'No devices were found'", "said what it does not say of a GPU"),
        ("exit 0", "names no GPU"),
        ("printf 'A\\033[2J, 1, 1, 1, 1, 1, 1\\n'", "said what it does not say"),
        ("echo 'a, b'", "said what it does not say"),
        ("yes 'A GPU, 1, 1, 1, 1, 1, 0x1' | head -70", "more than 64 GPUs"),
        ("yes", "more than 65536 bytes"),
        ("kill -9 $$", "exit code -9"),
    ],
)
def test_program_that_says_nothing_of_use(smi: Any, body: str, said: str) -> None:
    """A failing, endless or lying program is a reason, bounded and printable, and no GPU."""
    smi(body)
    found = look()
    assert found.found == ()
    assert said in found.fault
    assert found.fault.isprintable()
    assert len(found.fault) < 300


def test_program_that_hangs(smi: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is ended after its time, and so is what it started."""
    monkeypatch.setattr(
        "reproducer.gpus.smi.ask",
        lambda command: __import__("reproducer.programs").programs.ask(command, patience_s=0.5),
    )
    smi(f"sleep 60 & echo $! > {tmp_path}/child; wait")
    began = time.monotonic()
    found = from_smi()
    assert found is not None
    assert "no answer within 0.5 seconds" in found.fault
    assert time.monotonic() - began < 10
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 5
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        state = Path(f"/proc/{child}/stat").read_text().rpartition(") ")[2][:1]
        if state == "Z":
            break
        time.sleep(0.05)
    else:
        assert not Path(f"/proc/{child}").exists()


def test_no_program_and_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of them is a reason too."""
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("reproducer.gpus.looking.from_nvml", lambda: None)
    assert look() == Cards(fault="there is no nvidia-smi on PATH and no driver's library")


def test_reasons_that_nobody_knows() -> None:
    """A bit without a name is shown by its value and not dropped."""
    assert reasons_of(0x1004) == ("sw_power_cap", "unknown (0x1000)")


def test_machine_that_fits() -> None:
    """Everything the lock states holds."""
    made = checks(wanting(), CARD)
    assert {check.status for check in made.values()} == {"passed"}
    assert outcome(made.values()).exit_code == 0
    assert all(made[name].needed for name in ("gpu", "driver", "gpu.compute_capability"))


@pytest.mark.parametrize(
    ("change", "ident", "code"),
    [
        ({"driver": "580.65.06"}, "driver", 68),
        ({"driver": "610.57.03"}, "driver", 68),
        ({"driver": "61.99"}, "driver", 68),
        ({"compute_capability": "9.0"}, "gpu.compute_capability", 68),
        ({"memory_bytes": 80 * 10**9}, "gpu.memory", 68),
        ({"name": "NVIDIA H200"}, "gpu.model", 0),
        ({"power_enforced_w": 600.0, "power_requested_w": 600.0}, "gpu.power_limit", 0),
        ({"power_enforced_w": 300.0}, "gpu.power_limit", 0),
        ({"reasons": ("hw_thermal_slowdown",)}, "gpu.throttle", 0),
    ],
)
def test_machine_that_does_not_fit(change: dict[str, Any], ident: str, code: int) -> None:
    """An older driver (R13), another capability (R12), less memory end with 68; what moves numbers is told (R15)."""
    made = checks(wanting(), dataclasses.replace(CARD, **change))
    failed = [name for name, check in made.items() if check.status == "failed"]
    assert failed == [ident]
    assert made[ident].reason
    assert made[ident].todo
    assert outcome(made.values()).exit_code == code


@pytest.mark.parametrize("driver", ["610.57.04", "610.57.4", "610.58", "611.0", "1000.1"])
def test_driver_that_is_new_enough(driver: str) -> None:
    """Versions are compared number by number and not as text."""
    assert checks(wanting(), dataclasses.replace(CARD, driver=driver))["driver"].status == "passed"


def test_rounded_memory() -> None:
    """A lock states gigabytes, rounded to one place; the card it was taken on has enough."""
    h200 = dataclasses.replace(CARD, memory_bytes=150754820096)
    assert checks(wanting(memory_gb=150.8), h200)["gpu.memory"].status == "passed"
    assert checks(wanting(memory_gb=153), h200)["gpu.memory"].status == "failed"


def test_a_walk_is_refused_before_anything_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver's floor is checked first (R13); a lock for a CPU asks for no GPU at all."""
    old = dataclasses.replace(CARD, driver="580.65.06", memory_bytes=1)
    monkeypatch.setattr("reproducer.doctor.gpu.look", lambda: Cards((old,)))
    with pytest.raises(ConfigurationError) as caught:
        refuse_gpu(wanting(), where="lock")
    assert caught.value.exit_code == 68
    assert caught.value.why.startswith("host.driver: the driver is older")
    assert "host.gpu.memory" in caught.value.why
    monkeypatch.setattr("reproducer.doctor.gpu.look", lambda: Cards((CARD,)))
    refuse_gpu(wanting(), where="lock")
    monkeypatch.setattr("reproducer.doctor.gpu.look", lambda: pytest.fail("nobody was to look"))
    refuse_gpu(Lock.from_data(lock_data(), where="lock"), where="lock")


def test_versions_of_drivers() -> None:
    """Numbers between dots; nothing else is a version."""
    assert version_of("580.65.06") == (580, 65, 6)
    assert version_of("580.0") == (580,)
    for text in ("", "580.", "v580", "580.65-rc1", "unknown", "1" * 40):
        assert version_of(text) is None


def test_power_limit_that_was_set_and_does_not_hold() -> None:
    """Requested and effective limit are told apart (R15)."""
    check = checks(wanting(), dataclasses.replace(CARD, power_enforced_w=300.0))["gpu.power_limit"]
    assert check.got == "450 W set, 300 W holds"
    assert "it was set, and another limit holds" in check.reason
    other = checks(wanting(), dataclasses.replace(CARD, power_enforced_w=600.0, power_requested_w=600.0))
    assert "another limit is set" in other["gpu.power_limit"].reason
    assert "nvidia-smi -pl 450" in other["gpu.power_limit"].todo


def test_one_of_several_cards_is_enough_to_fail() -> None:
    """Every GPU must fit, and there must be as many as the lock counts."""
    two = wanting(count=2)
    assert checks(two, CARD)["gpu"].status == "failed"
    assert "1 of 2 GPUs" in checks(two, CARD)["gpu"].reason
    assert checks(two, CARD, CARD)["gpu"].status == "passed"
    old = dataclasses.replace(CARD, driver="570.1")
    assert checks(two, CARD, old)["driver"].status == "failed"


def test_no_gpu() -> None:
    """Without a GPU the lock's need fails and the rest is skipped; a lock for a CPU and no lock skip it all."""
    made = checks(wanting())
    assert made["gpu"].status == "failed"
    assert made["gpu"].needed
    assert "no nvidia-smi" in made["gpu"].reason
    assert {check.status for name, check in made.items() if name != "gpu"} == {"skipped"}
    assert outcome(made.values()).exit_code == 68
    cpu = Lock.from_data(lock_data(), where="lock")
    assert not needs_gpu(cpu)
    assert {check.status for check in checks(cpu).values()} == {"skipped"}
    assert {check.status for check in checks(None).values()} == {"skipped"}
    assert checks(None, CARD)["gpu"].got.startswith(CARD.name)


def test_what_nobody_knows_is_unknown() -> None:
    """`unknown` in the lock, and what the driver does not say, are neither passed nor failed."""
    made = checks(wanting(gpu="unknown", compute_capability="unknown"), CARD)
    assert made["gpu.model"].status == made["gpu.compute_capability"].status == "unknown"
    blank = dataclasses.replace(
        CARD, driver=None, memory_bytes=None, compute_capability=None, power_enforced_w=None, reasons=None
    )
    made = checks(wanting(), blank)
    for name in ("driver", "gpu.memory", "gpu.compute_capability", "gpu.power_limit", "gpu.throttle"):
        assert made[name].status == "unknown", name
    assert outcome(made.values()).exit_code == 96

"""What is seen of GPUs: the limit that was asked for and the one that holds (R15), as nvidia-smi says them."""

from pathlib import Path

import pytest

from reproducer.freeze.machine import libraries, look, toolchain_compiler

ROW = "NVIDIA H200, 9.0, 143771, 700.00, 450.00, 580.65.06"


def said(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, status: int = 0) -> None:
    """A program of that name that says this, first on PATH."""
    program = folder / "nvidia-smi"
    (folder / "text").write_text(text)
    program.write_text(f"#!/bin/sh\ncat {folder / 'text'}\nexit {status}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_requested_and_effective_power_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R15: a limit of 700 W was asked for and 450 W hold; both stand in the lock's hardware, under their own names."""
    said(tmp_path, monkeypatch, f"{ROW}\n{ROW}\n")
    machine = look({})
    hardware = machine.hardware
    assert hardware is not None
    assert (hardware.gpu, hardware.count, hardware.compute_capability) == ("NVIDIA H200", 2, "9.0")
    assert (hardware.power_limit_w, hardware.requested_power_limit_w) == (450, 700)
    assert hardware.memory_gb == 150.8
    assert machine.driver == "580.65.06"


def test_only_the_visible_gpus_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA_VISIBLE_DEVICES of the server says which."""
    said(tmp_path, monkeypatch, f"Other, 8.0, 1, 1, 1, 1\n{ROW}\n")
    assert look({}).hardware is None  # not all alike
    hardware = look({"CUDA_VISIBLE_DEVICES": "1"}).hardware
    assert hardware is not None
    assert hardware.gpu == "NVIDIA H200"


def test_what_the_driver_does_not_say_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`[N/A]`, an error and rubbish are never taken for a number or a name."""
    said(tmp_path, monkeypatch, "GPU, [N/A], [N/A], [Not Supported], [Unknown Error], 580.1\n")
    (gpu,) = look({}).gpus
    assert (gpu.compute_capability, gpu.memory_mib, gpu.power_limit_w, gpu.enforced_power_limit_w) == (
        "unknown",
        None,
        None,
        None,
    )
    said(tmp_path, monkeypatch, "NVIDIA-SMI has failed\n", status=9)
    assert look({}).gpus == ()
    assert look({}).driver == "unknown"


def test_compilers_say_their_versions() -> None:
    """The first one that is there compiles what the runtime compiles at run time."""
    assert toolchain_compiler({"cc": "none", "gcc": "12.2.0"}) == "gcc 12.2.0"
    assert toolchain_compiler({"cc": "none"}) == "none"


def test_libraries_belong_to_their_distributions(tmp_path: Path) -> None:
    """A library among packages has its project as owner; what is no ELF file has no build id, and is no fault."""
    path = tmp_path / "site" / "pkg" / "x.so"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not an ELF file")
    (found,) = libraries(
        (str(path), "/dev/zero (deleted)", str(tmp_path / "data.bin")), {tmp_path / "site": {"pkg/x.so": "thing"}}
    )
    assert (found.name, found.owner, found.build_id) == ("x.so", "thing", "unknown")

"""Compilers, the CUDA toolkit and build tools against the versions that a lock names."""

from pathlib import Path
from typing import Any

import pytest

from reproducer.doctor.checks import Checked, outcome
from reproducer.doctor.toolchain import check_toolchain, version_said
from reproducer.documents.lock import Lock
from tests.doctor.conftest import executable
from tests.identity.factory import lock_data

SAID = {
    "gcc-15": "gcc-15 (Fedora 15.3.1-4) 15.3.1 20260610 (Red Hat 15.3.1-4)\nCopyright",
    "nvcc": "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 13.3, V13.3.73\nBuild cuda_13.3",
    "rustc": "rustc 1.97.1 (8460ca823 2026-05-09)",
    "python3.12": "Python 3.12.13",
}


def locked(**toolchain: Any) -> Lock:
    """A lock with that toolchain."""
    data = lock_data()
    data["toolchain"] |= toolchain
    return Lock.from_data(data, where="lock")


FULL: dict[str, Any] = {
    "compiler": "gcc-15 15.3.1",
    "cuda": "13.3",
    "tools": {"nvcc": "13.3.73", "rustc": "1.97.1", "python3.12": "3.12.13"},
}


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs that say their versions, and nothing else on PATH but a shell."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in SAID.items():
        say(folder, name, text)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr("reproducer.doctor.toolchain._USUAL_CUDA", tmp_path / "none")
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    return folder


def say(folder: Path, name: str, text: str) -> None:
    """A program that says this."""
    (folder / f"{name}.said").write_text(text)
    executable(folder / name, f"#!/bin/sh\n/bin/cat '{folder}/{name}.said'\n")


def checks(lock: Lock | None) -> dict[str, Checked]:
    """Every check by id."""
    return {check.id.removeprefix("host."): check for check in check_toolchain(lock)}


def test_versions_that_agree(tools: Path) -> None:
    """The compiler, CUDA and every tool are what the lock names; `13.3` takes any 13.3."""
    made = checks(locked(**FULL))
    assert sorted(made) == ["compilers", "cuda", "tools.nvcc", "tools.python3.12", "tools.rustc"]
    assert {(check.status, check.needed) for check in made.values()} == {("passed", True)}
    assert made["compilers"].got == "gcc-15 15.3.1"
    assert made["cuda"].got == "nvcc 13.3.73"
    assert outcome(made.values()).exit_code == 0
    assert tools.is_dir()


@pytest.mark.parametrize(
    ("name", "text", "ident"),
    [
        ("gcc-15", "gcc-15 (Fedora 15.3.1-4) 15.2.0 20260610", "compilers"),
        ("nvcc", "Cuda compilation tools, release 13.0, V13.0.88", "cuda"),
        ("nvcc", "Cuda compilation tools, release 13.30, V13.30.1", "cuda"),
        ("rustc", "rustc 1.97.10", "tools.rustc"),
        ("python3.12", "Python 3.12.1", "tools.python3.12"),
    ],
)
def test_version_that_differs(tools: Path, name: str, text: str, ident: str) -> None:
    """Another version is a failed need with what was found and what to do; numbers are whole numbers."""
    say(tools, name, text)
    check = checks(locked(**FULL))[ident]
    assert (check.status, check.needed) == ("failed", True)
    assert check.got
    assert check.todo
    assert "another version" in check.reason


@pytest.mark.parametrize("name", sorted(SAID))
def test_program_that_is_missing(tools: Path, name: str) -> None:
    """A program that is not there is named."""
    (tools / name).unlink()
    failed = [check for check in checks(locked(**FULL)).values() if check.status == "failed"]
    assert failed
    assert all(name in check.reason and check.needed and check.todo for check in failed)


@pytest.mark.parametrize("body", ["exit 3", "echo no numbers", "yes", "printf '\\377\\376 1.2'; exit 1"])
def test_program_that_says_nothing_of_use(tools: Path, body: str) -> None:
    """A program that fails, floods or names no version leaves the need unknown."""
    executable(tools / "gcc-15", f"#!/bin/sh\nPATH=/bin:/usr/bin\n{body}\n")
    check = checks(locked(**FULL))["compilers"]
    assert check.status == "unknown"
    assert "does not say its version" in check.reason


def test_cuda_in_its_own_folder(tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CUDA compiler is also found where CUDA_HOME says."""
    (tmp_path / "cuda" / "bin").mkdir(parents=True)
    (tools / "nvcc").unlink()
    say(tmp_path / "cuda" / "bin", "nvcc", SAID["nvcc"])
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert checks(locked(**FULL))["cuda"].status == "passed"
    assert checks(locked(**FULL))["tools.nvcc"].status == "passed"


def test_a_lock_that_names_nothing(tools: Path) -> None:
    """What the lock does not state is skipped, and `unknown` is unknown."""
    assert {check.status for check in checks(None).values()} == {"skipped"}
    assert {check.status for check in checks(locked()).values()} == {"skipped"}
    made = checks(locked(compiler="unknown", cuda="unknown", tools={"rustc": "unknown"}))
    assert {check.status for check in made.values()} == {"unknown"}
    assert tools.is_dir()


def test_compiler_without_a_version(tools: Path) -> None:
    """A lock that names only the program takes any version of it, and no path."""
    assert checks(locked(compiler="gcc-15"))["compilers"].status == "passed"
    assert checks(locked(compiler=f"{tools}/gcc-15"))["compilers"].status == "failed"


def test_version_of_a_real_program() -> None:
    """The Python that runs this says its own version."""
    import sys

    assert version_said(sys.executable) == ".".join(map(str, sys.version_info[:3]))

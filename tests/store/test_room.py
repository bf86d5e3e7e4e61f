"""Want of room, where another program met it or a part of the disk is left free on purpose, is told as what it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reproducer.store.faults import free_bytes, full, full_for_another

MAKE = """
import resource, sys
from pathlib import Path
from reproducer.build.environment import _make_venv, installer
from reproducer.errors import PennyError
folder = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
try:
    _make_venv(installer()[0], folder / "venv", python=sys.argv[2], home=folder, log=folder / "log", offline=True)
except PennyError as error:
    print(error.exit_code, error)
"""


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("error: write: No space left on device | fatal: x", "the disk is full"),
        ("error: Disk quota exceeded", "the disk quota is used up"),
        ("failed to write to file `x`: File too large (os error 27)", "a file reached the size limit"),
    ],
)
def test_another_program_had_no_room(said: str, problem: str, tmp_path: Path) -> None:
    """What it says of the disk is the error, with the folder and the bytes that are free."""
    error = full_for_another(said, tmp_path, what="a mirror")
    assert error is not None
    assert (error.what, error.where, error.exit_code) == (problem, str(tmp_path), 96)
    assert error.why.startswith("writing a mirror, ")


def test_another_program_failed_for_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts as that while there is room; one that is silent on a disk without any had none."""
    assert full_for_another("error: no such branch", tmp_path, what="a mirror") is None
    monkeypatch.setattr("reproducer.store.faults.free_bytes", lambda _folder: 4096)
    error = full_for_another("", tmp_path, what="a mirror")
    assert error is not None
    assert error.why == "writing a mirror, 4096 are free"


def test_what_is_left_free_is_told(tmp_path: Path) -> None:
    """A disk that has more than the files need, but not what is to be left over, is told with both numbers."""
    error = full(tmp_path, what="fetching 6 files", needed=5823, spare=16)
    assert error.why.startswith("fetching 6 files needs 5823 bytes and 16 to spare, ")
    assert (free_bytes(tmp_path) or 0) > 0


def test_an_environment_without_room(tmp_path: Path) -> None:
    """A limit of the size of files that stops uv is told as one, and not as a Python that is missing."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    run = subprocess.run(
        [sys.executable, "-c", MAKE, str(tmp_path), python, "2000"],
        env={**os.environ, "UV_PYTHON_DOWNLOADS": "never"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert run.stdout.startswith(f"96 {tmp_path}: a file reached the size limit (writing an environment for Python")

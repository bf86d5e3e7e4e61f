"""A temporary folder of each test's own, so that it waits for no penny at work on this machine."""

import tempfile
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def private_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns at measuring are taken in a folder of the test's own."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))

"""A report by diffoscope: kept as text, bounded, and no word about the level."""

import os
import time
from pathlib import Path

import psutil
import pytest

from reproducer.errors import NotCheckedError
from reproducer.rebuild.diffoscope import diffoscope_here, write_details


def stand_in(folder: Path, body: str) -> Path:
    """A program in place of diffoscope; `$report` is the file that it must write."""
    program = folder / "diffoscope"
    program.write_text(f'#!/bin/sh\nfor each; do [ "$before" = --text ] && report=$each; before=$each; done\n{body}\n')
    program.chmod(0o755)
    return program


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two files."""
    files = tmp_path / "-a", tmp_path / "b"
    for each in files:
        each.write_text(f"{each.name}\n")
    return files


def test_real(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """Where diffoscope is installed its report names both files."""
    if diffoscope_here() is None:
        pytest.skip("diffoscope is not installed")
    write_details(*pair, tmp_path / "report.txt")
    text = (tmp_path / "report.txt").read_text()
    assert str(pair[0]) in text
    assert "+b" in text


def test_kept(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """What it writes is kept; the paths cannot be taken for options, and its environment is scrubbed."""
    os.environ["PENNY_TEST_KEPT"] = "x"
    try:
        program = stand_in(tmp_path, 'echo "$@ [$PENNY_TEST_KEPT]" > "$report"; exit 1')
        write_details(*pair, tmp_path / "report.txt", program=program)
    finally:
        del os.environ["PENNY_TEST_KEPT"]
    assert (tmp_path / "report.txt").read_text().endswith(f"-- {pair[0]} {pair[1]} []\n")


def test_too_long(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """It ends in time, with everything that it started."""
    program = stand_in(tmp_path, f"sleep 300 & echo $! > {tmp_path}/child; wait")
    started = time.monotonic()
    with pytest.raises(NotCheckedError, match="took longer than 1 s"):
        write_details(*pair, tmp_path / "report.txt", program=program, timeout_s=1)
    assert time.monotonic() - started < 60
    child = int((tmp_path / "child").read_text())
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE
    assert not (tmp_path / "report.txt").exists()


def test_too_much_memory(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """It gets the memory that it is given and no more; failing, it says what."""
    program = stand_in(tmp_path, "sleep 1; head -c 400000000 /dev/zero | tail > /dev/null || exit 2")
    with pytest.raises(NotCheckedError, match="exit status 2"):
        write_details(*pair, tmp_path / "report.txt", program=program, memory=100 << 20)


def test_absent(pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it a report cannot be had, which is said."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotCheckedError, match="not installed"):
        write_details(*pair, tmp_path / "report.txt")

"""Run folders: an interrupted run is taken up, a running one is left alone."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reproducer.errors import NotCheckedError
from reproducer.runs import run_folder

HOLDER = """
import sys, time
from pathlib import Path
from reproducer.runs import run_folder
with run_folder(Path(sys.argv[1])) as run:
    (run.folder / "cell").write_text("half")
    print(run.folder, flush=True)
    time.sleep(60)
"""


def hold(parent: Path) -> "tuple[subprocess.Popen[str], Path]":
    """A process that is in the middle of a run."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(parent)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def end(process: "subprocess.Popen[str]") -> None:
    """Kill it as nobody can catch."""
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_folder_vanishes_when_the_run_ends_well(tmp_path: Path) -> None:
    """Nothing of a run that ended well stays behind."""
    with run_folder(tmp_path / "runs") as run:
        assert not run.resumed
        (run.folder / "cell").write_text("whole")
    assert list((tmp_path / "runs").iterdir()) == []


def test_interrupted_run_is_taken_up(tmp_path: Path) -> None:
    """After a fault in the middle the next run gets the same folder with what lies in it."""
    folders = []
    with pytest.raises(FileExistsError), run_folder(tmp_path) as first:  # noqa: PT012  the fault is in the middle
        folders.append(first.folder)
        (first.folder / "cell").write_text("half")
        (first.folder / "cell").touch(exist_ok=False)
    with run_folder(tmp_path) as second:
        assert second.resumed
        assert folders == [second.folder]
        assert (second.folder / "cell").read_text() == "half"


def test_killed_run_is_taken_up_and_a_living_one_is_not(tmp_path: Path) -> None:
    """A folder belongs to its process for as long as that lives, and to nobody right after kill -9."""
    process, folder = hold(tmp_path)
    try:
        with run_folder(tmp_path) as other:
            assert other.folder != folder
            assert not other.resumed
    finally:
        end(process)
    with run_folder(tmp_path) as after:
        assert after.folder == folder
        assert after.resumed


def test_two_at_once_have_a_folder_each(tmp_path: Path) -> None:
    """Processes that start together never share a folder."""
    started = [hold(tmp_path) for _ in range(4)]
    try:
        assert len({folder for _, folder in started}) == 4
    finally:
        for process, _ in started:
            end(process)


def test_unwritable_parent_is_one_clear_error(tmp_path: Path) -> None:
    """A parent that is a file is named in the error."""
    (tmp_path / "file").write_text("")
    with pytest.raises(NotCheckedError, match="no folder for this run"), run_folder(tmp_path / "file" / "runs"):
        pass

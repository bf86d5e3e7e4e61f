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
with run_folder(Path(sys.argv[1]), Path(sys.argv[2])) as run:
    run.pages.mkdir(parents=True)
    (run.folder / "cell").write_text("half")
    print(run.folder, flush=True)
    time.sleep(60)
"""


def hold(parent: Path) -> "tuple[subprocess.Popen[str], Path]":
    """A process that is in the middle of a run."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(parent), str(parent.parent / "kv")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def end(process: "subprocess.Popen[str]") -> None:
    """Kill it as nobody can catch."""
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def left(place: Path) -> list[Path]:
    """What is left of any run, in the store and of its pages."""
    return [*(place / "runs").glob("*"), *place.glob("*/qualification/*")]


def test_folder_vanishes_when_the_run_ends_well(tmp_path: Path) -> None:
    """Nothing of a run that ended well stays behind."""
    with run_folder(tmp_path / "runs", tmp_path / "kv") as run:
        assert not run.resumed
        (run.folder / "cell").write_text("whole")
        (run.pages / "root").mkdir(parents=True)
        (run.pages / "root" / "page").write_bytes(b"kv")
    assert left(tmp_path) == []


def test_interrupted_run_is_taken_up(tmp_path: Path) -> None:
    """After a fault in the middle the next run gets the same folder with what lies in it."""
    folders = []
    with pytest.raises(FileExistsError), run_folder(tmp_path / "runs", tmp_path / "kv") as first:  # noqa: PT012  the fault is in the middle
        folders.append(first.folder)
        (first.folder / "cell").write_text("half")
        first.pages.mkdir(parents=True)
        (first.folder / "cell").touch(exist_ok=False)
    with run_folder(tmp_path / "runs", tmp_path / "kv") as second:
        assert second.resumed
        assert folders == [second.folder]
        assert (second.folder / "cell").read_text() == "half"


def test_killed_run_is_taken_up_and_a_living_one_is_not(tmp_path: Path) -> None:
    """A folder belongs to its process for as long as that lives, and to nobody right after kill -9."""
    process, folder = hold(tmp_path / "runs")
    try:
        with run_folder(tmp_path / "runs", tmp_path / "kv") as other:
            assert other.folder != folder
            assert not other.resumed
    finally:
        end(process)
    with run_folder(tmp_path / "runs", tmp_path / "kv") as after:
        assert after.folder == folder
        assert after.resumed


def test_two_at_once_have_a_folder_each(tmp_path: Path) -> None:
    """Processes that start together never share a folder."""
    started = [hold(tmp_path / "runs") for _ in range(4)]
    try:
        assert len({folder for _, folder in started}) == 4
    finally:
        for process, _ in started:
            end(process)


def test_unwritable_parent_is_one_clear_error(tmp_path: Path) -> None:
    """A parent that is a file is named in the error."""
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(NotCheckedError, match="no folder for this run"),
        run_folder(tmp_path / "file" / "runs", tmp_path / "kv"),
    ):
        pass


def test_several_killed_runs_leave_one_to_take_up(tmp_path: Path) -> None:
    """Of several killed runs one is taken up; the others go at once, and what may still write to their pages ends."""
    started = [hold(tmp_path / "runs") for _ in range(3)]
    for process, _ in started:
        end(process)
    ended: list[Path] = []
    with run_folder(tmp_path / "runs", tmp_path / "kv", abandon=ended.append) as run:
        assert run.resumed
        assert left(tmp_path) == [run.folder, run.pages]
        assert {pages.name for pages in ended} == {folder.name for _, folder in started} - {run.folder.name}
    assert left(tmp_path) == []


def test_run_below_another_kv_folder_is_not_taken_up(tmp_path: Path) -> None:
    """Prompts that were written below one folder cannot be restored from another: the run begins anew, pages go."""
    process, folder = hold(tmp_path / "runs")
    end(process)
    with run_folder(tmp_path / "runs", tmp_path / "other") as run:
        assert not run.resumed
        assert run.folder != folder
        assert left(tmp_path) == [run.folder]
    assert left(tmp_path) == []


def test_run_whose_pages_are_gone_is_not_taken_up(tmp_path: Path) -> None:
    """Results that rest on pages which are gone (a temporary disk, another machine) are taken anew."""
    process, folder = hold(tmp_path / "runs")
    end(process)
    (tmp_path / "kv" / "qualification" / folder.name).rmdir()
    with run_folder(tmp_path / "runs", tmp_path / "kv") as run:
        assert not run.resumed


def test_half_removed_run_is_not_taken_up(tmp_path: Path) -> None:
    """A process killed while it removes its finished run leaves results without their pages: they are never used."""
    script = HOLDER.replace(
        "    time.sleep(60)", "    import os, reproducer.runs; reproducer.runs.remove_tree = lambda _: os._exit(9)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "runs"), str(tmp_path / "kv")]
    assert subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 9
    assert len(left(tmp_path)) == 2
    with run_folder(tmp_path / "runs", tmp_path / "kv") as run:
        assert not run.resumed
        assert left(tmp_path) == [run.folder]


def test_only_pages_of_the_run_itself_are_removed(tmp_path: Path) -> None:
    """A link in the store cannot name a folder that is removed: its name and its parent's must be those of the run."""
    process, folder = hold(tmp_path / "runs")
    end(process)
    precious = tmp_path / "qualification" / "precious"
    precious.mkdir(parents=True)
    (folder / "pages").unlink()
    (folder / "pages").symlink_to(precious)
    with run_folder(tmp_path / "runs", tmp_path / "kv") as run:
        assert not run.resumed
    assert precious.exists()


def test_disk_without_locks_is_one_clear_error(tmp_path: Path) -> None:
    """Where the file system locks no folder, there is an error and not one new folder after another."""
    script = (
        "import errno, fcntl, os, sys\n"
        "from pathlib import Path\n"
        "from reproducer.errors import NotCheckedError\n"
        "from reproducer.runs import run_folder\n"
        "def refuse(*_):\n"
        "    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))\n"
        "fcntl.flock = refuse\n"
        "try:\n"
        "    with run_folder(Path(sys.argv[1]), Path(sys.argv[1])): pass\n"
        "except NotCheckedError as error: print(error)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "runs")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    assert "no folder for this run (No locks available)" in ended.stdout

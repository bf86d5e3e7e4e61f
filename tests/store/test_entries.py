"""Folders that are built once."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reproducer.errors import DriftError, UnsafeInputError, UsageError
from reproducer.progress import Silent
from reproducer.store import Store
from reproducer.store.hashing import hash_tree, tree_digest

if TYPE_CHECKING:
    import subprocess

BUILD = """
import sys, time
from pathlib import Path
from reproducer.progress import Silent
from reproducer.store import Store
store, log, pause = Store(Path(sys.argv[1])), Path(sys.argv[2]), float(sys.argv[3])
with store.entry("runtime", "abc", reporter=Silent()) as entry:
    if not entry.complete:
        (entry.work / "file").write_text("content")
        with log.open("a") as file:
            file.write("built\\n")
        print("building", flush=True)
        time.sleep(pause)
        entry.commit()
    entry.check()
    print((entry.folder / "file").read_text(), flush=True)
"""


def build(store: Store, files: dict[str, str]) -> Path:
    """A sealed entry with these files and a link."""
    with store.entry("runtime", "abc", reporter=Silent()) as entry:
        for path, text in files.items():
            (entry.work / path).parent.mkdir(parents=True, exist_ok=True)
            (entry.work / path).write_text(text)
        (entry.work / "link").symlink_to("/usr/bin/env")
        entry.commit()
        return entry.folder


def test_a_folder_is_there_whole_after_the_commit(store: Store) -> None:
    """Not complete before, complete after; checking gives the tree's digest; nothing else stays."""
    with store.entry("runtime", "abc", reporter=Silent()) as entry:
        assert not entry.complete
        (entry.work / "a").write_text("1")
        assert not entry.complete
        assert not entry.folder.exists()
        entry.commit()
        assert entry.complete
        assert (entry.folder / "a").read_text() == "1"
        assert entry.check() == tree_digest(hash_tree(entry.folder))
    assert list((store.root / "work").iterdir()) == []
    assert list((store.root / "locks").iterdir()) == []


def test_work_that_is_not_committed_is_gone(store: Store) -> None:
    """A build that fails leaves nothing."""

    def fail() -> None:
        with store.entry("runtime", "abc", reporter=Silent()) as entry:
            (entry.work / "a").write_text("1")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list((store.root / "work").iterdir()) == []
    with store.entry("runtime", "abc", reporter=Silent()) as entry:
        assert not entry.complete


def test_committing_nothing_is_refused(store: Store) -> None:
    """An entry needs a work folder."""
    with store.entry("runtime", "abc", reporter=Silent()) as entry, pytest.raises(UsageError):
        entry.commit()


def _change(folder: Path) -> None:
    (folder / "sub" / "b").write_text("3")


def _remove(folder: Path) -> None:
    (folder / "sub" / "b").unlink()


def _add(folder: Path) -> None:
    (folder / "sub" / "c").write_text("3")


def _link_elsewhere(folder: Path) -> None:
    (folder / "link").unlink()
    (folder / "link").symlink_to("/usr/bin/false")


def _link_for_file(folder: Path) -> None:
    (folder / "sub" / "b").unlink()
    (folder / "sub" / "b").symlink_to("../a")


def _same_size(folder: Path) -> None:
    (folder / "a").write_text("9")
    os.utime(folder / "a", (0, 0))


def _break_seal(folder: Path) -> None:
    (folder.parent / "seal.json").write_text("{")


def _newer_seal(folder: Path) -> None:
    seal = json.loads((folder.parent / "seal.json").read_text())
    (folder.parent / "seal.json").write_text(json.dumps({**seal, "format": "penny-seal/2"}))


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (_change, "sub/b"),
        (_remove, "no such file"),
        (_add, "sub/c"),
        (_link_elsewhere, "link"),
        (_link_for_file, "sub/b"),
        (_same_size, "'a'"),
        (_break_seal, "seal"),
        (_newer_seal, "penny-seal/2"),
    ],
)
def test_every_change_is_found_and_set_aside(store: Store, damage: Callable[[Path], None], named: str) -> None:
    """The error names what differs; the folder is kept aside, never served, and can be built again."""
    folder = build(store, {"a": "1", "sub/b": "2"})
    damage(folder)
    with store.entry("runtime", "abc", reporter=Silent()) as entry:
        assert entry.complete
        with pytest.raises(DriftError, match="not what was sealed") as caught:
            entry.check()
        assert named in str(caught.value)
        assert not entry.complete
        assert not entry.folder.exists()
        (kept,) = (store.root / "damaged").iterdir()
        assert (kept / "content").is_dir()
        (entry.work / "a").write_text("1")
        entry.commit()
        assert entry.check().files == 1


def test_a_second_commit_replaces(store: Store) -> None:
    """A rebuilt folder takes the place of the one that is there, and the old one is gone."""
    build(store, {"a": "1"})
    folder = build(store, {"b": "2"})
    assert sorted(path.name for path in folder.iterdir()) == ["b", "link"]
    assert list((store.root / "work").iterdir()) == []


def test_two_processes_build_once(store: Store, tmp_path: Path, start: Callable[..., "subprocess.Popen[str]"]) -> None:
    """Both end well, one builds, the other waits and uses it."""
    processes = [start(BUILD, store.root, tmp_path / "log", 0.5) for _ in range(3)]
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert out.splitlines()[-1] == "content"
    assert (tmp_path / "log").read_text() == "built\n"
    assert list((store.root / "locks").iterdir()) == []


def test_kill_while_building_leaves_nothing(
    store: Store, tmp_path: Path, start: Callable[..., "subprocess.Popen[str]"]
) -> None:
    """After kill -9 in the middle, the next run sweeps, builds anew, and no lock file or work folder remains."""
    victim = start(BUILD, store.root, tmp_path / "log", 60)
    assert victim.stdout is not None
    assert victim.stdout.readline() == "building\n"
    victim.send_signal(signal.SIGKILL)
    victim.wait(10)
    assert len(list((store.root / "work").iterdir())) == 2
    assert len(list((store.root / "locks").iterdir())) == 1
    process = start(BUILD, store.root, tmp_path / "log", 0)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert out.splitlines()[-1] == "content"
    assert list((store.root / "work").iterdir()) == []
    assert list((store.root / "locks").iterdir()) == []


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "-x", "a" * 101, "a\n"])
def test_entries_have_plain_names(store: Store, name: str) -> None:
    """Kind and key never become a path that leads elsewhere."""
    for pair in ((name, "key"), ("kind", name)):
        with pytest.raises(UnsafeInputError), store.entry(*pair, reporter=Silent()):
            pass

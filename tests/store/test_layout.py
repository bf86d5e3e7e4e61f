"""The folders of a store, and what is refused."""

import hashlib
import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from reproducer.errors import NotCheckedError, PennyError, UnsafeInputError, UsageError
from reproducer.store import Store
from reproducer.store.layout import PIECES, private_folder, remove_tree, sweep

USE = """
import sys
from pathlib import Path
from reproducer.errors import PennyError
from reproducer.store import Store
try:
    store = Store(Path(sys.argv[1]))
    print(store.verified(sys.argv[2], 4, what="x") if sys.argv[2] else "-", flush=True)
    store.add_bytes(b"new")
    print("added")
except PennyError as error:
    print(error.exit_code, error)
"""
HOLD_WORK = """
import sys, time
from pathlib import Path
from reproducer.store import Store
store = Store(Path(sys.argv[1]))
with store.private_folder() as folder:
    (folder / "half").write_bytes(b"x" * 1000)
    (folder / "closed").mkdir()
    (folder / "closed" / "file").write_text("x")
    (folder / "closed").chmod(0o500)
    print(folder, flush=True)
    time.sleep(60)
"""


def plain_user() -> tuple[str, ...]:
    """A prefix under which root is bound by permissions like everybody else; skips where that cannot be had."""
    if os.geteuid() != 0:
        return ()
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("root without setpriv is bound by no permissions")
    prefix = (setpriv, "--bounding-set=-dac_override,-dac_read_search,-fowner", "--inh-caps=-all")
    if subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("setpriv cannot drop capabilities here")
    return prefix


def test_a_file_in_place_of_the_store(tmp_path: Path) -> None:
    """A store on a file is refused as such."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match=r"the store is not a folder"):
        Store(tmp_path / "file").prepare()
    with pytest.raises(UsageError, match=r"the store is not a folder"):
        Store(tmp_path / "file" / "below").prepare()
    assert (tmp_path / "file").read_text() == "x"


@pytest.mark.parametrize("piece", PIECES)
def test_a_link_in_place_of_a_piece(tmp_path: Path, piece: str) -> None:
    """A piece that leads elsewhere is refused, and nothing is written or swept there."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "folder").mkdir(parents=True)
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / piece).symlink_to(elsewhere)
    with pytest.raises(UnsafeInputError, match="symbolic link"):
        Store(tmp_path / "store").prepare()
    assert [path.name for path in elsewhere.iterdir()] == ["folder"]


def test_a_file_in_place_of_a_piece(tmp_path: Path) -> None:
    """A file where a folder belongs is refused by name."""
    (tmp_path / "blobs").write_text("x")
    with pytest.raises(UsageError, match="not a folder"):
        Store(tmp_path).prepare()


def test_the_store_itself_may_be_a_link(tmp_path: Path) -> None:
    """Where the store lies is the user's business: a link to another disk is fine."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    sha256 = Store(tmp_path / "link").add_bytes(b"x")
    assert Store(tmp_path / "real").has(sha256)


def test_a_newer_format_is_refused(store: Store) -> None:
    """What a newer penny wrote is left alone."""
    store.prepare()
    (store.root / "format").write_text("penny-store/2\n")
    with pytest.raises(NotCheckedError, match="written by a newer penny"):
        Store(store.root).has("0" * 64)


@pytest.mark.parametrize("text", ["", "something else", "penny-store/0", "penny-store/1\n\n", "penny-store/x"])
def test_what_is_no_store_is_refused(store: Store, text: str) -> None:
    """A format file that says something else belongs to somebody else."""
    store.prepare()
    (store.root / "format").write_text(text)
    with pytest.raises(NotCheckedError, match="not a store of penny"):
        Store(store.root).prepare()


def test_a_folder_without_permission(tmp_path: Path, start: Callable[..., "subprocess.Popen[str]"]) -> None:
    """A store that may not be made is one clear error."""
    prefix = plain_user()
    (tmp_path / "closed").mkdir(mode=0o500)
    process = start(USE, tmp_path / "closed" / "store", "", prefix=prefix)
    out, _ = process.communicate(timeout=30)
    assert out.splitlines()[1].startswith("96 "), out
    assert "no permission" in out
    assert str(tmp_path / "closed" / "store") in out


def test_a_read_only_store_serves_and_refuses_to_take(
    store: Store, start: Callable[..., "subprocess.Popen[str]"]
) -> None:
    """What is there can be used; adding is one clear error."""
    prefix = plain_user()
    sha256 = store.add_bytes(b"good")
    folders = [store.root, *(path for path in store.root.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o500)
    try:
        process = start(USE, store.root, sha256, prefix=prefix)
        out, _ = process.communicate(timeout=30)
    finally:
        for folder in folders:
            folder.chmod(0o700)
    first, second = out.splitlines()
    assert first == str(store.blob_path(sha256))
    assert second.startswith("96 "), out
    assert "no permission" in second


def test_work_of_a_killed_process_is_swept(store: Store, start: Callable[..., "subprocess.Popen[str]"]) -> None:
    """A living owner's folder stays; after kill -9 the next run removes it, read-only folders in it too."""
    process = start(HOLD_WORK, store.root)
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    Store(store.root).prepare()
    assert (folder / "half").exists()
    process.kill()
    process.wait(10)
    assert folder.exists()
    Store(store.root).prepare()
    assert list((store.root / "work").iterdir()) == []


def test_a_folder_without_an_owner_is_swept(store: Store) -> None:
    """A work folder whose lock file is gone belongs to nobody."""
    store.prepare()
    (store.root / "work" / "0123").mkdir()
    Store(store.root).prepare()
    assert not (store.root / "work" / "0123").exists()


def test_downloads_are_kept_for_a_while(store: Store) -> None:
    """A partial file stays for resuming, goes after two weeks, and at once where the whole file is there."""
    sha256 = store.add_bytes(b"whole")
    fresh, old = "1" * 64, "2" * 64
    for name in (sha256, fresh, old, f"{old}.json"):
        (store.root / "partial" / name).write_text("x")
    past = 1_000_000_000
    for name in (old, f"{old}.json"):
        os.utime(store.root / "partial" / name, (past, past))
    Store(store.root).prepare()
    assert [path.name for path in (store.root / "partial").iterdir()] == [fresh]
    assert list((store.root / "locks").iterdir()) == []


def test_private_folders_are_gone_afterwards(store: Store) -> None:
    """After an error too."""
    store.prepare()

    def fail() -> None:
        with private_folder(store.root) as folder:
            (folder / "file").write_text("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list((store.root / "work").iterdir()) == []


def test_links_inside_a_removed_tree_are_not_followed(tmp_path: Path) -> None:
    """Removing a tree leaves what its links point to."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("x")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "kept")
    remove_tree(tmp_path / "tree")
    remove_tree(tmp_path / "tree")
    assert (tmp_path / "kept" / "file").exists()


def test_errors_are_pennys_own(tmp_path: Path) -> None:
    """A root that cannot even be looked at is no bare OSError."""
    with pytest.raises(PennyError):
        Store(tmp_path / ("x" * 300)).prepare()


def test_the_digest_of_nothing(store: Store) -> None:
    """An empty file is a file."""
    assert store.add_bytes(b"") == hashlib.sha256(b"").hexdigest()
    assert store.verified(hashlib.sha256(b"").hexdigest(), 0, what="x").read_bytes() == b""


def test_lock_files_of_dead_processes_are_swept(store: Store) -> None:
    """What a killed process left in the folder of locks goes with the next run, whoever needs that lock or not."""
    store.prepare()
    store.lock_path("entry-runtime-abc").touch()
    Store(store.root).prepare()
    assert list((store.root / "locks").iterdir()) == []


def test_sweeping_meanwhile_neither_refuses_nor_takes_a_new_private_folder(store: Store) -> None:
    """While others sweep without pause, each new private folder is had, and stays as long as it is used."""
    store.prepare()
    ended = threading.Event()

    def sweeping() -> None:
        while not ended.is_set():
            sweep(store.root)

    sweepers = [threading.Thread(target=sweeping) for _ in range(3)]
    for sweeper in sweepers:
        sweeper.start()
    try:
        for turn in range(400):
            with private_folder(store.root) as folder:
                (folder / "file").write_text(str(turn))
                assert (folder / "file").read_text() == str(turn)
    finally:
        ended.set()
        for sweeper in sweepers:
            sweeper.join()
    assert list((store.root / "work").iterdir()) == []

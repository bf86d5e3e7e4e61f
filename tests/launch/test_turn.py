"""One server at a time in a namespace."""

import json
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reproducer.errors import NotCheckedError
from reproducer.launch.turn import private_folder, take_turn
from reproducer.progress import Silent

if TYPE_CHECKING:
    from tests.launch.conftest import Bench


class Enough(Exception):  # noqa: N818  no error
    """Raised instead of waiting for ever."""


class Impatient(Silent):
    """A Reporter that does not wait."""

    def note(self, message: str) -> None:
        """Give up."""
        raise Enough(message)


def test_second_waits(bench: "Bench") -> None:
    """The second launch waits until the first server is gone, and says for whom."""
    second = bench.another(".")
    second.log = bench.folder / "second.log"
    order = []

    def wait() -> None:
        with second.run():
            order.append("second")

    with bench.run() as server:
        thread = threading.Thread(target=wait)
        thread.start()
        deadline = time.monotonic() + 5
        while not second.reporter.notes and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    (note,) = second.reporter.notes
    assert note.startswith(f"waiting: namespace {bench.root.name} is in use by a server of another penny")
    assert server.url in note


def test_waiting_for_a_detached_server(bench: "Bench") -> None:
    """Who waits for a detached server learns how to end it."""
    with bench.run():
        path = next(iter(bench.lock_files()))
        path.write_text(json.dumps({"url": "http://127.0.0.1:1", "pid": 7, "detached": True}))
        with pytest.raises(Enough, match="a detached server, `penny stop` ends it"):
            take_turn(bench.root, reporter=Impatient())


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"token": 5}', b'{"token": ".."}', b"\xff" * 100])
def test_hostile_lock_file(bench: "Bench", content: bytes) -> None:
    """Whatever lies in the lock file of a dead launch, the next one works."""
    (bench.root.parent / f".{bench.root.name}.server").write_bytes(content)
    with bench.run():
        pass


def test_only_the_own_private_folder_goes(bench: "Bench", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that a lock file says names a folder to remove: only the folder that follows from its token goes."""
    parent = tmp_path / "temporary"
    parent.mkdir()
    monkeypatch.setattr("reproducer.launch.turn.private_parent", lambda: parent)
    token = "0" * 32
    own, bait = private_folder(parent, token), tmp_path / "bait"
    for folder in (own, bait):
        folder.mkdir()
        (folder / "file").touch()
    path = bench.root.parent / f".{bench.root.name}.server"
    for hostile in (f"../../{bait.name}", str(bait), "", "0" * 31, "0" * 32 + "/../../bait"):
        path.write_text(json.dumps({"token": hostile, "private": str(bait)}))
        take_turn(bench.root, reporter=bench.reporter).release()
        assert (bait / "file").exists()
        assert (own / "file").exists()
    path.write_text(json.dumps({"token": token, "private": str(bait)}))
    take_turn(bench.root, reporter=bench.reporter).release()
    assert (bait / "file").exists()
    assert not own.exists()
    assert not path.exists()


def test_successor_keeps_its_file(bench: "Bench") -> None:
    """Releasing a turn whose file was replaced leaves the successor's file alone."""
    turn = take_turn(bench.root, reporter=bench.reporter)
    turn.path.unlink()
    successor = take_turn(bench.root, reporter=bench.reporter)
    turn.release()
    assert successor.path.exists()
    successor.release()
    assert not successor.path.exists()


def test_no_folder(bench: "Bench", tmp_path: Path) -> None:
    """A namespace in a folder that is not there is one clear error."""
    with pytest.raises(NotCheckedError, match="no server can be started in this namespace"):
        take_turn(tmp_path / "nowhere" / "namespace", reporter=bench.reporter)

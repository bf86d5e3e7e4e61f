"""A namespace is in use as long as anything of its server lives, however penny ended."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from reproducer.launch.server import servers, stop
from reproducer.launch.turn import end_all, take_turn
from reproducer.progress import Silent
from tests.cache.conftest import Place, spoil, wait_until
from tests.launch.conftest import PlainStore

DRIVER = Path(__file__).with_name("driver.py")
HERE = Path(__file__).parents[2]


@pytest.fixture
def folder(place: Place, tmp_path: Path) -> Iterator[Path]:
    """Where a launch keeps its own things; what it started is ended with the test."""
    folder = tmp_path / "launch"
    folder.mkdir()
    yield folder
    for record in servers(PlainStore(folder / "store")):
        stop(record, reporter=Silent())
    end_all(place.kv, reporter=Silent())


def start(place: Place, folder: Path, mode: str = "", how: str = "run") -> "tuple[subprocess.Popen[str], int]":
    """A penny with a server that is ready, and the server's pid."""
    process = subprocess.Popen(
        [sys.executable, str(DRIVER), str(place.kv), str(folder), mode, how],
        env={**os.environ, "PYTHONPATH": str(HERE)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def listed(place: Place) -> dict[str, Any]:
    """What the list says of the only namespace."""
    (entry,) = place.json("list")["namespaces"]
    return dict(entry)


def collected(place: Place, *more: str) -> tuple[str, str]:
    """What a collection did with the only namespace, and why."""
    (said,) = place.json("gc", "--apply", *more)["namespaces"]
    return said["fate"], said["why"]


def test_a_server_of_a_living_penny(place: Place, folder: Path) -> None:
    """In use while it runs, with its pid; when it ended and its lock is gone, the namespace goes."""
    process, pid = start(place, folder)
    with process:
        place.opened().path.unlink()
        assert listed(place)["in_use"] == {"by": "server", "pid": pid}
        assert collected(place) == ("kept", f"in use by a server (pid {pid})")
        process.send_signal(signal.SIGINT)
    assert listed(place)["in_use"] is None
    assert collected(place)[0] == "removed"
    assert list(place.kv.iterdir()) == []


def test_a_launch_that_prepares(place: Place) -> None:
    """From the moment a launch has its turn, before any server, the namespace is in use."""
    root = place.root("first", 1)
    turn = take_turn(root, reporter=Silent())
    try:
        assert listed(place)["in_use"] == {"by": "server", "pid": None}
        assert collected(place) == ("kept", "in use by a server")
    finally:
        turn.release()
    assert listed(place)["in_use"] is None


def test_a_detached_server(place: Place, folder: Path) -> None:
    """In use after the penny that started it has ended, until it is stopped."""
    process, pid = start(place, folder, how="detach")
    with process:
        pass
    place.opened().path.unlink()
    assert listed(place)["in_use"] == {"by": "server", "pid": pid}
    assert collected(place)[0] == "kept"
    (record,) = servers(PlainStore(folder / "store"))
    stop(record, reporter=Silent())
    assert collected(place)[0] == "removed"


def test_penny_and_supervisor_are_killed(place: Place, folder: Path) -> None:
    """As long as one process of the server lives the namespace is in use; a collection ends none of them."""
    process, pid = start(place, folder, "deaf")
    with process:
        server = psutil.Process(pid)
        supervisor = server.ppid()
        process.kill()
        os.kill(supervisor, signal.SIGKILL)
    place.opened().path.unlink()
    left = living(place)
    assert left
    assert collected(place)[0] == "kept"
    assert listed(place)["in_use"]["pid"] in left
    assert set(living(place)) == set(left)
    for each in left:
        os.kill(each, signal.SIGKILL)
    wait_until(lambda: not living(place))
    assert collected(place)[0] == "removed"
    assert list(place.kv.iterdir()) == []


def test_a_killed_penny(place: Place, folder: Path) -> None:
    """The supervisor ends the server in its own time; until then the namespace is in use."""
    process, pid = start(place, folder, "deaf")
    with process:
        process.kill()
    place.opened().path.unlink()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        alive = psutil.pid_exists(pid)  # looked at first: what is gone afterwards was in use until then
        fate, _ = collected(place)
        if fate == "removed":
            break
        assert (place.kv / place.namespace().name).exists()
    assert fate == "removed"
    assert not psutil.pid_exists(pid)
    del alive


def test_budgets_leave_a_running_server_alone(place: Place, folder: Path) -> None:
    """No page of a namespace in use is evicted, and that the budget is not reached is told."""
    root = place.root("first", 5)
    process, _ = start(place, folder)
    with process:
        said = place.json("gc", "--apply", "--budget-each", "1", code=64 + 32)
        assert [each["fate"] for each in said["namespaces"]] == ["kept"]
        assert "in use" in said["short"][0]
        assert all(place.path(root, number, half).exists() for number in range(5) for half in "kv")
        process.send_signal(signal.SIGINT)


def test_a_launch_checks_first(place: Place, folder: Path) -> None:
    """Damaged pages are gone before the server starts; sealing and checking go on beside it."""
    root = place.root("first", 3)
    place.json("seal", root.name)
    spoil(place.path(root, 1, "v"))
    process, _ = start(place, folder)
    with process:
        assert not place.path(root, 1, "v").exists()
        assert not place.path(root, 1, "k").exists()
        (said,) = place.json("verify", root.name)["namespaces"]
        assert (said["good"], said["damaged"]) == (4, 0)
        assert place.json("seal", root.name)["namespaces"][0]["pages"] >= 4
        process.send_signal(signal.SIGINT)


def living(place: Place) -> list[int]:
    """Every process that carries the folder of namespaces in its environment."""
    mark = os.fsencode(place.kv / place.namespace().name)
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found

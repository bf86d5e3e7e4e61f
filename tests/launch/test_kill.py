"""Penny ends in every way a process can; no process, lock file or folder is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from reproducer.launch.server import servers
from reproducer.launch.supervisor import start_ticks
from reproducer.launch.turn import end_all
from reproducer.progress import Silent

if TYPE_CHECKING:
    from tests.launch.conftest import Bench


DRIVER = Path(__file__).with_name("driver.py")


def start(bench: "Bench", mode: str = "", how: str = "run") -> "subprocess.Popen[str]":
    """A penny in a process of its own."""
    return subprocess.Popen(
        [sys.executable, str(DRIVER), str(bench.folder), mode, how], stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_signal_while_running(bench: "Bench", number: signal.Signals) -> None:
    """Penny ends by a signal while its server runs."""
    with start(bench) as penny:
        assert first_line(penny).startswith("http://127.0.0.1:")
        assert len(bench.left()) == 3
        penny.send_signal(number)
        penny.wait()
    assert bench.nothing_left()


@pytest.mark.parametrize("how", ["run", "detach"])
def test_kill_while_loading(bench: "Bench", how: str) -> None:
    """Penny is killed while the server loads: a detached launch is not detached before it was checked."""
    with start(bench, "mute", how) as penny:
        bench.wait_for("environment")
        penny.kill()
    assert bench.nothing_left()


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.1, 0.15, 0.2, 0.3])
def test_kill_at_any_time(bench: "Bench", delay: float) -> None:
    """Penny is killed somewhere between its first step and a ready server; the next launch works."""
    with start(bench) as penny:
        lock_file = bench.root.parent / f".{bench.root.name}.server"
        while not lock_file.exists():
            time.sleep(0.001)
        time.sleep(delay)
        penny.kill()
    with bench.run() as server:
        assert server.alive()


def test_deaf_server_after_kill(bench: "Bench") -> None:
    """A server that ignores SIGTERM is killed after the grace period though penny is gone."""
    with start(bench, "deaf") as penny:
        first_line(penny)
        penny.kill()
    assert bench.nothing_left(8)


def test_both_killed(bench: "Bench") -> None:
    """Penny and the supervisor are killed together: the next launch in the namespace ends what was left behind."""
    with start(bench, "deaf") as penny:
        first_line(penny)
        supervisor = psutil.Process(min(bench.left(), key=started)).ppid()
        private = bench.private()
        penny.kill()
        os.kill(supervisor, signal.SIGKILL)
    assert len(bench.left()) >= 1
    old = bench.left()
    with bench.run():
        assert not bench.left() & old
        assert not private.exists()


def test_both_killed_and_never_launched_again(bench: "Bench") -> None:
    """What was left is ended without another launch, where the namespace's parent is to be removed."""
    with start(bench, "deaf") as penny:
        first_line(penny)
        supervisor = psutil.Process(min(bench.left(), key=started)).ppid()
        penny.kill()
        os.kill(supervisor, signal.SIGKILL)
    assert len(bench.left()) >= 1
    end_all(bench.root.parent, reporter=Silent())
    assert bench.nothing_left()
    assert list(bench.root.parent.glob(".*.server")) == []


def test_killed_while_detached(bench: "Bench") -> None:
    """A detached server outlives a killed penny and can be stopped."""
    with start(bench, how="detach") as penny:
        first_line(penny)
        penny.kill()
    (record,) = servers(bench.store)
    assert record.alive()
    assert len(bench.left()) == 3
    os.kill(record.supervisor_pid, signal.SIGTERM)
    assert bench.nothing_left()
    assert servers(bench.store) == ()


def first_line(process: "subprocess.Popen[str]") -> str:
    """The first line a process writes."""
    assert process.stdout is not None
    return process.stdout.readline()


def started(pid: int) -> int:
    """When a process started."""
    return start_ticks(pid) or 0

"""Detached servers: recorded, found again, and ended exactly."""

import http.client
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from reproducer.errors import NotCheckedError
from reproducer.launch.effective import EffectiveDifferenceError
from reproducer.launch.processes import machine_boot
from reproducer.launch.records import record_path, write_record
from reproducer.launch.server import ServerRecord, new_log, servers, stop
from reproducer.launch.supervisor import start_ticks

if TYPE_CHECKING:
    from tests.launch.conftest import Bench


def test_start_and_stop(bench: "Bench") -> None:
    """A detached server is listed with what identifies it; stopping it ends everything it started."""
    server = bench.detach()
    (record,) = servers(bench.store)
    assert (record.url, record.pid, record.port) == (server.url, server.pid, server.port)
    assert record.lock_digest == bench.opened().digest
    assert record.id == server.receipt.boot.id
    assert record.namespace == bench.namespace.name
    assert os.getpgid(record.pid) == record.pgid
    assert record_path(bench.store, record.token).stat().st_mode & 0o777 == 0o600
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    connection.request("GET", "/server_info")
    assert connection.getresponse().status == 200
    connection.close()
    stop(record, reporter=bench.reporter)
    assert bench.left() == set()
    assert servers(bench.store) == ()
    stop(record, reporter=bench.reporter)


def test_refused_server_leaves_no_record(bench: "Bench") -> None:
    """A detached server with other effective values is stopped and not recorded."""
    with pytest.raises(EffectiveDifferenceError):
        bench.detach("other")
    assert bench.left() == set()
    assert servers(bench.store) == ()


def test_pid_that_is_used_again(bench: "Bench") -> None:
    """A record whose pids now belong to other processes is swept, and those are never touched."""
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as stranger:
        record = some_record(bench, pid=stranger.pid, supervisor_pid=stranger.pid)
        assert not record.alive()
        stop(record, reporter=bench.reporter)
        write_record(bench.store, record)
        assert servers(bench.store) == ()
        assert not record_path(bench.store, record.token).exists()
        assert stranger.poll() is None


def test_other_boot_of_the_machine(bench: "Bench") -> None:
    """After a reboot the same pid and ticks may be somebody else: such a record is swept, nothing is signalled."""
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as stranger:
        ticks = start_ticks(stranger.pid)
        record = some_record(
            bench, pid=stranger.pid, start_ticks=ticks, supervisor_pid=1, machine_boot="another", log=str(bench.log)
        )
        write_record(bench.store, record)
        stop(record, reporter=bench.reporter)
        assert servers(bench.store) == ()
        assert stranger.poll() is None


def test_record_of_a_stranger(bench: "Bench") -> None:
    """A file among the records that is none is ignored, not an obstacle."""
    folder = bench.store.root / "servers"
    folder.mkdir(parents=True)
    (folder / "noise.json").write_text("{")
    record = some_record(bench)
    (folder / "renamed.json").write_bytes(record.canonical())
    assert servers(bench.store) == ()
    assert sorted(path.name for path in folder.iterdir()) == ["noise.json", "renamed.json"]
    for path in folder.iterdir():
        path.unlink()


def test_server_that_ended_by_itself(bench: "Bench") -> None:
    """The supervisor removes the record of a detached server that crashes, and what the crash left running."""
    server = bench.detach()
    os.kill(server.pid, signal.SIGKILL)
    assert bench.nothing_left()


def test_supervisor_of_detached_server_killed(bench: "Bench") -> None:
    """Where the supervisor was killed, what is left is found by the launch's token and ended."""
    bench.detach("deaf")
    (record,) = servers(bench.store)
    os.kill(record.supervisor_pid, signal.SIGKILL)
    assert record.supervisor.wait(5)
    assert record.server.wait(5)
    assert bench.left() != set()
    assert len(bench.lock_files()) == 1
    assert servers(bench.store) == ()
    assert bench.left() == set()
    assert bench.lock_files() == []
    assert not bench.private().exists()


def test_tidying_leaves_a_successor_alone(bench: "Bench") -> None:
    """Sweeping the record of a dead server does not touch the turn of a server that came after it."""
    with bench.run() as server:
        write_record(bench.store, some_record(bench))
        assert servers(bench.store) == ()
        assert len(bench.lock_files()) == 1
        assert bench.private().is_dir()
        assert server.alive()


def test_two_at_once(bench: "Bench") -> None:
    """Two launches at once in two namespaces get two ports."""
    benches = [bench.another("a"), bench.another("b")]
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(type(bench).detach, benches)
    assert first.port != second.port
    for each in benches:
        (record,) = servers(each.store)
        stop(record, reporter=each.reporter)
        assert each.nothing_left()


def test_explicit_port_of_detached_server(bench: "Bench") -> None:
    """The port of a detached server is taken, and the error names who has it."""
    server = bench.detach()
    with pytest.raises(NotCheckedError, match=f"port {server.port} is taken .held by pid {server.pid}, "):
        bench.another("second").detach(port=server.port)
    stop(*servers(bench.store), reporter=bench.reporter)


def test_log_names(bench: "Bench") -> None:
    """Each server gets a log of its own."""
    assert new_log(bench.store) != new_log(bench.store)


def some_record(bench: "Bench", **changes: object) -> ServerRecord:
    """A record of a server that is not there."""
    facts = {
        "id": "0" * 64,
        "machine_boot": machine_boot(),
        "pid": 2**22 + 1,
        "start_ticks": 1,
        "pgid": 2**22 + 1,
        "supervisor_pid": 2**22 + 1,
        "supervisor_start_ticks": 1,
        "port": 1,
        "lock_name": "stand-in",
        "lock_digest": "0" * 64,
        "namespace": bench.namespace.name,
        "namespace_root": str(bench.root),
        "log": str(bench.log),
        "token": "f" * 32,
        "grace_s": 1.0,
    }
    return ServerRecord.model_validate({**facts, **changes})

"""A server that runs while a context is open."""

import hashlib
import http.client
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reproducer.errors import ConfigurationError, DriftError, InvalidDocumentError, NotCheckedError, UnsafeInputError
from reproducer.launch.effective import EffectiveDifferenceError
from reproducer.launch.processes import Process, boot_id, descendants, process, started_utc
from reproducer.launch.server import Server

if TYPE_CHECKING:
    from tests.launch.conftest import Bench


def ask(port: int, path: str) -> int:
    """The status of one POST."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("POST", path, body=b"{}")
        return connection.getresponse().status
    finally:
        connection.close()


def test_ready_server(bench: "Bench") -> None:
    """The context holds a ready server; afterwards its orphans in other sessions, folders and lock file are gone."""
    with bench.run() as server:
        assert server.alive()
        assert ask(server.port, "/generate") == 200
        assert server.url == f"http://127.0.0.1:{server.port}"
        assert len(bench.left()) == 3
        assert bench.private().is_dir()
        assert len(bench.lock_files()) == 1
    assert bench.left() == set()
    assert bench.lock_files() == []
    assert not bench.private().exists()
    assert not server.alive()


def test_receipt(bench: "Bench") -> None:
    """The receipt names the boot, the placeholders instead of paths, every effective value and the log so far."""
    with bench.run() as server:
        receipt = server.receipt
        log = bench.log.read_bytes()
        started = process(server.pid)
    boot = receipt.boot
    assert started == Process(boot.pid, boot.start_ticks)
    assert (boot.pid, boot.started) == (server.pid, started_utc(boot.start_ticks))
    assert abs(time.mktime(time.strptime(boot.started, "%Y-%m-%dT%H:%M:%SZ")) - time.timezone - time.time()) < 60
    assert boot.id == boot_id(
        pid=boot.pid, started=boot.started, start_ticks=boot.start_ticks, namespace=bench.namespace.name
    )
    assert receipt.arguments == (
        *("--attention-backend", "torch_native", "--context-length", "512"),
        *("--model-path", "{checkpoint.target}", "--page-size", "16"),
    )
    assert receipt.environment["STAND_IN_NAMESPACE"] == "{namespace}"
    assert receipt.lock_digest == bench.opened().digest
    assert receipt.build_receipt == bench.runtime.receipt.digest
    assert receipt.log_sha256 == hashlib.sha256(log).hexdigest()
    assert 0 < receipt.ready_ns < 20e9
    effective = {value.name: value for value in receipt.effective}
    assert (effective["page_size"].got, effective["page_size"].source) == (16, "server_info")
    assert (effective["kv_cache_dtype"].got, effective["kv_cache_dtype"].source) == ("bfloat16", "start-up log")
    assert (effective["model_type"].got, effective["model_type"].source) == ("llama", "checkpoint config")
    assert effective["model_path"].got == "{checkpoint.target}"
    assert all(value.agrees for value in receipt.effective)
    text = receipt.model_dump_json()
    assert str(bench.folder) not in text
    assert str(server.port) not in text


def test_scrubbed_environment(bench: "Bench", monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of penny's environment reaches the server; its working directory is empty."""
    for name in ("PYTHONPATH", "LD_LIBRARY_PATH", "HTTP_PROXY", "SOMETHING_ELSE"):
        monkeypatch.setenv(name, "/elsewhere")
    with bench.run():
        seen = bench.seen()
    private = str(bench.private())
    environment = seen["environment"]
    token = environment.pop("PENNY_LAUNCH")
    assert len(token) == 32
    assert environment == {
        "HOME": f"{private}/home",
        "LANG": "C.UTF-8",
        "PATH": f"{bench.runtime.python.parent}:/usr/local/bin:/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONSAFEPATH": "1",
        "PYTHONUNBUFFERED": "1",
        "STAND_IN": "",
        "STAND_IN_NAMESPACE": str(bench.pages),
        "TMPDIR": f"{private}/tmp",  # noqa: S108  made for this launch
    }
    assert seen["cwd"] == []
    assert seen["argv"][:2] == ["-m", "stand_in"]


def test_no_traffic_before_the_check(bench: "Bench") -> None:
    """A server with other effective values is refused with all of them named, and is asked nothing but what it is."""
    with pytest.raises(EffectiveDifferenceError) as raised, bench.run("other"):
        pytest.fail("the context must not be entered")
    assert raised.value.exit_code == 64 + 4
    differences = {each.name: (each.expected, each.got, each.source) for each in raised.value.differences}
    assert differences == {
        "attention_backend": ("torch_native", "triton", "server_info"),
        "decode_attention_backend": ("torch_native", "triton", "server_info"),
        "kv_cache_dtype": ("bfloat16", "float16", "start-up log"),
        "page_size": (16, 64, "server_info"),
        "prefill_attention_backend": ("torch_native", "triton", "server_info"),
    }
    assert "page_size: expected 16, got 64 (server_info)" in str(raised.value)
    assert set(bench.requests()) == {"GET /health_generate", "GET /server_info"}
    assert bench.left() == set()


def test_what_the_machine_chose_before(bench: "Bench") -> None:
    """A value that the lock leaves open must be what it was when the namespace's pages were written."""
    effective = {"dtype": "bfloat16"}
    with bench.run(effective=effective):
        pass
    with bench.run(effective=effective):
        pass
    with pytest.raises(ConfigurationError, match="attention_backend: 'torch_native' then, 'triton' now") as raised:
        bench.run("other", effective=effective).__enter__()
    assert raised.value.exit_code == 64 + 4
    assert bench.left() == set()


def test_value_that_is_not_shown(bench: "Bench") -> None:
    """An effective value of the lock that the server does not show counts as different."""
    effective = {"page_size": 16, "unheard_of": True}
    with pytest.raises(EffectiveDifferenceError, match="unheard_of: expected true, got nothing"):
        bench.run(effective=effective).__enter__()


def test_nothing_to_check(bench: "Bench") -> None:
    """A lock without effective values is refused: a launch that checked nothing must not succeed."""
    with pytest.raises(InvalidDocumentError, match="names no effective value"):
        bench.run(effective={}).__enter__()


def test_dies_before_ready(bench: "Bench") -> None:
    """A server that dies while loading: its exit status and last words, without colours, noise and machine paths."""
    with pytest.raises(NotCheckedError) as raised, bench.run("dies"):
        pytest.fail("the context must not be entered")
    text = str(raised.value)
    assert raised.value.exit_code == 64 + 32
    assert "the server died before it was ready (exit status 3;" in text
    assert "ValueError: no weights in {checkpoint.target}" in text
    assert "\x1b" not in text
    assert "Completed" not in text
    assert bench.left() == set()


@pytest.mark.parametrize("mode", ["never", "mute", "hangs"])
def test_never_ready(bench: "Bench", mode: str) -> None:
    """A server that is not ready by the deadline, in whichever way, is stopped; the error tells the log's end."""
    bench.deadline_s = 1
    since = time.monotonic()
    with pytest.raises(NotCheckedError, match=r"not ready within 1 s.*Load weight"), bench.run(mode):
        pytest.fail("the context must not be entered")
    assert time.monotonic() - since < 25
    assert bench.left() == set()


def test_nonsense(bench: "Bench") -> None:
    """A server that answers with something else than a table could not be checked."""
    with pytest.raises(NotCheckedError, match="does not tell its effective values"):
        bench.run("nonsense").__enter__()


def test_deaf_server(bench: "Bench") -> None:
    """A server whose processes all ignore SIGTERM is killed after the grace period."""
    with bench.run("deaf", grace_s=0.2):
        since = time.monotonic()
    assert 0.2 < time.monotonic() - since < 25
    assert bench.left() == set()


def test_exception_in_the_body(bench: "Bench") -> None:
    """An exception in the body ends the server and stays what it is."""
    with pytest.raises(ZeroDivisionError), bench.run():
        raise ZeroDivisionError
    assert bench.left() == set()


def test_dies_while_in_use(bench: "Bench") -> None:
    """Where the body fails because the server died, the error says so, with the log's last words."""
    with (
        pytest.raises(NotCheckedError, match=r"died while it was in use \(exit status 5;.*out of cheese"),
        bench.run() as server,
    ):
        ask(server.port, "/die")
    assert bench.left() == set()


def test_wait(bench: "Bench") -> None:
    """Waiting for a server ends with it, as an error where it failed."""
    with pytest.raises(NotCheckedError, match=r"the server died \(signal 9"), bench.run() as server:
        kill_and_wait(server)


def test_supervisor_killed(bench: "Bench") -> None:
    """Killing the supervisor takes the server with it; what it left in other sessions is swept by penny."""
    with pytest.raises(NotCheckedError, match="died while it was in use"), bench.run("deaf") as server:
        kill_supervisor(server, bench)
    assert bench.left() == set()
    assert bench.lock_files() == []
    assert not bench.private().exists()


def test_interrupt_while_ending(bench: "Bench") -> None:
    """A Ctrl-C while the end is awaited kills at once, and is raised when nothing is left."""
    with pytest.raises(KeyboardInterrupt), bench.run("deaf", grace_s=60):
        since = interrupt_soon()
    assert time.monotonic() - since < 25
    assert bench.left() == set()


def test_log_is_replaced(bench: "Bench") -> None:
    """An older log in the same place is replaced and never written to, though somebody may still hold it."""
    bench.log.parent.mkdir()
    bench.log.write_text("old\n")
    with bench.log.open() as old:
        with bench.run():
            assert "old" not in bench.log.read_text()
        assert old.read() == "old\n"
    assert bench.log.stat().st_mode & 0o777 == 0o600


def test_progress(bench: "Bench") -> None:
    """The phases of the start are told."""
    with bench.run("slow"):
        pass
    assert bench.reporter.details[0] == "server: loading weights"


@pytest.mark.parametrize("name", ["PYTHONPATH", "LD_PRELOAD", "PENNY_LAUNCH"])
def test_loader_variables(bench: "Bench", name: str) -> None:
    """A lock that would load code it does not pin is refused before anything starts."""
    with pytest.raises(UnsafeInputError, match=f"sets {name}"):
        bench.run(environment={name: "x"}).__enter__()


def test_no_config(bench: "Bench") -> None:
    """A checkpoint without a config is refused before anything starts."""
    (bench.folder / "checkpoint" / "config.json").unlink()
    with pytest.raises(DriftError, match="config cannot be read"):
        bench.run().__enter__()


def test_interpreter_is_missing(bench: "Bench") -> None:
    """A runtime whose interpreter is gone gives one clear error and leaves nothing."""
    bench.runtime.python.unlink()
    with pytest.raises(NotCheckedError, match=r"cannot be started \(No such file"):
        bench.run().__enter__()
    assert list(Path(bench.root.parent).iterdir()) == [bench.root]


def test_only_descendants_are_ended(bench: "Bench") -> None:
    """The supervisor's tree is the server's: the tests' own process is not in it."""
    with bench.run() as server:
        family = descendants(server._supervised.supervisor.pid)
        assert server.pid in family
        assert os.getpid() not in family
        assert len(family) == 3


def kill_and_wait(server: Server) -> None:
    """Kill a server's process and wait for its end."""
    os.kill(server.pid, signal.SIGKILL)
    server.wait()


def kill_supervisor(server: Server, bench: "Bench") -> None:
    """Kill a server's supervisor; fail as a client would, when the server is gone and its children are not."""
    os.kill(server._supervised.supervisor.pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while server.alive():
        assert time.monotonic() < deadline
    assert bench.left() != set()
    raise ConnectionResetError


def interrupt_soon() -> float:
    """Have Ctrl-C pressed a little later; the time now."""
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    return time.monotonic()

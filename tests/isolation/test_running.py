"""Build steps: a scrubbed environment, no network, nothing written elsewhere, nothing left behind."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from reproducer.documents.built import Isolation
from reproducer.errors import NotCheckedError, RebuildError, UnsafeInputError
from reproducer.isolation.running import run_isolated, scrubbed, tail

PYTHON = str(Path(sys.executable).resolve())


def namespaces_work(tmp_path: Path) -> bool:
    """Whether the kernel allows what the isolation asks for."""
    return step(tmp_path / "probe", "pass").network == "none"


def step(
    folder: Path, code: str, *, namespaces: bool = True, timeout_s: float = 60, network: bool = False
) -> Isolation:
    """Run Python code isolated."""
    folder.mkdir(parents=True, exist_ok=True)
    return run_isolated(
        [PYTHON, "-s", "-c", textwrap.dedent(code)],
        cwd=folder,
        env=scrubbed(home=folder / "home", epoch=7, variables={"EXTRA": "1"}),
        writable=[folder],
        log=folder / "log",
        what="the step",
        namespaces=namespaces,
        timeout_s=timeout_s,
        network=network,
    )


def alive(marker: str) -> list[int]:
    """Processes whose command line holds a marker."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marker.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def gone(marker: str, seconds: float = 10) -> bool:
    """Whether they all ended within some seconds."""
    deadline = time.monotonic() + seconds
    while alive(marker):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The step sees what the recipe names and nothing of the caller: no PYTHONPATH, no token, umask 022."""
    monkeypatch.setenv("PYTHONPATH", "/leak")
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    old = os.umask(0o077)
    try:
        step(tmp_path / "w", "import os, sys; print(sorted(os.environ), oct(os.umask(0)), sys.path, os.getcwd())")
    finally:
        os.umask(old)
    log = (tmp_path / "w" / "log").read_text()
    assert "SECRET_TOKEN" not in log
    assert "/leak" not in log
    assert "0o22 " in log
    assert "'EXTRA'" in log
    assert str(tmp_path / "w") in log


@pytest.mark.parametrize("name", ["PATH", "PYTHONPATH", "LD_PRELOAD", "HOME", "UV_INDEX", "SOURCE_DATE_EPOCH"])
def test_reserved_variables(tmp_path: Path, name: str) -> None:
    """A recipe cannot undo the isolation through a variable."""
    with pytest.raises(UnsafeInputError, match=name):
        scrubbed(home=tmp_path, epoch=0, variables={name: "x"})


def test_no_network(tmp_path: Path) -> None:
    """A step that calls a listening socket of this very machine cannot reach it, nor write outside its folder."""
    if not namespaces_work(tmp_path):
        pytest.skip("the kernel allows no unprivileged namespaces here")
    outside = tmp_path / "outside"
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"""
            import socket
            try:
                socket.create_connection(("127.0.0.1", {server.getsockname()[1]}), timeout=2)
            except OSError:
                print("unreachable")
            try:
                open({str(outside)!r}, "w")
            except OSError:
                print("read-only")
            open("inside", "w").close()
            """
        assert step(tmp_path / "w", code).network == "none"
        assert (tmp_path / "w" / "log").read_text().splitlines() == ["unreachable", "read-only"]
        assert step(tmp_path / "n", code, network=True).network == "settings-only"
        assert "unreachable" not in (tmp_path / "n" / "log").read_text()
    assert not outside.exists()


def test_settings_only(tmp_path: Path) -> None:
    """Without namespaces the step runs all the same and the record says so."""
    assert step(tmp_path / "w", "pass", namespaces=False) == Isolation(
        network="settings-only", umask="022", locale="C.UTF-8", source_date_epoch=7
    )


def test_failure_shows_the_end_of_the_log(tmp_path: Path) -> None:
    """A failing step is a RebuildError with exit status and the end of its output, control characters removed."""
    with pytest.raises(RebuildError, match=r"the step failed with exit status 3.*bad \ufffd\[31m thing") as caught:
        step(tmp_path / "w", "import sys; print('bad \\x1b[31m thing'); sys.exit(3)")
    assert caught.value.where == str(tmp_path / "w" / "log")
    with pytest.raises(RebuildError, match="signal 11"):
        step(tmp_path / "s", "import os; os.kill(os.getpid(), 11)")
    assert tail(tmp_path / "s" / "log") == "no output"


def test_cannot_start(tmp_path: Path) -> None:
    """A program that is not there is an error of the step; a log that cannot be opened is one of the machine."""
    arguments = {"cwd": tmp_path, "env": scrubbed(home=tmp_path, epoch=0), "writable": [tmp_path], "what": "the step"}
    with pytest.raises(RebuildError, match=r"exit status 127.*No such file"):
        run_isolated(["/nowhere/python"], log=tmp_path / "log", **arguments)  # type: ignore[arg-type]
    with pytest.raises(NotCheckedError, match="cannot be started"):
        run_isolated([PYTHON, "-c", ""], log=tmp_path / "none" / "log", **arguments)  # type: ignore[arg-type]


SPAWNS = """
    import os, subprocess, sys, time
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)  # {marker}"], start_new_session=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(300)  # {marker}"])
        os._exit(0)
    open("ready", "w").close()
    {then}
    """


@pytest.mark.parametrize("namespaces", [True, False])
def test_nothing_is_left(tmp_path: Path, namespaces: bool) -> None:  # noqa: FBT001  a parameter of the test
    """Children that detach, in sessions of their own, end with the step and when its time is up."""
    marker = f"marker-{tmp_path.name}-{os.getpid()}"
    step(tmp_path / "w", SPAWNS.format(marker=marker, then=""), namespaces=namespaces)
    assert gone(marker, 0.5)
    with pytest.raises(RebuildError, match=r"took longer than 1\.5 s"):
        step(
            tmp_path / "t",
            SPAWNS.format(marker=marker, then="time.sleep(300)"),
            namespaces=namespaces,
            timeout_s=1.5,
        )
    assert (tmp_path / "t" / "ready").exists()
    assert gone(marker, 0.5)


@pytest.mark.parametrize("namespaces", [True, False])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_dies_with_penny(tmp_path: Path, namespaces: bool, number: signal.Signals) -> None:  # noqa: FBT001  the same
    """When penny is killed or interrupted, every process of the step ends too."""
    marker = f"marker-{tmp_path.name}-{os.getpid()}"
    (tmp_path / "w").mkdir()
    program = textwrap.dedent(SPAWNS.format(marker=marker, then="time.sleep(300)"))
    code = f"""
from pathlib import Path
from reproducer.isolation.running import run_isolated, scrubbed
folder = Path({str(tmp_path / "w")!r})
run_isolated([{PYTHON!r}, "-c", {program!r}], cwd=folder,
    env=scrubbed(home=folder / "home", epoch=0), writable=[folder],
    log=folder / "log", what="x", namespaces={namespaces})
"""
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as penny:
        deadline = time.monotonic() + 20
        while not (tmp_path / "w" / "ready").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(alive(marker)) >= 2
        penny.send_signal(number)
        penny.wait(20)
    assert gone(marker)

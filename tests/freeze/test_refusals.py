"""What cannot be frozen: the host, the engine or the module is named, and what can be done."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reproducer.engines import engine_of
from reproducer.errors import NotCheckedError
from reproducer.freeze.answers import server_info
from tests.freeze.conftest import World

if TYPE_CHECKING:
    from collections.abc import Iterator


def freeze(*arguments: str, folder: Path) -> tuple[int, dict[str, str]]:
    """Exit code and error of `penny freeze`."""
    ended = subprocess.run(
        [sys.executable, "-m", "reproducer", "freeze", "--json", *arguments],
        cwd=folder,
        env={**os.environ, "PENNY_STORE": str(folder / "store")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    error: dict[str, str] = json.loads(ended.stdout)["error"]
    return ended.returncode, error


@pytest.fixture
def files_served(tmp_path: Path) -> "Iterator[subprocess.Popen[str]]":
    """Python's own file server, when it listens."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "0"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert "Serving HTTP" in process.stdout.readline()
        yield process
        process.terminate()


def test_a_module_of_python_is_no_engine(tmp_path: Path, files_served: "subprocess.Popen[str]") -> None:
    """A file server is refused by its name, before its packages are hashed; nothing is written."""
    code, error = freeze("--pid", str(files_served.pid), folder=tmp_path)
    assert (code, error["where"]) == (2, f"pid {files_served.pid}")
    assert error["what"] == "http.server is a part of Python, and no engine that serves a model"
    assert error["todo"]
    assert not list(tmp_path.glob("*.toml"))


def test_an_engine_that_there_is_not(tmp_path: Path) -> None:
    """It is refused for a server on this machine, too, where the process says which engine it is."""
    code, error = freeze("--pid", str(os.getpid()), "--engine", "foo", folder=tmp_path)
    assert (code, error["where"], error["what"]) == (2, "--engine", "there is no engine 'foo'")


def test_a_host_that_there_is_not(tmp_path: Path) -> None:
    """The host, the reason and what to look at are named; `.invalid` resolves nowhere."""
    code, error = freeze("--url", "http://nope.invalid:8000", folder=tmp_path)
    assert (code, error["where"]) == (96, "http://nope.invalid:8000/server_info")
    assert error["why"] != "no answer in time"
    assert "can be reached from here" in error["todo"]


def test_nobody_listens() -> None:
    """A refused connection is told as one, with the address."""
    engine = engine_of("sglang")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(NotCheckedError, match=rf"http://127\.0\.0\.1:{port}/server_info: .*Connection refused"):
        server_info(engine, host="127.0.0.1", port=port, patience_s=5.0)


def test_a_log_that_is_none(world: World) -> None:
    """A pipe that nobody writes to and a folder are named as what they are; nobody waits and nothing is written."""
    _, port = world.start()
    pipe = world.folder / "pipe"
    os.mkfifo(pipe)
    for log, why in ((pipe, "it is no plain file"), (world.work, "Is a directory"), (world.folder / "none", "No such")):
        ended = world.penny("freeze", "--url", f"http://127.0.0.1:{port}", "--log", str(log), "--json", "--quiet")
        error = json.loads(ended.out)["error"]
        assert (ended.code, error["what"], error["where"]) == (2, "the log cannot be read", str(log))
        assert why in error["why"]
    assert not list(world.work.glob("*.toml"))


def test_notes_that_are_pipes(world: World) -> None:
    """Where a hub's client or an installer would have left a note lies a pipe: it is none, and nobody waits at it."""
    note = world.checkpoint / ".cache" / "huggingface" / "download" / "config.json.metadata"
    note.parent.mkdir(parents=True)
    os.mkfifo(note)
    os.mkfifo(next(world.site.glob("sglang-*.dist-info")) / "direct_url.json")
    _, port = world.start()
    ended = world.penny("freeze", "--url", f"http://127.0.0.1:{port}", "--json", "--quiet")
    assert ended.code == 0, ended.err
    assert ended.result["distributions"] == 2


def test_a_branch_of_the_hubs_cache_that_is_a_pipe(world: World) -> None:
    """A pipe says of no revision that it is the one that was served."""
    _, cache = world.into_hub_cache()
    branch = world.folder / "hub" / "models--org--tiny" / "refs" / "main"
    branch.unlink()
    os.mkfifo(branch)
    _, port = world.start("--model-path", "org/tiny", variables=cache)
    ended = world.penny("freeze", "--url", f"http://127.0.0.1:{port}", "--json", "--quiet")
    error = json.loads(ended.out)["error"]
    assert (ended.code, error["what"]) == (96, "the hub's cache does not say which revision it holds")


@pytest.mark.parametrize("name", ["Bad Name", "a/b", "x\x1b[0m", ""])
def test_a_name_that_no_lock_has(name: str, tmp_path: Path) -> None:
    """It is the name that is refused, before anything is read."""
    code, error = freeze("--pid", str(os.getpid()), "--name", name, folder=tmp_path)
    assert (code, error["where"]) == (2, "--name")
    assert error["what"].endswith(" is no name of a lock")

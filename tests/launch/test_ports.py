"""Ports: free ones, taken ones, stolen ones."""

import os
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from reproducer.errors import NotCheckedError, UsageError
from reproducer.launch.ports import answering, held_port, listeners, owners

if TYPE_CHECKING:
    from tests.launch.conftest import Bench


LISTEN = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); input()"


def test_free_port() -> None:
    """A free port is held while the context is open, can be listened on by the server, and is given to nobody else."""
    with held_port(None) as port:
        assert listeners(port) == set()
        with pytest.raises(OSError, match="in use"), socket.socket() as other:
            other.bind(("127.0.0.1", port))
        with socket.create_server(("127.0.0.1", port)) as server:
            assert {pid for inode in listeners(port) for pid in owners(inode)} == {os.getpid()}
            assert server.getsockname()[1] == port


def test_taken_port(bench: "Bench") -> None:
    """A port that is taken is refused before anything starts; the error names pid and command of the holder."""
    with subprocess.Popen(
        [sys.executable, "-c", LISTEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as stranger:
        port = int(first_line(stranger))
        with pytest.raises(NotCheckedError) as raised:
            bench.run(port=port).__enter__()
        stranger.communicate("\n")
    assert raised.value.exit_code == 64 + 32
    assert f"port {port} is taken (held by pid {stranger.pid}, {sys.executable} -c import socket" in str(raised.value)
    assert not bench.log.exists()


def test_taken_on_another_address() -> None:
    """A port on which somebody listens for all addresses of the other family is taken as well."""
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        port = server.getsockname()[1]
        with pytest.raises(NotCheckedError, match=f"port {port} is taken"), held_port(port):
            pass


def test_explicit_port(bench: "Bench") -> None:
    """The server listens where it was asked to."""
    with held_port(None) as port:
        pass
    with bench.run(port=port) as server:
        assert server.port == port


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_no_such_port(bench: "Bench", port: int) -> None:
    """A number that is no port is wrong usage."""
    with pytest.raises(UsageError, match="there is no port"):
        bench.run(port=port).__enter__()


def test_stolen_port(bench: "Bench") -> None:
    """A stranger that listens on the port while the server loads is never asked anything: it is named, all is ended."""
    with held_port(None) as port:
        pass
    heard = []

    def steal() -> None:
        bench.wait_for("environment")
        with socket.create_server(("127.0.0.1", port)) as thief:
            thief.settimeout(0.5)
            try:
                connection, _ = thief.accept()
                heard.append(connection.recv(100))
                connection.close()
            except TimeoutError:
                pass
            time.sleep(0.5)

    thread = threading.Thread(target=steal)
    thread.start()
    with pytest.raises(NotCheckedError, match=rf"port {port} is taken \(held by pid {os.getpid()}, "):
        bench.run("slow", port=port).__enter__()
    thread.join()
    assert heard == []
    assert bench.left() == set()


def test_answering() -> None:
    """Nobody listens: not yet. A process that is no descendant listens: refused."""
    with held_port(None) as port:
        assert not answering(port, os.getpid())
        with (
            socket.create_server(("127.0.0.1", port)),
            pytest.raises(NotCheckedError, match=f"held by pid {os.getpid()}"),
        ):
            answering(port, os.getpid())


def first_line(process: "subprocess.Popen[str]") -> str:
    """The first line a process writes."""
    assert process.stdout is not None
    return process.stdout.readline()

"""Ports: find or hold one, name who has it, and prove that whoever listens there is ours."""

import contextlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reproducer.errors import NotCheckedError, UsageError
from reproducer.launch.processes import command_line, descendants

HOST = "127.0.0.1"
_LISTEN = "0A"
_HIGHEST = 65535


@contextmanager
def held_port(wanted: int | None) -> Iterator[int]:
    """A port on the loopback address that nobody listens on; a free one where `wanted` is None.

    It stays bound, not listening, while the context is open: the server, which sets SO_REUSEADDR as every asyncio
    server does, can listen on it, and the kernel gives it to nobody else in the meantime.

    Raises:
        UsageError: no such port.
        NotCheckedError: somebody listens there; names the process where it can be read.
    """
    if wanted is not None and not 1 <= wanted <= _HIGHEST:
        raise UsageError(f"there is no port {wanted}", todo=f"name one from 1 to {_HIGHEST}, or none for a free one")
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            held.bind((HOST, wanted or 0))
        except OSError as error:
            raise _taken(wanted or 0, error.strerror or str(error)) from error
        port = int(held.getsockname()[1])
        if listeners(port):  # on another address: a client of "localhost" could reach the wrong one
            raise _taken(port, "somebody listens there")
        yield port


def _taken(port: int, why: str) -> NotCheckedError:
    holders = [describe(pid) for inode in listeners(port) for pid in sorted(owners(inode))]
    named = f"held by {', '.join(dict.fromkeys(holders))}" if holders else f"{why}; who holds it cannot be read"
    return NotCheckedError(
        f"port {port} is taken", where=f"{HOST}:{port}", why=named, todo="name another --port, or none for a free one"
    )


def describe(pid: int) -> str:
    """A process in an error: pid and command."""
    command = command_line(pid)
    return f"pid {pid}, {command}" if command else f"pid {pid}"


def listeners(port: int) -> set[str]:
    """The socket inodes that listen on a port, on any address."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(fields[9])
    return found


def owners(inode: str, among: set[int] | None = None) -> set[int]:
    """The processes that hold a socket, of those that can be read."""
    link = f"socket:[{inode}]"
    pids = among if among is not None else {int(name) for name in os.listdir("/proc") if name.isdigit()}  # noqa: PTH208
    found = set()
    for pid in pids:
        try:
            with os.scandir(f"/proc/{pid}/fd") as handles:
                for handle in handles:
                    with contextlib.suppress(OSError):
                        if os.readlink(handle.path) == link:  # noqa: PTH115  thousands of them
                            found.add(pid)
                            break
        except OSError:
            continue
    return found


def answering(port: int, ours: int) -> bool:
    """Whether somebody listens on the port and all who do are descendants of process `ours`.

    Raises:
        NotCheckedError: a stranger listens there.
    """
    inodes = listeners(port)
    if not inodes:
        return False
    family = set(descendants(ours))
    for inode in inodes:
        if not owners(inode, family):
            if inode not in listeners(port):
                return False
            raise _taken(port, "a process that penny did not start answers there")
    return True

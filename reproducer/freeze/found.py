"""The process of a running server as the kernel shows it: read once, bounded, and the same one at the end."""

import ipaddress
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from reproducer.documents.base import shown
from reproducer.errors import DriftError, NotCheckedError, UsageError
from reproducer.launch.ports import describe, listeners, owners
from reproducer.launch.processes import Process
from reproducer.launch.processes import process as process_of

_LARGEST = 4 << 20
_LARGEST_MAPS = 64 << 20
_DELETED = " (deleted)"


@dataclass(frozen=True)
class Found:
    """A running server.

    Attributes:
        process: pid and start time.
        argv: as it was started.
        environ: as it was started.
        cwd: its working folder.
        executable: the program of its interpreter, links resolved.
        mapped: the files that it has in memory.
        log: the file that its standard error or output goes to; None where that is no plain file.
    """

    process: Process
    argv: tuple[str, ...]
    environ: Mapping[str, str]
    cwd: Path
    executable: Path
    mapped: tuple[str, ...]
    log: Path | None

    def still_there(self) -> None:
        """Refuse what was read where the process ended meanwhile, or its pid is another one's now.

        Raises:
            NotCheckedError: as said.
        """
        if not self.process.alive():
            raise NotCheckedError("the server ended while it was read", where=f"pid {self.process.pid}")


def address_of(url: str) -> tuple[str, int]:
    """Host and port of the URL of a server.

    Raises:
        UsageError: it is none.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"{shown(url)} is no URL of a server", why=str(error)) from error
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError(f"{shown(url)} is no URL of a server", todo="write it as http://HOST:PORT")
    if parts.username is not None or parts.password is not None:
        raise UsageError("the URL holds a password", todo="leave it out")
    return host, port or (443 if parts.scheme == "https" else 80)


def is_here(host: str) -> bool:
    """Whether a host is this machine: one of its addresses can be bound here."""
    try:
        found = {str(entry[4][0]).partition("%")[0] for entry in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return False
    for text in found:
        address = ipaddress.ip_address(text)
        if address.is_loopback or address.is_unspecified:
            return True
        family = socket.AF_INET6 if address.version == 6 else socket.AF_INET  # noqa: PLR2004  the version of IP
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.bind((text, 0))
        except OSError:
            continue
        return True
    return False


def listener(port: int) -> int:
    """The process that listens on a port: of several that share its socket, the one that started the others.

    Raises:
        NotCheckedError: nobody listens there, or who does cannot be read; strangers share the port.
    """
    where = f"port {port}"
    inodes = listeners(port)
    if not inodes:
        raise NotCheckedError("nobody listens there", where=where, todo="start the server, or name its --pid")
    pids = {pid for inode in inodes for pid in owners(inode)}
    if not pids:
        raise NotCheckedError(
            "who listens there cannot be read",
            where=where,
            why="the process is another user's or in another container",
            todo="run penny freeze as that user, in that container",
        )
    heads = {pid for pid in pids if not pids & set(_ancestors(pid))}
    if len(heads) > 1:
        named = "; ".join(describe(pid) for pid in sorted(heads))
        raise NotCheckedError("several processes listen there", where=where, why=named, todo="name one by --pid")
    return heads.pop()


def _ancestors(pid: int) -> list[int]:
    found: list[int] = []
    while pid > 1 and len(found) < 1024:  # noqa: PLR2004  deeper than any tree of processes
        try:
            text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            break
        pid = int(text.rpartition(")")[2].split()[1])
        found.append(pid)
    return found


def find(*, pid: int | None, port: int | None) -> Found:
    """The server by pid, by the port that it listens on, or by both, which must agree.

    Raises:
        UsageError: no such process.
        DriftError: another process answers on the port: what was to be frozen is not what serves.
        NotCheckedError: it cannot be read; it runs in another container.
    """
    serving = listener(port) if port is not None else None
    if pid is not None and serving is not None and serving != pid and pid not in _ancestors(serving):
        raise DriftError(
            f"pid {pid} is not what answers on port {port}",
            where=f"port {port}",
            why=f"there answers {describe(serving)}",
            todo="freeze the one that serves: leave --pid out",
        )
    wanted = pid if pid is not None else serving
    if wanted is None:
        raise UsageError("nothing names a server", todo="pass --url http://127.0.0.1:PORT or --pid PID")
    process = process_of(wanted)
    if process is None:
        raise UsageError(f"there is no process {wanted}", todo="name one that runs")
    return _read(process)


def _read(process: Process) -> Found:
    top = Path(f"/proc/{process.pid}")
    try:
        if (top / "ns" / "mnt").readlink() != Path("/proc/self/ns/mnt").readlink():
            raise NotCheckedError(
                "the server runs in another container",
                where=f"pid {process.pid}",
                why="its paths lead elsewhere there",
                todo="run penny freeze in that container",
            )
        argv = _split(_bounded(top / "cmdline", _LARGEST))
        environ = [each.partition("=") for each in _split(_bounded(top / "environ", _LARGEST))]
        maps = _bounded(top / "maps", _LARGEST_MAPS).decode("utf-8", "surrogateescape")
        executable, cwd = (top / "exe").readlink(), (top / "cwd").readlink()
    except OSError as error:
        raise NotCheckedError(
            "the process cannot be read",
            where=f"pid {process.pid}",
            why=error.strerror or str(error),
            todo="run penny freeze as the user that the server runs as",
        ) from error
    if not argv:
        raise NotCheckedError("the process has no command line", where=f"pid {process.pid}", why="it has ended")
    if str(executable).endswith(_DELETED):
        raise DriftError(
            "the interpreter of the server was replaced after it started",
            where=f"pid {process.pid}",
            why="its program is deleted, so what is installed now is not what runs",
            todo="start the server again and freeze that one",
        )
    found = Found(
        process=process,
        argv=argv,
        environ={name: value for name, equals, value in environ if equals},
        cwd=Path(str(cwd).removesuffix(_DELETED)),
        executable=executable,
        mapped=_mapped(maps),
        log=_log(top),
    )
    found.still_there()
    return found


def _split(data: bytes) -> tuple[str, ...]:
    """Texts between NULs; bytes that are no UTF-8 stay as surrogates, which no document carries."""
    return tuple(each.decode("utf-8", "surrogateescape") for each in data.rstrip(b"\0").split(b"\0")) if data else ()


def _bounded(path: Path, limit: int) -> bytes:
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise NotCheckedError(f"is larger than {limit} bytes", where=str(path))
    return data


def _mapped(maps: str) -> tuple[str, ...]:
    """Files that are mapped, each once; one that was deleted keeps the kernel's note."""
    lines = (line.split(maxsplit=5) for line in maps.splitlines())
    return tuple(sorted({parts[5] for parts in lines if len(parts) == 6 and parts[5].startswith("/")}))  # noqa: PLR2004


def _log(top: Path) -> Path | None:
    for number in ("2", "1"):
        try:
            path = Path(os.readlink(top / "fd" / number))  # noqa: PTH115  may be no path
            if path.is_absolute() and path.is_file():
                return path
        except OSError:
            continue
    return None

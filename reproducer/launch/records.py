"""Records of detached servers in the store, so that another shell can stop exactly what was started."""

import signal
from pathlib import Path
from typing import Literal, Protocol

from reproducer.documents.base import Document, Sha256, Size, Text
from reproducer.documents.toml import read_text, write_atomically
from reproducer.errors import NotCheckedError, PennyError
from reproducer.launch.ports import HOST
from reproducer.launch.processes import Process, machine_boot, sweep
from reproducer.launch.supervised import AFTER_GRACE_S
from reproducer.launch.turn import tidy
from reproducer.progress import Reporter

_LARGEST = 65536


class HasRoot(Protocol):
    """What is needed of a store."""

    @property
    def root(self) -> Path:
        """Its folder."""


class ServerRecord(Document):
    """One detached server; local to this machine, never evidence.

    Attributes:
        machine_boot: the kernel's id of this boot; start ticks of another boot mean nothing.
        pid: the server's process, leader of its own process group and session.
        token: by which processes of this launch are known.
    """

    format: Literal["penny-server/1"] = "penny-server/1"
    id: Sha256
    machine_boot: Text
    pid: Size
    start_ticks: Size
    pgid: Size
    supervisor_pid: Size
    supervisor_start_ticks: Size
    port: Size
    lock_name: Text
    lock_digest: Sha256
    namespace: Text
    namespace_root: Text
    log: Text
    token: Text
    grace_s: float

    @property
    def url(self) -> str:
        """Where the server answers."""
        return f"http://{HOST}:{self.port}"

    @property
    def server(self) -> Process:
        """The server's own process."""
        return Process(self.pid, self.start_ticks)

    @property
    def supervisor(self) -> Process:
        """The process that ends the server and everything it started."""
        return Process(self.supervisor_pid, self.supervisor_start_ticks)

    def alive(self) -> bool:
        """Whether any of it still runs: the same processes, on the same boot of the machine."""
        return self.machine_boot == machine_boot() and (self.supervisor.alive() or self.server.alive())


def record_path(store: HasRoot, token: str) -> Path:
    """Where the record of a launch lies."""
    return store.root / "servers" / f"{token}.json"


def write_record(store: HasRoot, record: ServerRecord) -> Path:
    """Write a record; NotCheckedError where the store cannot be written."""
    path = record_path(store, record.token)
    write_atomically(path, record.canonical() + b"\n", mode=0o600)
    return path


def servers(store: HasRoot) -> tuple[ServerRecord, ...]:
    """The detached servers of a store that still run; what dead ones left behind is removed.

    A file that is no record is left alone: it names nothing that could be stopped safely.
    """
    found = []
    for path in sorted((store.root / "servers").glob("*.json")):
        try:
            record = ServerRecord.from_json(read_text(path, what="server record", limit=_LARGEST), where=str(path))
        except PennyError:
            continue
        if path.stem != record.token:
            continue
        if record.alive():
            found.append(record)
        else:
            if record.machine_boot == machine_boot():
                sweep(record.token, Path(record.log))
            tidy(Path(record.namespace_root), record.token)
            path.unlink(missing_ok=True)
    return tuple(sorted(found, key=lambda record: (record.start_ticks, record.pid)))


def stop(record: ServerRecord, *, reporter: Reporter) -> None:
    """End a detached server and everything it started, and nothing else; one that has ended already is no error.

    Raises:
        NotCheckedError: it does not end.
    """
    if record.machine_boot != machine_boot():
        return
    reporter.detail(f"stopping {record.url} (pid {record.pid})")
    if record.supervisor.signal(signal.SIGTERM) and not record.supervisor.wait(record.grace_s + AFTER_GRACE_S):
        raise NotCheckedError(f"the server does not end (pid {record.pid})", where=record.url)
    record.server.signal(signal.SIGKILL)
    sweep(record.token, Path(record.log))

"""Penny's side of the supervisor: gives the order, hears what happens, asks for the end."""

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reproducer.errors import NotCheckedError
from reproducer.launch import supervisor
from reproducer.launch.processes import Process, process, sweep

GRACE_S = 30.0
_START_S = 30.0
AFTER_GRACE_S = supervisor.STRAGGLER_GRACE_S + supervisor.KILL_ATTEMPTS_S + 5.0


@dataclass(frozen=True)
class Order:
    """What the supervisor starts, and what it removes when all of it has ended.

    Attributes:
        log: an open descriptor for standard output and error.
        turn: path of the lock file that is held, with its open descriptor.
        record: path of the record that a detached launch will write.
    """

    argv: tuple[str, ...]
    environment: dict[str, str]
    cwd: Path
    log: int
    log_path: Path
    private: Path
    token: str
    turn: Path | None = None
    turn_handle: int | None = None
    record: Path | None = None
    grace_s: float = GRACE_S


@dataclass
class Supervised:
    """A server under a supervisor."""

    supervisor: Process
    order: Order
    _child: "subprocess.Popen[bytes]"
    _control: socket.socket
    _pending: bytes = b""
    _events: list[dict[str, Any]] = field(default_factory=list)
    _closed: bool = False
    _detached: bool = False
    server: Process | None = None

    def fileno(self) -> int:
        """What to select on beside other sockets: readable when something happened."""
        return self._control.fileno()

    def exit_status(self) -> int | None:
        """How the server ended; None while it runs. Minus the signal's number where a signal ended it."""
        self._listen(0)
        if (event := self._event("exited")) is not None:
            return int(event["status"])
        return -9 if self._closed else None

    def ended(self, seconds: float) -> bool:
        """Wait that long for the server to end by itself."""
        deadline = time.monotonic() + seconds
        while self.exit_status() is None and (left := deadline - time.monotonic()) > 0:
            self._listen(left)
        return self.exit_status() is not None

    def detach(self) -> None:
        """Let the server live on when penny ends.

        Raises:
            NotCheckedError: the supervisor is gone.
        """
        self._say(b"detach\n")
        self._expect("detached", _START_S)
        self._detached = True
        self._control.close()
        self._child.returncode = 0  # it lives on; nobody here waits for it

    def end(self) -> int:
        """End the server and everything it started; returns how many processes could not be ended.

        An interrupt while waiting kills at once; the end is always awaited. A detached server is left alone.
        """
        if self._detached:
            return 0
        self._say(b"stop\n")
        deadline = time.monotonic() + self.order.grace_s + AFTER_GRACE_S
        interrupted: BaseException | None = None
        while self._event("gone") is None and not self._closed and time.monotonic() < deadline:
            try:
                self._listen(deadline - time.monotonic())
            except BaseException as error:  # noqa: BLE001  raised again below, when nothing is left running
                interrupted = error
                self._say(b"kill\n")
        gone = self._event("gone")
        self._finish()
        if gone is None:
            sweep(self.order.token, self.order.log_path)
            self._remove_left_over()
        if interrupted is not None:
            raise interrupted
        return int(gone["left"]) if gone is not None else 0

    def _finish(self) -> None:
        """Reap the supervisor; one that does not end by itself has nothing left to do."""
        self._control.close()
        try:
            self._child.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def _remove_left_over(self) -> None:
        supervisor.remove_folder(str(self.order.private))
        if self.order.record is not None:
            self.order.record.unlink(missing_ok=True)

    def _event(self, name: str) -> dict[str, Any] | None:
        return next((event for event in self._events if event.get("event") == name), None)

    def _say(self, command: bytes) -> None:
        with contextlib.suppress(OSError):
            self._control.sendall(command)

    def _expect(self, name: str, seconds: float) -> dict[str, Any]:
        """The event of that name, waited for.

        Raises:
            NotCheckedError: it did not come: the supervisor could not start the server, or is gone.
        """
        deadline = time.monotonic() + seconds
        while (event := self._event(name)) is None:
            if (failed := self._event("failed")) is not None:
                raise NotCheckedError(
                    "the server cannot be started",
                    where=self.order.argv[0],
                    why=str(failed.get("why")),
                    todo="run `penny build`",
                )
            if self._closed or (left := deadline - time.monotonic()) <= 0:
                raise NotCheckedError("the supervisor of the server is gone", where=str(self.order.log_path))
            self._listen(left)
        return event

    def _listen(self, seconds: float) -> None:
        """Take in what the supervisor says, for at most that long."""
        if self._closed or self._control.fileno() < 0:
            return
        if not select.select([self._control], [], [], max(0.0, seconds))[0]:
            return
        try:
            data = self._control.recv(65536)
        except OSError:
            data = b""
        if not data:
            self._closed = True
            return
        self._pending += data
        *lines, self._pending = self._pending.split(b"\n")
        self._events.extend(json.loads(line) for line in lines)


def supervise(order: Order) -> Supervised:
    """Start a supervisor and, under it, the server.

    Raises:
        NotCheckedError: no process can be made, or the interpreter of the runtime cannot be executed.
    """
    ours, theirs = socket.socketpair()
    handles = [theirs.fileno(), order.log] + ([order.turn_handle] if order.turn_handle is not None else [])
    try:
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__, *map(str, handles)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=order.log,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            pass_fds=handles,
            start_new_session=True,
            cwd="/",
        )
    except OSError as error:
        ours.close()
        raise NotCheckedError("no process can be started", why=error.strerror or str(error)) from error
    finally:
        theirs.close()
    identity = process(child.pid)
    supervised = Supervised(identity or Process(child.pid, -1), order, child, ours)
    try:
        supervised._say(json.dumps(_told(order)).encode() + b"\n")  # noqa: SLF001  the other half of this class
        event = supervised._expect("started", _START_S)  # noqa: SLF001
    except BaseException:
        supervised.end()
        raise
    ticks = event["start_ticks"]
    supervised.server = Process(int(event["pid"]), -1 if ticks is None else int(ticks))
    return supervised


def _told(order: Order) -> dict[str, Any]:
    """The order as the supervisor reads it."""
    return {
        "argv": list(order.argv),
        "environment": order.environment,
        "cwd": os.fspath(order.cwd),
        "log": order.log,
        "private": os.fspath(order.private),
        "turn": None if order.turn is None else os.fspath(order.turn),
        "record": None if order.record is None else os.fspath(order.record),
        "grace_s": order.grace_s,
    }

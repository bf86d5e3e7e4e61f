"""The tiny process between penny and the server: whatever happens to penny, it ends the server and all it started.

It runs by itself (`python -I -S supervisor.py FD`), imports the standard library only, and talks JSON lines over the
socket FD: the first line from penny is the order, later ones are commands. When that socket closes before `detach`,
penny is gone and everything ends. Penny imports the functions that read `/proc` from here, so there is one of each.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import stat
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
STRAGGLER_GRACE_S = 1.0
KILL_ATTEMPTS_S = 10.0
POLL_S = 0.05
LARGEST_ORDER = 4 << 20


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since the machine did; None where it is gone or a zombie."""
    status = _status(pid)
    return None if status is None or status[2] else status[1]


def _status(pid: int) -> tuple[int, int, bool] | None:
    """Parent, start ticks and whether it has ended already (a zombie)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  pathlib costs start-up time here
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if len(fields) < 20:  # noqa: PLR2004  start time is field 22 of proc(5), the 20th after the name
        return None
    return int(fields[1]), int(fields[19]), fields[0] in (b"Z", b"X", b"x")


def descendants(root: int) -> dict[int, int]:
    """Every living process below `root`, by pid with its start ticks."""
    status: dict[int, tuple[int, int, bool]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208  pathlib costs start-up time here
        if name.isdigit() and (one := _status(int(name))) is not None:
            status[int(name)] = one
    children: dict[int, list[int]] = {}
    for pid, (parent, _, _) in status.items():
        children.setdefault(parent, []).append(pid)
    found: dict[int, int] = {}
    queue = list(children.get(root, ()))
    while queue:
        pid = queue.pop()
        if pid not in found:
            found[pid] = status[pid][1]
            queue.extend(children.get(pid, ()))
    return {pid: ticks for pid, ticks in found.items() if not status[pid][2]}


def send_signal(pid: int, ticks: int, number: int) -> bool:
    """Signal the process that has this pid AND started at `ticks`; False where that one is gone.

    The handle is opened before the start time is compared, so a pid that is used again is never hit.
    """
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if start_ticks(pid) != ticks:
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(handle)


def _prctl(option: int, value: int) -> None:
    """Set a process attribute of Linux; raises OSError where the kernel refuses."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class Supervisor:
    """Starts one server from an order, watches it and ends the whole tree."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.attached = True
        self.pending = b""
        self.pid = 0
        self.exit: int | None = None
        self.stopping_since: float | None = None
        self.killing = False
        self.wake_read, self.wake_write = socket.socketpair()
        self.order: dict[str, object] = {}

    def run(self) -> None:
        """From the order to the last process of the tree."""
        for end in (self.wake_read, self.wake_write):
            end.setblocking(False)  # noqa: FBT003  positional in the standard library
        signal.set_wakeup_fd(self.wake_write.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        line = self._first_line()
        if line is None:
            return
        self.order = json.loads(line)
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
        left = 0
        try:
            self._start()
            self._watch()
            left = self._end_stragglers()
        finally:
            self._clean_up()
        self._tell(event="gone", left=left)

    def _first_line(self) -> bytes | None:
        """The order; None where penny went away before giving one."""
        while b"\n" not in self.pending:
            data = self.control.recv(65536)
            if not data or len(self.pending) > LARGEST_ORDER:
                return None
            self.pending += data
        line, _, self.pending = self.pending.partition(b"\n")
        return line

    def _start(self) -> None:
        """Fork and exec the server in a session of its own; its start is reported, or why there is none."""
        order = self.order
        arguments = [os.fsencode(str(each)) for each in _list(order["argv"])]
        environment = {os.fsencode(name): os.fsencode(value) for name, value in _table(order["environment"]).items()}
        log, folder = int(str(order["log"])), os.fsencode(str(order["cwd"]))
        os.set_inheritable(log, False)  # noqa: FBT003  positional in the standard library
        read, write = os.pipe()
        me = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _become(arguments, environment, folder, log, me)
            except OSError as error:
                os.write(write, f"{error.strerror or error}".encode())
            finally:
                os._exit(127)
        os.close(write)
        os.close(log)
        fault = os.read(read, 4096)
        os.close(read)
        if fault:
            self._tell(event="failed", why=fault.decode(errors="replace"))
        else:
            self._tell(event="started", pid=self.pid, start_ticks=start_ticks(self.pid))

    def _watch(self) -> None:
        """Until the server itself has ended."""
        while self.exit is None:
            wait = None if self.stopping_since is None else POLL_S * 4
            sources = [self.wake_read] if self.control.fileno() < 0 else [self.wake_read, self.control]
            ready, _, _ = select.select(sources, [], [], wait)
            if self.wake_read in ready:
                self._signals()
            if self.control in ready:
                self._commands()
            self._reap()
            self._escalate()

    def _signals(self) -> None:
        """A signal to the supervisor means stop; a second one means now."""
        try:
            numbers = self.wake_read.recv(4096)
        except BlockingIOError:
            return
        for number in numbers:
            if number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                self._stop(now=self.stopping_since is not None)

    def _commands(self) -> None:
        """What penny says: stop, kill, detach, or nothing more because it is gone."""
        try:
            data = self.control.recv(65536)
        except OSError:
            data = b""
        if not data:
            self.control.close()
            if self.attached:
                self._stop()
            return
        self.pending += data
        while b"\n" in self.pending:
            command, _, self.pending = self.pending.partition(b"\n")
            if command == b"stop":
                self._stop()
            elif command == b"kill":
                self._stop(now=True)
            elif command == b"detach":
                self.attached = False
                self._tell(event="detached")

    def _stop(self, *, now: bool = False) -> None:
        """Ask the server to end; `now` does not wait for it."""
        if self.stopping_since is None:
            self.stopping_since = time.monotonic()
            self._signal_server(signal.SIGTERM)
        self.killing = self.killing or now

    def _escalate(self) -> None:
        """Kill what did not end within the grace period."""
        if self.stopping_since is None or self.exit is not None:
            return
        if self.killing or time.monotonic() - self.stopping_since > float(str(self.order["grace_s"])):
            self._signal_server(signal.SIGKILL)

    def _signal_server(self, number: int) -> None:
        """To the server's own process; it is our child and not reaped yet, so the pid is still its own."""
        if self.pid and self.exit is None:
            try:
                os.kill(self.pid, number)
            except OSError:
                return

    def _reap(self) -> None:
        """Collect every child that ended: the server, and orphans that the kernel handed to us."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                if self.exit is None:
                    self.exit = -1
                return
            if pid == 0:
                return
            if pid == self.pid:
                self.exit = os.waitstatus_to_exitcode(status)
                self._tell(event="exited", status=self.exit, asked=self.stopping_since is not None)

    def _end_stragglers(self) -> int:
        """End what the server left behind, wherever it put its sessions; how many could not be ended."""
        asked: set[int] = set()
        since = time.monotonic()
        left = descendants(os.getpid())
        while left:
            elapsed = time.monotonic() - since
            if elapsed > STRAGGLER_GRACE_S + KILL_ATTEMPTS_S:
                break
            hard = self.killing or elapsed > STRAGGLER_GRACE_S
            for pid, ticks in left.items():
                if hard:
                    send_signal(pid, ticks, signal.SIGKILL)
                elif pid not in asked:
                    asked.add(pid)
                    send_signal(pid, ticks, signal.SIGTERM)
            time.sleep(POLL_S if not hard else POLL_S / 10)
            self._reap()
            left = descendants(os.getpid())
        return len(left)

    def _clean_up(self) -> None:
        """Remove what existed for this server only: private folder, record, turn."""
        private = self.order.get("private")
        if isinstance(private, str):
            remove_folder(private)
        for name in ("record", "turn"):
            path = self.order.get(name)
            if isinstance(path, str):
                try:
                    os.unlink(path)  # noqa: PTH108  pathlib costs start-up time here
                except OSError:
                    continue

    def _tell(self, **event: object) -> None:
        """Report to penny, if it is still there."""
        try:
            self.control.sendall(json.dumps(event).encode() + b"\n")
        except OSError:
            return


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _table(value: object) -> dict[str, str]:
    return value if isinstance(value, dict) else {}


def _become(arguments: list[bytes], environment: dict[bytes, bytes], folder: bytes, log: int, parent: int) -> None:
    """Turn the forked child into the server; returns only by an exception."""
    os.setsid()
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(127)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.umask(0o077)
    os.chdir(folder)
    os.execve(arguments[0], arguments, environment)  # noqa: S606  an argument list, and no shell anywhere


def remove_folder(path: str) -> None:
    """Remove a folder and all in it without following links; what cannot be removed stays."""
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            return
        for folder, folders, files in os.walk(path, topdown=False):
            for name in files:
                _quietly(os.unlink, os.path.join(folder, name))  # noqa: PTH118  pathlib costs start-up time here
            for name in folders:
                inner = os.path.join(folder, name)  # noqa: PTH118  pathlib costs start-up time here
                _quietly(os.unlink if os.path.islink(inner) else os.rmdir, inner)  # noqa: PTH114
        os.rmdir(path)  # noqa: PTH106  pathlib costs start-up time here
    except OSError:
        return


def _quietly(action: object, path: str) -> None:
    try:
        action(path)  # type: ignore[operator]
    except OSError:
        return


def main() -> None:
    """Run under the socket whose number is the only argument; descriptors after it are kept open until the end."""
    descriptors = [int(each) for each in sys.argv[1:]]
    for each in descriptors:
        os.set_inheritable(each, False)  # noqa: FBT003  positional in the standard library
    os.chdir("/")
    Supervisor(socket.socket(fileno=descriptors[0])).run()


if __name__ == "__main__":
    main()

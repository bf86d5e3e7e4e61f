"""Which process is meant: pid and start time together, on this boot of the machine."""

import os
import select
import signal
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from reproducer.canonical import content_digest
from reproducer.documents.receipts import Boot
from reproducer.launch.supervisor import descendants, send_signal, start_ticks

TOKEN_VARIABLE = "PENNY_LAUNCH"  # noqa: S105  the name of a variable
LOG_HEADER = "penny launch "
_SWEEP_S = 5.0


@dataclass(frozen=True)
class Process:
    """One process by pid and start time; a pid that is used again is another process."""

    pid: int
    start_ticks: int

    def alive(self) -> bool:
        """Whether exactly this process still runs."""
        return start_ticks(self.pid) == self.start_ticks

    def signal(self, number: signal.Signals) -> bool:
        """Signal exactly this process; False where it is gone."""
        return send_signal(self.pid, self.start_ticks, number)

    def wait(self, seconds: float) -> bool:
        """Wait until it has ended; False where it still runs after that time."""
        try:
            handle = os.pidfd_open(self.pid)
        except OSError:
            return not self.alive()
        try:
            if not self.alive():
                return True
            return bool(select.select([handle], [], [], seconds)[0])
        finally:
            os.close(handle)


def process(pid: int) -> Process | None:
    """The process that has this pid now; None where there is none."""
    ticks = start_ticks(pid)
    return None if ticks is None else Process(pid, ticks)


def machine_boot() -> str:
    """The id of this boot of the machine: start ticks mean nothing across two boots."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def started_utc(ticks: int) -> str:
    """The wall-clock time (RFC 3339, whole seconds) of a start in ticks since the machine's boot."""
    line = next(
        line for line in Path("/proc/stat").read_text(encoding="ascii").splitlines() if line.startswith("btime")
    )
    seconds = int(line.split()[1]) + ticks // os.sysconf("SC_CLK_TCK")
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def boot_of(process: Process, namespace: str) -> Boot:
    """The boot of a server in a namespace; its id is the digest of pid, start time and namespace."""
    started, ticks = started_utc(process.start_ticks), process.start_ticks
    digest = boot_id(pid=process.pid, started=started, start_ticks=ticks, namespace=namespace)
    return Boot(id=digest, pid=process.pid, started=started, start_ticks=ticks)


def boot_id(*, pid: int, started: str, start_ticks: int, namespace: str) -> str:
    """The id of a boot; `verify` recomputes it."""
    return content_digest({"namespace": namespace, "pid": pid, "start_ticks": start_ticks, "started": started})


def command_line(pid: int) -> str:
    """What a process was started as, short and printable; empty where it cannot be read."""
    try:
        data = Path(f"/proc/{pid}/cmdline").read_bytes()[:200]
    except OSError:
        return ""
    text = data.replace(b"\0", b" ").decode(errors="replace").strip()
    return "".join(character if character.isprintable() else "?" for character in text)[:100]


def sweep(token: str, log: Path | None, *, seconds: float = _SWEEP_S) -> int:
    """Kill what a launch left behind after its supervisor was killed; returns how many processes that were.

    They are known by the launch's token in their environment, or by writing their output to the launch's own log, which
    begins with the token.
    """
    killed: set[int] = set()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = _marked(token, log)
        for each in found:
            if each.signal(signal.SIGKILL):
                killed.add(each.pid)
        if not found:
            break
        time.sleep(0.01)
    return len(killed)


def living(token: str, log: Path | None) -> tuple[Process, ...]:
    """Every process of a launch that still lives, known as `sweep` knows them; nothing is ended."""
    return tuple(_marked(token, log))


def _marked(token: str, log: Path | None) -> list[Process]:
    """Every process of a launch, by its marks."""
    mark = f"{TOKEN_VARIABLE}={token}".encode()
    file = _identity(log, token) if log is not None else None
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208  names only, many of them
        if not name.isdigit() or int(name) == os.getpid():
            continue
        each = process(int(name))
        if each is not None and (_has_mark(each.pid, mark) or (file is not None and _writes_to(each.pid, file))):
            found.append(each)
    return found


def log_header(token: str) -> bytes:
    """The first line of a launch's log: a log that another launch has replaced does not begin with it."""
    return f"{LOG_HEADER}{token}\n".encode()


def _identity(log: Path, token: str) -> tuple[int, int] | None:
    """Device and inode of a launch's log; None where that file is gone or another launch's."""
    try:
        with log.open("rb") as file:
            header = log_header(token)
            status = os.fstat(file.fileno())
            return (status.st_dev, status.st_ino) if file.read(len(header)) == header else None
    except OSError:
        return None


def _has_mark(pid: int, mark: bytes) -> bool:
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _writes_to(pid: int, file: tuple[int, int]) -> bool:
    """Whether standard output or error of a process is this file, opened for appending as penny opens a log."""
    for number in (1, 2):
        try:
            status = Path(f"/proc/{pid}/fd/{number}").stat()
            if (status.st_dev, status.st_ino) != file:
                continue
            info = Path(f"/proc/{pid}/fdinfo/{number}").read_text(encoding="ascii")
        except OSError:
            continue
        flags = next((int(line.split()[1], 8) for line in info.splitlines() if line.startswith("flags:")), 0)
        if flags & os.O_APPEND:
            return True
    return False


__all__ = ["Process", "boot_id", "boot_of", "command_line", "descendants", "living", "machine_boot", "process", "sweep"]

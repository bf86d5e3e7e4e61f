"""The server's log as penny reads it: bounded, printable, and without machine paths where it is shown."""

import errno
import hashlib
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from reproducer.engines.interface import Engine, replaced
from reproducer.errors import NotCheckedError
from reproducer.launch.processes import LOG_HEADER, log_header

_TAIL = 64 << 10
_LONGEST_LINE = 240
_HEAD = 8 << 20
_SHOWN_LINES = 6
_CONTROL = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def create_log(path: Path, token: str) -> int:
    """A new, private log at `path`, open for appending, its first line the launch's token; an earlier one is replaced.

    Raises:
        NotCheckedError: it cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        log = os.open(path, flags, 0o600)
        os.write(log, log_header(token))
    except OSError as error:
        raise NotCheckedError("the log cannot be written", where=str(path), why=error.strerror or str(error)) from error
    return log


def read_head(path: Path) -> tuple[str, str]:
    """The text of a log so far (at most 8 MiB) and the digest of all of its bytes so far.

    Raises:
        OSError: it cannot be read, or is no plain file: a pipe may never end, and a device has no end.
    """
    digest = hashlib.sha256()
    head = b""
    with _plain(path) as file:
        left = os.fstat(file.fileno()).st_size
        while left > 0 and (block := file.read(min(left, 1 << 20))):
            left -= len(block)
            digest.update(block)
            if len(head) < _HEAD:
                head += block[: _HEAD - len(head)]
    return head.decode("utf-8", errors="replace"), digest.hexdigest()


def first_text(path: Path) -> str:
    """The text that a log begins with, at most 8 MiB; raises as `read_head`."""
    with _plain(path) as file:
        return file.read(_HEAD).decode("utf-8", errors="replace")


def _plain(path: Path) -> BinaryIO:
    """A plain file, open; nobody waits for one who writes to a pipe."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        kind = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(kind, os.strerror(kind) if kind == errno.EISDIR else "it is no plain file", str(path))
    return os.fdopen(handle, "rb")


def lines_of(text: str) -> list[str]:
    """The lines of a log, with a progress bar's steps as lines of their own and nothing that steers a terminal."""
    return [_CONTROL.sub("", line).rstrip()[:_LONGEST_LINE] for line in re.split(r"[\r\n]+", text)]


def last_words(path: Path, engine: Engine, values: Mapping[str, str]) -> str:
    """The last lines of a log that may say why a start failed, as one clause; machine paths replaced."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            text = file.read(_TAIL).decode("utf-8", errors="replace")
    except OSError:
        text = ""
    lines = [
        replaced(line.strip(), values)
        for line in lines_of(text)
        if line.strip() and not line.startswith(LOG_HEADER) and not engine.is_noise(line)
    ]
    told = " | ".join(lines[-_SHOWN_LINES:])
    return f"the log ends: {told}" if told else "the log says nothing"


class Follower:
    """Reads what a log gained, line by line, to tell how far the start is."""

    def __init__(self, path: Path, engine: Engine) -> None:
        self.path = path
        self.engine = engine
        self.at = 0
        self.said = ""

    def phase(self) -> str | None:
        """A phase that was not told yet; None where nothing new was reached."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.at)
                data = file.read(_TAIL)
        except OSError:
            return None
        complete = data.rfind(b"\n") + 1
        self.at += complete or (len(data) if len(data) == _TAIL else 0)
        phases = [self.engine.phase(line) for line in lines_of(data[:complete].decode("utf-8", errors="replace"))]
        reached = [phase for phase in phases if phase is not None]
        if not reached or reached[-1] == self.said:
            return None
        self.said = reached[-1]
        return self.said

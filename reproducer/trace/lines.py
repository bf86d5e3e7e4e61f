"""A log from anywhere as lines: read once, in pieces, packed or not, and never more than its bounds allow."""

import gzip
import hashlib
import os
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from reproducer.errors import NotCheckedError, UnsafeInputError, UsageError

if TYPE_CHECKING:
    import re

PIECE = 1 << 20
LONGEST_LINE = 4 << 20
MOST_UNPACKED = 64 << 30
_KEPT = 512
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Piece:
    """Whole lines, each with its line feed, or one line that is none.

    Attributes:
        first: the number of the first line, from 1.
        long: whether it is one line that was longer than may be, and this is how it begins.
        cut: whether it is one line, the file's last, that no line feed ends.
        holds: whether, of a line that is too long, what was looked for stands in it anywhere.
    """

    text: bytes
    first: int
    long: bool = False
    cut: bool = False
    holds: bool = False

    def lines(self) -> list[bytes]:
        """The lines without their line feeds."""
        return [self.text] if self.long or self.cut else self.text.split(b"\n")[:-1]


class LogFile:
    """One file, opened and hashed while it is read.

    Attributes:
        lines: how many lines came out so far.
        unpacked: how many bytes came out so far.
        fault: why it ended before its end; empty where it did not.
        wanted: what is looked for in lines that are too long to be read.
    """

    def __init__(self, path: Path, *, most: int = MOST_UNPACKED, wanted: "re.Pattern[bytes] | None" = None) -> None:
        """Raises: UsageError, UnsafeInputError, NotCheckedError: there is no such plain file to be read."""
        self.path = path
        self.lines = 0
        self.unpacked = 0
        self.fault = ""
        self.wanted = wanted
        self._text = hashlib.sha256()
        self._most = most
        self._file = _Hashed(_opened(path))
        self._packed = False

    @property
    def sha256(self) -> str:
        """The digest of the whole file as it lies there."""
        return self._file.sha256

    @property
    def text_sha256(self) -> str:
        """The digest of what was read of it, unpacked."""
        return self._text.hexdigest() if self._packed else self.sha256

    @property
    def size(self) -> int:
        """How many bytes were read of it as it lies there."""
        return self._file.size

    def pieces(self) -> Iterator[Piece]:
        """Its lines, a mebibyte or so at a time; the file is read to its end and closed.

        Raises:
            NotCheckedError: it cannot be read on.
        """
        try:
            yield from self._cut_into_lines()
            self._file.finish()
        except OSError as error:
            raise NotCheckedError(
                "cannot be read", where=str(self.path), why=error.strerror or type(error).__name__
            ) from error
        finally:
            self._file.close()

    def _cut_into_lines(self) -> Iterator[Piece]:
        rest = b""
        dropped: _Dropped | None = None
        for read in self._unpacked():
            data = read
            if dropped is not None:
                end = data.find(b"\n") + 1
                dropped.look(data[: end or len(data)])
                if not end:
                    continue
                yield self._piece(dropped.begins, 1, long=True, holds=dropped.holds)
                data, dropped = data[end:], None
            end = data.rfind(b"\n") + 1
            if end:
                text, rest = rest + data[:end], data[end:]
                yield self._piece(text, text.count(b"\n"))
            else:
                rest += data
            if len(rest) > LONGEST_LINE:
                dropped = _Dropped(rest[:_KEPT], self.wanted)
                dropped.look(rest)
                rest = b""
        if dropped is not None:
            yield self._piece(dropped.begins, 1, long=True, holds=dropped.holds)
        if rest:
            yield self._piece(rest, 1, cut=True)

    def _piece(self, text: bytes, count: int, *, long: bool = False, cut: bool = False, holds: bool = False) -> Piece:
        first = self.lines + 1
        self.lines += count
        return Piece(text, first, long, cut, holds)

    def _unpacked(self) -> Iterator[bytes]:
        """The bytes of the text; a packed file that is damaged or too large ends early, with its fault."""
        start = self._file.peek(2)
        file: Any = self._file  # it has all that gzip asks of a file, and no more
        self._packed = start == _GZIP
        reader = gzip.GzipFile(fileobj=file) if self._packed else file
        while True:
            try:
                data = reader.read(PIECE)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                self.fault = f"the packed file is damaged: {error}"
                return
            if not data:
                return
            if self.unpacked + len(data) > self._most:
                self.fault = f"more than {self._most} bytes are not read"
                return
            self.unpacked += len(data)
            if self._packed:
                self._text.update(data)
            yield data


class _Dropped:
    """A line that is longer than may be: how it begins, and whether it holds what is looked for."""

    def __init__(self, begins: bytes, wanted: "re.Pattern[bytes] | None") -> None:
        self.begins = begins
        self.holds = False
        self._wanted = wanted
        self._before = b""

    def look(self, data: bytes) -> None:
        """Look at more of it; what is looked for may go over from one part to the next."""
        if self._wanted is not None and not self.holds:
            self.holds = self._wanted.search(self._before + data) is not None
        self._before = data[-_KEPT:]


class _Hashed:
    """A file that hashes what is read of it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self._ahead = b""
        self.size = 0

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def peek(self, count: int) -> bytes:
        self._ahead = self._take(count)
        return self._ahead

    def read(self, count: int = PIECE) -> bytes:
        ahead, self._ahead = self._ahead, b""
        if len(ahead) < count:
            ahead += self._take(count - len(ahead))
        return ahead

    def finish(self) -> None:
        """Read on to the end for the digest."""
        self._ahead = b""
        while self._take(PIECE):
            pass

    def close(self) -> None:
        self._file.close()

    def _take(self, count: int) -> bytes:
        data = self._file.read(count)
        self._hash.update(data)
        self.size += len(data)
        return data


def _opened(path: Path) -> IO[bytes]:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise UsageError(
            "there is no such file", where=str(path), todo="name a log, a metrics page or a CSV"
        ) from error
    except OSError as error:
        raise NotCheckedError("cannot be read", where=str(path), why=error.strerror or str(error)) from error
    file = os.fdopen(handle, "rb", buffering=0) if stat.S_ISREG(os.fstat(handle).st_mode) else None
    if file is None:
        os.close(handle)
        raise UnsafeInputError("is not a regular file", where=str(path), todo="write the log to a file first")
    return file

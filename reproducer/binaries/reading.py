"""A bounded view of bytes: in a file, or in memory once something was decompressed."""

import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproducer.errors import NotCheckedError, UnsafeInputError

PIECE = 1 << 20


class MalformedError(ValueError):
    """The bytes are not what their headers say."""


@dataclass(frozen=True)
class Window:
    """A stretch of bytes that knows its length; nothing outside of it can be read.

    Attributes:
        source: an open file, or the bytes themselves.
        start: where the stretch begins in the source.
        size: its bytes.
    """

    source: int | bytes
    start: int
    size: int

    def read(self, offset: int, length: int) -> bytes:
        """Exactly these bytes.

        Raises:
            MalformedError: they lie outside of the stretch, or the file became shorter.
        """
        self.inside(offset, length)
        first = self.start + offset
        if isinstance(self.source, bytes):
            return self.source[first : first + length]
        found = b""
        while len(found) < length:
            piece = os.pread(self.source, length - len(found), first + len(found))
            if not piece:
                raise MalformedError("ends before its headers say so")
            found += piece
        return found

    def inside(self, offset: int, length: int) -> "Window":
        """A stretch within this one; raises MalformedError where it reaches out of it."""
        if offset < 0 or length < 0 or offset + length > self.size:
            raise MalformedError(f"names bytes {offset} to {offset + length} of {self.size}")
        return Window(self.source, self.start + offset, length)

    def unpack(self, layout: str, offset: int) -> tuple[Any, ...]:
        """The fields of a structure at an offset; raises MalformedError as `read` does."""
        return struct.unpack(layout, self.read(offset, struct.calcsize(layout)))

    def pieces(self) -> Iterator[bytes]:
        """All bytes in order, a piece at a time."""
        for offset in range(0, self.size, PIECE):
            yield self.read(offset, min(PIECE, self.size - offset))


def window_of(data: bytes) -> Window:
    """Bytes in memory as a window."""
    return Window(data, 0, len(data))


@contextmanager
def opened(path: Path) -> Iterator[Window]:
    """A regular file as a window; a symbolic link in the last place is not followed.

    Raises:
        UnsafeInputError: a link, folder, device, socket or pipe.
        NotCheckedError: it cannot be read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if path.is_symlink():
            raise UnsafeInputError("is a symbolic link", where=str(path)) from error
        raise NotCheckedError("cannot be read", where=str(path), why=error.strerror or str(error)) from error
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise UnsafeInputError("is not a regular file", where=str(path))
        yield Window(handle, 0, status.st_size)
    except OSError as error:
        raise NotCheckedError("cannot be read", where=str(path), why=error.strerror or str(error)) from error
    finally:
        os.close(handle)

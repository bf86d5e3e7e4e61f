"""Large files are hashed where they lie in the page cache: without a copy a tenth of the work is saved.

Whoever shortens a file takes mapped pages from under their reader, and a disk that fails does too: the process would
die of SIGBUS. So a piece is mapped only while a read lease keeps everybody from opening the file for writing (they wait
for the piece, which takes milliseconds), and only once the kernel has said that all its pages are there. Where it
grants no lease (another owner, a writer, a file system without leases) or does not promise the pages, the rest of the
file is read, which finds the same digest or says what is wrong.
"""

import fcntl
import mmap
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

PIECE = 2 << 20
_SET_SIGNAL = 10  # F_SETSIG, which not every Python names
_POPULATE_READ = 22  # MADV_POPULATE_READ, since Linux 5.14


class Digest(Protocol):
    """What takes bytes."""

    def update(self, data: mmap.mmap, /) -> None:
        """Take more bytes."""


def update_mapped(digest: Digest, handle: int, size: int, progress: Callable[[int], None] | None) -> int:
    """Feed a file's bytes from its start to a digest, as far as that is safe.

    Args:
        digest: takes the bytes, in order.
        handle: the file, open for reading only.
        size: bytes that the file had.
        progress: called with the bytes of every piece.

    Returns:
        How many bytes the digest has taken; the rest is to be read.
    """
    done = 0
    try:
        # A lease that is broken is told by a signal; this one is ignored unless somebody asks for it.
        fcntl.fcntl(handle, _SET_SIGNAL, signal.SIGURG)
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError:
        return done
    try:
        while done < size and fcntl.fcntl(handle, fcntl.F_GETLEASE) == fcntl.F_RDLCK:
            length = min(PIECE, size - done)
            try:
                piece = mmap.mmap(handle, length, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ, offset=done)
            except (OSError, ValueError):  # ValueError: the file has become shorter than its size was
                break
            with piece:
                try:
                    piece.madvise(_POPULATE_READ)
                except OSError:
                    break
                digest.update(piece)
            done += length
            if progress:
                progress(length)
    finally:
        with suppress(OSError):
            fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return done

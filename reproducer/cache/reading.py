"""The digest of a page as it lies on the disk, many at once and in flat memory."""

import errno
import hashlib
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeVar

from reproducer.cache.folders import FILE, folder_of
from reproducer.errors import NotCheckedError
from reproducer.store.hashing import workers_here

_OURS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_BATCH = 32
_BATCHES_A_WORKER = 4
A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True)
class Page:
    """One page as it was read.

    Attributes:
        state: `whole`: a regular file of ours that did not change while it was read. `changing`: it did. `missing`: no
            such file. `strange`: a link, a pipe, another user's, or not readable; `why` says which.
    """

    state: Literal["whole", "changing", "missing", "strange"]
    sha256: str = ""
    size: int = 0
    why: str = ""


def read_page(pages: int, path: str, progress: Callable[[int], None]) -> Page:
    """Read one page below the open folder of pages.

    The kernel is asked first to forget what it holds of the file, so that the bytes are those on the disk: an engine
    that reads past the kernel's cache gets those.

    Raises:
        NotCheckedError: this process has no handles or memory left.
    """
    try:
        with folder_of(pages, path) as (folder, name):
            handle = os.open(name, FILE, dir_fd=folder)
    except (FileNotFoundError, NotADirectoryError):
        return Page("missing")
    except OSError as error:
        return _strange(error, path)
    try:
        with os.fdopen(handle, "rb", buffering=0) as file:
            before = os.fstat(handle)
            if not stat.S_ISREG(before.st_mode):
                return Page("strange", why="no regular file")
            if before.st_uid != os.geteuid():
                return Page("strange", why="another user's")
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            after = os.fstat(handle)
    except OSError as error:
        return _strange(error, path)
    progress(before.st_size)
    same = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
    return Page("whole" if same else "changing", digest, after.st_size)


def _strange(error: OSError, path: str) -> Page:
    if error.errno in _OURS:
        raise NotCheckedError("cannot be read", where=repr(path), why=error.strerror or str(error)) from error
    if error.errno in (errno.ELOOP, errno.ENXIO):
        return Page("strange", why="a link or a socket")
    return Page("strange", why=f"not readable: {error.strerror}")


def in_parallel(work: Callable[[A], B], items: Iterable[A]) -> Iterator[tuple[A, B]]:
    """Each item with what `work` made of it, in their order; only a bounded number is under way at a time."""
    source = iter(items)
    workers = workers_here()
    with ThreadPoolExecutor(workers, thread_name_prefix="page") as pool:
        waiting: deque[Future[list[tuple[A, B]]]] = deque()
        try:
            while True:
                while len(waiting) < workers * _BATCHES_A_WORKER and (batch := list(islice(source, _BATCH))):
                    waiting.append(pool.submit(_each, work, batch))
                if not waiting:
                    return
                yield from waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _each(work: Callable[[A], B], batch: list[A]) -> list[tuple[A, B]]:
    return [(item, work(item)) for item in batch]

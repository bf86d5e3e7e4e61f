"""Sealing: the digests of all pages that are whole, beside a running server too.

What was sealed before is read again and keeps its digest only if its bytes still have it. One whose bytes differ is
damaged: it keeps the digest it had, so that every later check finds it, unless changes are accepted by name.
"""

import hashlib
import os
import stat
import time
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import ExitStack
from threading import Lock as Guard

from reproducer.cache.folders import Found, Root, key_of, open_pages, walk
from reproducer.cache.model import Fault, Sealed
from reproducer.cache.reading import Page, in_parallel, read_page
from reproducer.cache.seal import Row, SealWriter, opened_rows, read_seal
from reproducer.cache.use import work
from reproducer.errors import NotCheckedError
from reproducer.progress import Reporter

QUIET_S = 5.0
SHOWN = 20
_KINDS = 1024


def seal(root: Root, *, running: bool, accept_changes: bool = False, reporter: Reporter) -> Sealed:
    """Seal the pages of a namespace; another penny that works on them is waited for.

    A file that is empty, changes while it is read, or has another size than most of its kind may not be complete: it
    is counted as changing and left out. So is one that a running server wrote to in the last seconds.

    Args:
        root: the namespace.
        running: whether a server runs in it.
        accept_changes: bless pages whose bytes are not what an earlier seal says, and replace a seal that cannot be
            read.
        reporter: is shown progress in bytes.

    Raises:
        NotCheckedError: the earlier seal cannot be read or does not hold; the disk is full.
        UnsafeInputError: a part of the namespace is a link or another user's.
    """
    with ExitStack() as stack:
        stack.enter_context(work(root.handle, root.name, reporter=reporter))
        pages = open_pages(root.handle)
        if pages is None:
            return Sealed(root.name)
        stack.callback(os.close, pages)
        writer = stack.enter_context(SealWriter(root))
        task = stack.enter_context(reporter.task(f"sealing {root.name}", None, "bytes"))
        guard = Guard()

        def progress(amount: int) -> None:
            with guard:
                task.advance(amount)

        said = Sealed(root.name)
        sealing = _Sealing(pages, writer, said, running=running, accept_changes=accept_changes)
        with ExitStack() as old:
            try:
                earlier = read_seal(root)
                rows = old.enter_context(opened_rows(root, earlier)) if earlier is not None else None
            except NotCheckedError:
                if not accept_changes:
                    raise
                rows = None
            for row, page in in_parallel(lambda row: read_page(pages, row.path, progress), rows or ()):
                sealing.again(row, page)
        sealing.known = array("Q", sorted(sealing.known))
        for found, page in in_parallel(lambda found: read_page(pages, found, progress), sealing.fresh()):
            sealing.first_time(found, page)
        writer.finish()
        said.pages, said.size = writer.pages, writer.size
        return said


class Sizes:
    """The size that most files of each kind have. An engine's pages are of one size; a shorter one was cut off.

    A kind is what follows the page's key in the name. Names without a key are of no kind, and so are more kinds than an
    engine has.
    """

    def __init__(self, pages: int) -> None:
        counts: dict[str, dict[int, int]] = {}
        for found in walk(pages):
            kind = _kind(found.name)
            if kind is not None and stat.S_ISREG(found.status.st_mode) and (kind in counts or len(counts) < _KINDS):
                sizes = counts.setdefault(kind, {})
                if found.status.st_size in sizes or len(sizes) < _KINDS:
                    sizes[found.status.st_size] = sizes.get(found.status.st_size, 0) + 1
        self._usual = {kind: max(sizes, key=lambda size: (sizes[size], size)) for kind, sizes in counts.items()}

    def fits(self, found: Found) -> bool:
        """Whether a file has the size of its kind."""
        kind = _kind(found.name)
        return kind is None or kind not in self._usual or self._usual[kind] == found.status.st_size


def _kind(name: str) -> str | None:
    key = key_of(name)
    return name[len(key) :] if key else None


class _Sealing:
    """One run: what is known of the earlier seal, eight bytes a page, and what came out so far."""

    def __init__(self, pages: int, writer: SealWriter, said: Sealed, *, running: bool, accept_changes: bool) -> None:
        self.pages = pages
        self.writer = writer
        self.said = said
        self.running = running
        self.accept_changes = accept_changes
        self.known = array("Q")
        self._salt = os.urandom(16)
        self._sizes = Sizes(pages)

    def again(self, row: Row, page: Page) -> None:
        """A page that was sealed before, as it lies there now."""
        if page.state == "missing":
            self.said.missing += 1
            return
        self.known.append(self._hash(row.path))
        if page.state == "changing":
            self.said.changing += 1
            self.writer.add(row)
        elif page.state == "whole" and (page.sha256, page.size) == (row.sha256, row.size):
            self.writer.add(row)
        elif self.accept_changes and page.state == "whole":
            self.said.accepted += 1
            self.writer.add(Row(row.path, page.sha256, page.size))
        else:
            self.said.damaged += 1
            if len(self.said.faults) < SHOWN:
                self.said.faults.append(Fault(row.path, row.sha256, page.why or page.sha256))
            self.writer.add(row)

    def fresh(self) -> Iterator[str]:
        """The files that no seal names yet and that look complete."""
        now = time.time()
        for found in walk(self.pages):
            key = self._hash(found.path)
            place = bisect_left(self.known, key)
            if place < len(self.known) and self.known[place] == key:
                continue
            if self._complete(found, now):
                yield found.path
            else:
                self.said.changing += 1

    def first_time(self, path: str, page: Page) -> None:
        """A page that was never sealed."""
        if page.state == "whole":
            self.writer.add(Row(path, page.sha256, page.size))
            self.said.added += 1
        elif page.state != "missing":
            self.said.changing += 1

    def _complete(self, found: Found, now: float) -> bool:
        """Whether a file is what an engine leaves when it has written a page."""
        status = found.status
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_size == 0:
            return False
        if self.running and now - status.st_mtime < QUIET_S:
            return False
        return self._sizes.fits(found)

    def _hash(self, path: str) -> int:
        data = path.encode("utf-8", "surrogateescape")
        return int.from_bytes(hashlib.blake2b(data, digest_size=8, salt=self._salt).digest(), "big")

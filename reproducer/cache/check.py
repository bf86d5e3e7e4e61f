"""Checking: sealed pages against their digests; what differs is set aside, so that the engine misses it.

A page is one thing to the engine and may be several files. Where one of them is damaged or missing, the others of the
same page are set aside too, so that no half is ever used. Nothing is deleted: what is set aside lies in `damaged/` with
a record of what was expected and what was found, and the seal forgets it, because the engine may write that page anew.
"""

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Lock as Guard
from typing import BinaryIO, Self

from reproducer.cache.folders import FOLDER, Root, folder_of, open_pages, page_key, walk
from reproducer.cache.model import Checked, Fault
from reproducer.cache.reading import Page, in_parallel, read_page
from reproducer.cache.seal import Row, Rows, SealWriter, opened_rows, read_seal
from reproducer.cache.use import work
from reproducer.progress import Reporter
from reproducer.store.faults import writing

DAMAGED = "damaged"
RECORD = "record.jsonl"
SHOWN = 20
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def check(root: Root, *, running: bool, reporter: Reporter) -> Checked:
    """Compare the sealed pages of a namespace with their digests; another penny that works on them is waited for.

    Args:
        root: the namespace.
        running: whether a server runs in it: then a page of which a file is missing may just be written anew, and its
            other files are left alone.
        reporter: is shown progress in bytes.

    Raises:
        NotCheckedError: the seal or its list cannot be read or does not hold, or nothing can be set aside.
        UnsafeInputError: a part of the namespace is a link or another user's, or the seal names something outside.
    """
    said = Checked(root.name)
    with ExitStack() as stack:
        stack.enter_context(work(root.handle, root.name, reporter=reporter))
        seal = read_seal(root)
        pages = open_pages(root.handle)
        if pages is not None:
            stack.callback(os.close, pages)
        if seal is None:
            said.unsealed = sum(1 for _ in walk(pages)) if pages is not None else 0
            return said
        said.sealed = True
        rows = stack.enter_context(opened_rows(root, seal))
        if pages is None:
            said.missing = seal.pages
            return said
        task = stack.enter_context(reporter.task(f"checking {root.name}", seal.bytes, "bytes"))
        guard = Guard()

        def progress(amount: int) -> None:
            with guard:
                task.advance(amount)

        with _Aside(root, pages, said) as aside:
            broken = set()
            for row, page in in_parallel(lambda row: read_page(pages, row.path, progress), rows):
                if (key := _judge(row, page, said, aside)) is not None and not (running and page.state == "missing"):
                    broken.add(key)
            total = _whole_pages_go(pages, broken, said, aside)
        said.unsealed = max(0, total - said.good - said.changing)
        if said.damaged or said.beside or said.missing:
            said.good = _forget(root, rows, pages)
        return said


def _judge(row: Row, page: Page, said: Checked, aside: "_Aside") -> str | None:
    """Count one page; the key of its page where it is damaged or missing."""
    if page.state == "missing":
        said.missing += 1
    elif page.state == "changing":
        said.changing += 1
        return None
    elif page.state == "whole" and (page.sha256, page.size) == (row.sha256, row.size):
        said.good += 1
        said.size += page.size
        return None
    else:
        aside.put(Fault(row.path, f"sha256 {row.sha256}", page.why or f"sha256 {page.sha256}"))
        said.damaged += 1
    return page_key(row.path)


def _whole_pages_go(pages: int, broken: set[str], said: Checked, aside: "_Aside") -> int:
    """Set aside the other files of pages that are not whole; returns how many files stay."""
    stay, go = 0, []
    for found in walk(pages):
        if page_key(found.path) in broken:
            go.append(found.path)
        else:
            stay += 1
    for path in go:
        if aside.put(Fault(path, "all files of its page", "another file of its page is damaged or missing")):
            said.beside += 1
    return stay


def _forget(root: Root, rows: Rows, pages: int) -> int:
    """Seal what is left of the sealed pages: those that went may be written anew with other bytes."""
    with SealWriter(root) as writer:
        for row in rows:
            with suppress(OSError), folder_of(pages, row.path) as (folder, name):
                os.stat(name, dir_fd=folder, follow_symlinks=False)
                writer.add(row)
        return writer.finish().pages


class _Aside:
    """The folder that damaged pages of one check are moved to, made with the first of them."""

    def __init__(self, root: Root, pages: int, said: Checked) -> None:
        self._root = root
        self._pages = pages
        self._said = said
        self._name = secrets.token_hex(8)
        self._folder = -1
        self._record: BinaryIO | None = None

    def put(self, fault: Fault) -> bool:
        """Move one file away and record why; False where it is gone already.

        Raises:
            NotCheckedError: it cannot be moved: the disk is full or read-only.
        """
        with writing(self._root.path / DAMAGED, what="what is set aside"):
            if self._record is None:
                self._record = self._open()
            self._record.write(json.dumps(fault.content(), sort_keys=True).encode() + b"\n")
            self._record.flush()
            try:
                with (
                    folder_of(self._pages, fault.page) as (source, name),
                    _place(self._folder, fault.page) as (target, new),
                ):
                    os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)
            except FileNotFoundError:
                return False
        if len(self._said.faults) < SHOWN:
            self._said.faults.append(fault)
        return True

    def _open(self) -> BinaryIO:
        with suppress(FileExistsError):
            os.mkdir(DAMAGED, 0o700, dir_fd=self._root.handle)
        damaged = os.open(DAMAGED, FOLDER, dir_fd=self._root.handle)
        try:
            os.mkdir(self._name, 0o700, dir_fd=damaged)
            self._folder = os.open(self._name, FOLDER, dir_fd=damaged)
        finally:
            os.close(damaged)
        self._said.record = str(self._root.path / DAMAGED / self._name / RECORD)
        return os.fdopen(os.open(RECORD, _NEW, 0o600, dir_fd=self._folder), "wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Make the record durable."""
        if self._record is not None:
            with suppress(OSError):
                os.fsync(self._record.fileno())
            self._record.close()
            os.close(self._folder)


@contextmanager
def _place(folder: int, path: str) -> Iterator[tuple[int, str]]:
    """Where a page goes that is set aside: below `pages`, at the path it had."""
    with folder_of(folder, f"pages/{path}", make=True) as place:
        yield place

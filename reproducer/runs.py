"""Folders of unfinished runs: an interrupted `penny reproduce` is taken up again, a running one is left alone.

A run has two folders of one name: `folder` in the store, and `pages` for its KV pages below the folder of all
namespaces, and so on their disk. A qualification's prompts are its own, so nobody could reuse its pages; and a runtime
whose rebuild differs must not write into the namespace that the lock names.
"""

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from reproducer.errors import NotCheckedError
from reproducer.store.layout import remove_tree

_PAGES = "qualification"
_PLACE = "pages"
_OVER = ".over"
_NAME = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Run:
    """The private folders of one run; `resumed` where an interrupted run left some results."""

    folder: Path
    pages: Path
    resumed: bool


@contextmanager
def run_folder(parent: Path, kv: Path, *, abandon: Callable[[Path], None] = lambda _: None) -> Iterator[Run]:
    """Hold one run's folders; they vanish when the run ends well and stay when it does not.

    A folder is owned by the process that holds the kernel's lock on it, which ends with the process however it ends.
    One interrupted run is taken up. What further ones left is removed, and so is one whose pages are gone or lie below
    another folder than `kv`: prompts that it wrote could not be restored.

    Args:
        parent: the folder of the runs of one lock.
        kv: the folder in which namespaces lie.
        abandon: called with a folder of pages before it is removed; ends what may still write there.

    Raises:
        NotCheckedError: the folder cannot be made.
    """
    kv = kv.absolute()
    try:
        parent.mkdir(parents=True, exist_ok=True)
        run, handle = _interrupted(parent, kv, abandon) or _fresh(parent, kv)
    except OSError as error:
        raise NotCheckedError("no folder for this run", where=str(parent), why=error.strerror or str(error)) from error
    try:
        yield run
        _remove(run.folder, abandon)
    finally:
        os.close(handle)


def _interrupted(parent: Path, kv: Path, abandon: Callable[[Path], None]) -> tuple[Run, int] | None:
    """A folder whose owner is gone, now ours; every other one is removed."""
    taken: tuple[Run, int] | None = None
    for folder in sorted(parent.iterdir()):
        handle = None
        with suppress(PermissionError):  # another user's
            handle = _claim(folder)
        if handle is None:
            continue
        try:
            run = Run(folder, kv / _PAGES / folder.name, resumed=any(each.name != _PLACE for each in folder.iterdir()))
            if taken is None and _pages_of(folder) == run.pages and (run.pages.is_dir() or not run.resumed):
                taken = run, handle
            else:
                _remove(folder, abandon)
        finally:
            if taken is None or taken[1] != handle:
                os.close(handle)
    return taken


def _fresh(parent: Path, kv: Path) -> tuple[Run, int]:
    """A new folder of ours, which says first of all where its pages will lie."""
    while True:
        folder = parent / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        handle = _claim(folder)
        if handle is not None:
            pages = kv / _PAGES / folder.name
            try:
                (folder / _PLACE).symlink_to(pages)
            except BaseException:
                os.close(handle)
                raise
            return Run(folder, pages, resumed=False), handle


def _pages_of(folder: Path) -> Path | None:
    """Where the pages of a run lie; None unless that is a folder of the run's own name where such pages lie."""
    try:
        pages = (folder / _PLACE).readlink()
    except OSError:
        return None
    name = folder.name.removesuffix(_OVER)
    own = _NAME.fullmatch(name) and pages.is_absolute() and pages.name == name and pages.parent.name == _PAGES
    return pages if own else None


def _remove(folder: Path, abandon: Callable[[Path], None]) -> None:
    """Remove a run; what cannot be removed has a name that is never taken up, and goes next time."""
    over = folder.with_name(folder.name.removesuffix(_OVER) + _OVER)
    with suppress(OSError):
        folder.rename(over)
        if (pages := _pages_of(over)) is not None and pages.is_dir() and not pages.is_symlink():
            abandon(pages)
            remove_tree(pages)
        shutil.rmtree(over)


def _claim(folder: Path) -> int | None:
    """The open handle that holds the kernel's lock on a folder; None where somebody else holds it or it is gone.

    Raises:
        OSError: it can neither be opened nor locked, by anybody.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_ino == folder.stat().st_ino:
            return handle
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None

"""The folders of a store, its format version, private work folders and the sweeping of what dead processes left.

format                  `penny-store/1`
blobs/ab/SHA256         files by digest, read-only
entries/KIND/KEY/       built folders: `content/` and `seal.json`
work/TOKEN, TOKEN.lock  private folder of one running piece of work; its owner holds a flock on the lock file
partial/SHA256          downloads that go on where they stopped, with `SHA256.json` about their server
locks/                  lock files, present only while held
git/ADDRESS/            bare repositories: the commits of one address that locks name, and an outline of others
damaged/                what failed a check, kept for inspection and never served
"""

import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from reproducer.documents.base import shown
from reproducer.errors import NotCheckedError, UnsafeInputError, UsageError
from reproducer.progress import Silent
from reproducer.store.exclusive import exclusive, release, sweep_locks, take
from reproducer.store.faults import disk_fault, writing

FORMAT_VERSION = 1
PIECES = ("blobs", "entries", "git", "work", "partial", "locks", "damaged")
_FORMAT = re.compile(r"penny-store/([1-9][0-9]{0,5})\n?")
_LONGEST_FORMAT = 64
_STALE_PARTIAL_SECONDS = 14 * 24 * 3600


def prepare(root: Path) -> None:
    """Make the layout where it is missing, check it where it is there, and sweep it.

    Raises:
        UsageError: the root is no folder.
        NotCheckedError: a newer format, no permission, a read-only file system, a full disk.
        UnsafeInputError: a piece of the store is a symbolic link.
    """
    try:
        with writing(root, what="the store"):
            root.mkdir(parents=True, exist_ok=True)
    except UsageError as error:
        raise UsageError(
            "the store is not a folder", where=error.where, todo="name a folder with --store or PENNY_STORE"
        ) from error
    _check_format(root)
    for piece in PIECES:
        _make_piece(root / piece)
    if os.access(root / "work", os.W_OK) and os.access(root / "locks", os.W_OK):
        sweep(root)


def _check_format(root: Path) -> None:
    path = root / "format"
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST_FORMAT).decode("ascii", "replace")
    except FileNotFoundError:
        _write_format(path)
        return
    except OSError as error:
        raise NotCheckedError("the store cannot be read", where=str(path), why=error.strerror or str(error)) from error
    match = _FORMAT.fullmatch(text)
    if match is None:
        raise NotCheckedError(
            "is not a store of penny", where=str(root), why=f"its format file says {shown(text)}", todo="name another"
        )
    if int(match[1]) > FORMAT_VERSION:
        raise NotCheckedError(
            "the store was written by a newer penny",
            where=str(root),
            why=f"format {match[1]}, this penny knows up to {FORMAT_VERSION}",
            todo="update penny, or name another folder with --store or PENNY_STORE",
        )


def _write_format(path: Path) -> None:
    temporary = path.with_name(f".format.{secrets.token_hex(8)}")
    with writing(path.parent, what="the store's format"):
        try:
            temporary.write_text(f"penny-store/{FORMAT_VERSION}\n", encoding="ascii")
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def _make_piece(path: Path) -> None:
    try:
        mode = path.stat(follow_symlinks=False).st_mode
    except FileNotFoundError:
        with writing(path.parent, what="the store"):
            path.mkdir(exist_ok=True)
        mode = path.stat(follow_symlinks=False).st_mode
    except OSError as error:
        raise disk_fault(error, path.parent, what="the store") from error
    if stat.S_ISLNK(mode):
        raise UnsafeInputError("a piece of the store is a symbolic link", where=str(path), todo="remove the link")
    if not stat.S_ISDIR(mode):
        raise UsageError("a piece of the store is not a folder", where=str(path), todo="remove it")


@contextmanager
def private_folder(root: Path) -> Iterator[Path]:
    """A fresh folder on the store's disk that is gone afterwards, or swept after a kill.

    Raises:
        NotCheckedError: it cannot be made.
    """
    folder = root / "work" / secrets.token_hex(8)
    # A sweep of another thread or process may hold the new lock file for a moment, so it is waited for.
    with exclusive(folder.with_name(f"{folder.name}.lock"), reporter=Silent(), what="a private folder"):
        try:
            with writing(folder.parent, what="a private folder"):
                folder.mkdir(mode=0o700)
            yield folder
        finally:
            with suppress(OSError):
                remove_tree(folder)


def remove_tree(folder: Path) -> None:
    """Remove a folder with everything in it, read-only folders too; a missing one is fine."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except PermissionError:
        for parent, _, _ in os.walk(folder):
            Path(parent).chmod(0o700)
        shutil.rmtree(folder)


def sweep(root: Path) -> None:
    """Remove what dead processes left: work folders, lock files, downloads that nobody goes on with.

    A work folder's owner is alive exactly while its lock file is held; process ids are not asked.
    """
    work = root / "work"
    for lock in sorted(work.glob("*.lock")):
        handle = take(lock, create=False)
        if handle is not None:
            with suppress(OSError):
                remove_tree(lock.with_suffix(""))
            release(lock, handle)
    for folder in sorted(work.iterdir()):
        if folder.suffix != ".lock" and not folder.with_name(f"{folder.name}.lock").exists():
            with suppress(OSError):
                remove_tree(folder)
    sweep_locks(root / "locks")
    _sweep_partial(root)


def _sweep_partial(root: Path) -> None:
    now = time.time()
    for path in sorted((root / "partial").iterdir()):
        digest = path.name.partition(".")[0]
        lock = root / "locks" / f"fetch-{digest}.lock"
        if not (root / "blobs" / digest[:2] / digest).exists():
            with suppress(FileNotFoundError):
                if now - path.stat(follow_symlinks=False).st_mtime < _STALE_PARTIAL_SECONDS:
                    continue
        handle = take(lock)
        if handle is not None:
            with suppress(OSError):
                path.unlink()
            release(lock, handle)

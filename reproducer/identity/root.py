"""The folder of a namespace on disk: made whole or not at all, and compared whole before anything in it is used.

Layout: `factors.json` (the factor document), `neutral.json` (notes for people, never compared) and `pages/`, which is
what the engine is given. Whatever does not fit is refused; nothing is ever deleted or repaired. The factor document's
file time says when the namespace was last opened.
"""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from reproducer.documents.base import parse_json, shown
from reproducer.errors import ConfigurationError, NotCheckedError, PennyError, UnsafeInputError
from reproducer.progress import Silent
from reproducer.store.exclusive import exclusive
from reproducer.store.faults import disk_fault

DOCUMENT = "factors.json"
NOTES = "neutral.json"
PAGES = "pages"
_LARGEST = 8 << 20
_SHOWN = 3
_LEAVE = "nothing was changed: look at the folder, move it away, or name another place with --kv"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class NamespaceLike(Protocol):
    """What a root needs of a namespace."""

    @property
    def name(self) -> str:
        """The name of the folder."""

    def document(self) -> bytes:
        """The factor document."""

    def notes(self) -> bytes:
        """The notes beside it."""


def open_root(parent: Path, namespace: NamespaceLike) -> Path:
    """The root folder of a namespace, made if it is not there; any number of processes may do this at once.

    Args:
        parent: the folder in which namespaces lie.
        namespace: whose root it is.

    Raises:
        ConfigurationError: the factor document is missing, unreadable, cut short or another one.
        UnsafeInputError: the root, the document or the folder of pages is a link, is no folder or file, or belongs to
            another user.
        NotCheckedError: the disk is full or the parent folder cannot be written.
    """
    root = parent / namespace.name
    if not os.path.lexists(root) or os.path.lexists(
        _lock(parent, namespace)
    ):  # a killed process may have left its lock
        _make(parent, root, namespace)
    _check(root, namespace)
    return root


def pages_of(root: Path) -> Path:
    """The folder below a namespace's root that the engine keeps its pages in."""
    return root / PAGES


def _make(parent: Path, root: Path, namespace: NamespaceLike) -> None:
    """Prepare the folder beside its place and rename it there; a process that was killed leaves only that."""
    fresh = parent / f".{namespace.name}.new"
    waiting = exclusive(_lock(parent, namespace), reporter=Silent(), what=f"namespace {namespace.name}")
    with waiting:
        if os.path.lexists(root):
            return
        try:
            _clear(fresh)
            fresh.mkdir(mode=0o700)
            fresh.chmod(0o700)
            _write(fresh / NOTES, namespace.notes())
            _write(fresh / DOCUMENT, namespace.document())
            (fresh / PAGES).mkdir()
            (fresh / PAGES).chmod(0o700)
            _sync(fresh)
            fresh.rename(root)
            _sync(parent)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR) and os.path.lexists(root):
                return
            with suppress(OSError):
                _clear(fresh)
            raise disk_fault(error, parent, what=f"namespace {namespace.name}") from error


def _lock(parent: Path, namespace: NamespaceLike) -> Path:
    """What the process that makes the root holds."""
    return parent / f".{namespace.name}.new.lock"


def _clear(fresh: Path) -> None:
    """Remove what a killed process prepared, and only that: pages are never below it."""
    if fresh.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(fresh))
    if fresh.exists():
        for name in (NOTES, DOCUMENT):
            (fresh / name).unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            (fresh / PAGES).rmdir()
        fresh.rmdir()


def _write(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(handle, 0o600)
        file.write(data)
        file.flush()
        os.fsync(handle)


def _sync(folder: Path) -> None:
    handle = os.open(folder, _FOLDER & ~os.O_NOFOLLOW)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _check(root: Path, namespace: NamespaceLike) -> None:
    """Refuse a root that is not this namespace's; its parts are reached through the one folder that was opened."""
    folder = _opened(root, root, _FOLDER)
    try:
        document = _opened(
            root / DOCUMENT, DOCUMENT, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, folder
        )
        try:
            _compare(root, document, namespace)
            _check_pages(root, folder)
            with suppress(OSError):  # a namespace on a read-only disk may be looked at
                os.utime(document)
        finally:
            os.close(document)
    finally:
        os.close(folder)


def _opened(path: Path, name: Path | str, flags: int, folder: int | None = None) -> int:
    """A handle on something that is no link and ours."""
    try:
        handle = os.open(name, flags, dir_fd=folder)
    except OSError as error:
        raise _refusal(path, error) from error
    facts = os.fstat(handle)
    wanted = stat.S_ISDIR if flags & os.O_DIRECTORY else stat.S_ISREG
    fault = None
    if not wanted(facts.st_mode):
        fault = "is not of the right kind"
    elif facts.st_uid != os.geteuid():
        fault = f"belongs to another user (id {facts.st_uid})"
    if fault is not None:
        os.close(handle)
        raise UnsafeInputError(f"{fault}, so the namespace is not opened", where=str(path), todo=_LEAVE)
    return handle


def _refusal(path: Path, error: OSError) -> PennyError:
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
        return UnsafeInputError(
            "is a link or not of the right kind, so the namespace is not opened", where=str(path), todo=_LEAVE
        )
    if error.errno == errno.ENOENT:
        return ConfigurationError("is missing, so nothing says whose pages these are", where=str(path), todo=_LEAVE)
    if error.errno in (errno.EMFILE, errno.ENFILE, errno.EIO):
        return NotCheckedError("cannot be read", where=str(path), why=error.strerror or str(error))
    return ConfigurationError("cannot be read", where=str(path), why=error.strerror or str(error), todo=_LEAVE)


def _compare(root: Path, handle: int, namespace: NamespaceLike) -> None:
    expected = namespace.document()
    try:
        got = _read(handle, max(len(expected), _LARGEST) + 1)
    except OSError as error:
        raise _refusal(root / DOCUMENT, error) from error
    if got != expected:
        raise ConfigurationError(
            f"is not the factor document of namespace {namespace.name}",
            where=str(root / DOCUMENT),
            why=_difference(expected, got),
            todo=_LEAVE,
        )


def _read(handle: int, limit: int) -> bytes:
    parts = []
    while limit > 0 and (part := os.read(handle, min(limit, 1 << 20))):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


def _difference(expected: bytes, got: bytes) -> str:
    """What differs between two factor documents, in a clause."""
    if not got or expected.startswith(got):
        return f"it is cut short: {len(got)} of {len(expected)} bytes"
    try:
        there, ours = parse_json(got, where=DOCUMENT, limit=_LARGEST), parse_json(expected, where=DOCUMENT)
    except PennyError as error:
        return f"it cannot be read: {error.what}"
    if not isinstance(there, dict) or not isinstance(there.get("factors"), dict):
        return "it is no factor document"
    if there.get("format") != ours["format"]:
        return f"its format is {shown(there.get('format'))}"
    before, after = there["factors"], ours["factors"]
    differing = sorted(name for name in {*before, *after} if repr(before.get(name)) != repr(after.get(name)))
    if not differing:
        return "the same factors, written differently"
    told = [f"{name}: there {_told(before.get(name))}, here {_told(after.get(name))}" for name in differing[:_SHOWN]]
    more = len(differing) - _SHOWN
    return "; ".join(told) + (f"; and {more} more" if more > 0 else "")


def _told(factor: Any) -> str:
    if factor is None:
        return "absent"
    return shown(factor.get("value") if isinstance(factor, dict) else factor)


def _check_pages(root: Path, folder: int) -> None:
    """The folder of pages is there, no link, ours; an absent one holds no page and is made."""
    try:
        with suppress(FileExistsError):
            os.mkdir(PAGES, 0o700, dir_fd=folder)
    except OSError as error:
        raise disk_fault(error, root, what="the folder of pages") from error
    os.close(_opened(root / PAGES, PAGES, _FOLDER, folder))

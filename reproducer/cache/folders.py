"""Folders reached through open handles, so that a link put in their place leads nowhere."""

import errno
import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from reproducer.cache.model import Other, Usage
from reproducer.errors import InvalidDocumentError, NotCheckedError, UnsafeInputError, UsageError
from reproducer.identity.encoding import DOMAIN
from reproducer.identity.root import DOCUMENT, PAGES

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
GONE = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{16}\.gone")
_LARGEST = 8 << 20
_DEEPEST = 16
_HEX = re.compile(r"[0-9a-f]{64}")
_KEY = re.compile(r"([0-9a-f]{32,})(?=[._]|$)")
_HALF = re.compile(r"_[kv]$")
_BLOCK = 512


@dataclass(frozen=True)
class Root:
    """A namespace's root, open; it is one as far as its factor document says so and it is ours."""

    name: str
    digest: str
    path: Path
    handle: int
    last_use: float


@dataclass(frozen=True)
class Found:
    """A file met on a walk: its path below the walk's start, its name in the folder that is open, and what it is."""

    path: str
    folder: int
    name: str
    status: os.stat_result


@contextmanager
def open_kv(kv: Path) -> Iterator[int]:
    """The folder in which namespaces lie, open.

    Raises:
        UsageError: there is no such folder.
    """
    try:
        handle = os.open(kv, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(
            "is no folder of namespaces that can be read",
            where=str(kv),
            why=error.strerror or str(error),
            todo="name it with --kv; the first `penny launch` makes the one in the store",
        ) from error
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def open_namespace(kv: Path, handle: int, name: str) -> Iterator[Root]:
    """A namespace's root below an open folder.

    Raises:
        UsageError: there is nothing of that name.
        UnsafeInputError: it is no namespace's root: a link, another user's, without a factor document of its name.
    """
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise UsageError("is no name of a namespace", where=repr(name))
    if (refusal := refused(handle, name)) is not None:
        if refusal == _ABSENT:
            raise UsageError("there is no such namespace", where=str(kv / name), todo="`penny cache list` names them")
        raise UnsafeInputError(f"is no namespace: {refusal}", where=str(kv / name), todo="nothing was changed")
    root = os.open(name, FOLDER, dir_fd=handle)
    try:
        document, status = _document(root)
        if document is None or not _names(document, name):
            raise UnsafeInputError("is no namespace any more", where=str(kv / name), todo="nothing was changed")
        yield Root(name, document["digest"], kv / name, root, status.st_mtime)
    finally:
        os.close(root)


_ABSENT = "there is nothing"


def refused(kv: int, name: str) -> str | None:
    """Why an entry is no namespace's root, in a clause; None where it is one."""
    try:
        handle = os.open(name, FOLDER, dir_fd=kv)
    except OSError as error:
        return _not_opened(error, kv, name)
    try:
        if (owner := os.fstat(handle).st_uid) != os.geteuid():
            return f"it belongs to another user (id {owner})"
        document, _ = _document(handle)
        if document is None:
            return "no factor document of ours lies in it"
        return None if _names(document, name) else "its factor document is not one of that name"
    except OSError as error:
        return f"its factor document cannot be read: {error.strerror}"
    finally:
        os.close(handle)


def _not_opened(error: OSError, kv: int, name: str) -> str:
    if error.errno == errno.ENOENT:
        return _ABSENT
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        with suppress(OSError):
            if stat.S_ISLNK(os.stat(name, dir_fd=kv, follow_symlinks=False).st_mode):
                return "a link"
        return "no folder"
    return f"it cannot be opened: {error.strerror}"


def _document(root: int) -> tuple[dict[str, str] | None, os.stat_result]:
    """The factor document in an open root and its status; None where it is no JSON object, a link or not ours."""
    try:
        handle = os.open(DOCUMENT, FILE, dir_fd=root)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):
            return None, os.fstat(root)
        raise
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return None, status
        data = file.read(_LARGEST + 1)
    try:
        document = json.loads(data) if len(data) <= _LARGEST else None
    except (ValueError, RecursionError):
        document = None
    return (document if isinstance(document, dict) else None), status


def is_root(handle: int, name: str) -> bool:
    """Whether an open folder holds the factor document of the namespace of that name."""
    try:
        document, _ = _document(handle)
    except OSError:
        return False
    return document is not None and _names(document, name)


def is_half_removed(kv: int, name: str) -> bool:
    """Whether a folder is what an interrupted collection left: its factor document is there, or nothing at all is."""
    if (match := GONE.fullmatch(name)) is None:
        return False
    try:
        handle = os.open(name, FOLDER, dir_fd=kv)
    except OSError:
        return False
    try:
        if os.fstat(handle).st_uid != os.geteuid():
            return False
        with os.scandir(handle) as found:
            names = {each.name for each, _ in zip(found, range(64), strict=False)}
        return not names or is_root(handle, match["name"])
    finally:
        os.close(handle)


def _names(document: dict[str, str], name: str) -> bool:
    """Whether a factor document is the one of a folder of that name."""
    digest = document.get("digest")
    return (
        document.get("format") == DOMAIN
        and document.get("namespace") == name
        and isinstance(digest, str)
        and _HEX.fullmatch(digest) is not None
        and name.endswith(f"-{digest[:12]}")
        and isinstance(document.get("factors"), dict)
    )


def entries(kv: int) -> Iterator[str]:
    """The names below the folder of namespaces, one by one."""
    with os.scandir(kv) as found:
        for each in found:
            yield each.name


def other(kv: int, name: str, why: str) -> Other:
    """An entry that is no namespace, with what it is where penny knows it."""
    if is_half_removed(kv, name):
        return Other(name, "a namespace that is half removed; `penny cache gc --apply` finishes it")
    if name == "qualification":
        return Other(name, "pages of `penny reproduce` and `penny qualify`, which remove them themselves")
    if name.startswith(".") and name.endswith((".server", ".new", ".new.lock")):
        return Other(name, "what a launch holds")
    return Other(name, why)


def open_pages(root: int) -> int | None:
    """The folder of pages in an open root; None where there is none.

    Raises:
        UnsafeInputError: it is a link, no folder or another user's.
    """
    try:
        handle = os.open(PAGES, FOLDER, dir_fd=root)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnsafeInputError("the folder of pages is a link or no folder", where=PAGES) from error
    if os.fstat(handle).st_uid != os.geteuid():
        os.close(handle)
        raise UnsafeInputError("the folder of pages belongs to another user", where=PAGES)
    return handle


def walk(folder: int, prefix: str = "", depth: int = 0) -> Iterator[Found]:
    """Everything below an open folder that is no folder, in flat memory; links are met and never followed."""
    if depth > _DEEPEST:
        raise UnsafeInputError(f"folders lie more than {_DEEPEST} deep", where=repr(prefix[:80]))
    inner: list[str] = []
    with os.scandir(folder) as found:
        for each in found:
            if each.is_dir(follow_symlinks=False):
                inner.append(each.name)
                continue
            with suppress(FileNotFoundError):
                yield Found(prefix + each.name, folder, each.name, each.stat(follow_symlinks=False))
    for name in inner:
        with suppress(FileNotFoundError, NotADirectoryError):
            handle = os.open(name, FOLDER, dir_fd=folder)
            try:
                yield from walk(handle, f"{prefix}{name}/", depth + 1)
            finally:
                os.close(handle)


def measure(folder: int, depth: int = 0, advance: Callable[[int], None] = lambda _: None) -> Usage:
    """What everything below an open folder takes, in flat memory."""
    if depth > _DEEPEST:
        return Usage(strange=1)
    files = size = blocks = strange = 0
    inner: list[str] = []
    with os.scandir(folder) as found:
        for each in found:
            try:
                if each.is_file(follow_symlinks=False):
                    status = each.stat(follow_symlinks=False)
                    files += 1
                    size += status.st_size
                    blocks += status.st_blocks
                elif each.is_dir(follow_symlinks=False):
                    inner.append(each.name)
                else:
                    strange += 1
            except FileNotFoundError:
                continue
    advance(files)
    total = Usage(files, size, blocks * _BLOCK, strange)
    for name in inner:
        try:
            handle = os.open(name, FOLDER, dir_fd=folder)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise NotCheckedError("cannot be read", where=repr(name), why=error.strerror or str(error)) from error
            continue
        try:
            total += measure(handle, depth + 1, advance)
        finally:
            os.close(handle)
    return total


def page_key(path: str) -> str:
    """What files of one page have in common: SGLang's key of the page, the hex digits that their names begin with.

    The engine keeps keys and values, ranks and states of one page in files of their own, in one folder or spread over
    several. Names without such digits share what stands before a last `_k` or `_v`.
    """
    name = path.rpartition("/")[2]
    return key_of(name) or _HALF.sub("", name)


def key_of(name: str) -> str:
    """The hex digits of a page's key that a file's name begins with; empty where it does not."""
    match = _KEY.match(name)
    return match[1] if match else ""


def plain(path: str) -> bool:
    """Whether text is a path that stays below the folder it is relative to, written in the one way."""
    parts = path.split("/")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:  # half of a surrogate pair that stands for no byte: no file has such a name
        return False
    return "\0" not in path and len(parts) <= _DEEPEST and all(part not in ("", ".", "..") for part in parts)


@contextmanager
def folder_of(start: int, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """The open folder that a path below `start` lies in and the last part of it.

    Raises:
        OSError: a folder on the way is missing, a link or no folder.
        InvalidDocumentError: the path leads out.
    """
    if not plain(path):
        raise InvalidDocumentError("leads out of its folder", where=repr(path[:80]))
    *folders, name = path.split("/")
    handles: list[int] = []
    current = start
    try:
        for each in folders:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(each, 0o700, dir_fd=current)
            current = os.open(each, FOLDER, dir_fd=current)
            handles.append(current)
        yield current, name
    finally:
        for handle in handles:
            os.close(handle)

"""Removing: a namespace loses its name first, so that what is half removed never looks whole.

Everything goes through open handles and nothing through a link. The factor document goes last: what was interrupted
still says that it was a namespace of ours, and the next collection finishes it.
"""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress

from reproducer.cache.folders import FOLDER, Root, entries, is_half_removed
from reproducer.identity.root import DOCUMENT, PAGES

_DEEPEST = 64


def remove_namespace(kv: int, root: Root) -> None:
    """Remove the whole root of a namespace, whose turn and lock the caller holds.

    Raises:
        OSError: something of it cannot be removed; it has no name of a namespace then.
    """
    there = os.stat(root.name, dir_fd=kv, follow_symlinks=False)
    if not os.path.samestat(there, os.fstat(root.handle)):
        raise OSError(errno.ESTALE, "another folder lies there now", root.name)
    gone = f".{root.name}.{secrets.token_hex(8)}.gone"
    os.rename(root.name, gone, src_dir_fd=kv, dst_dir_fd=kv)
    os.fsync(kv)
    _empty(root.handle)
    with suppress(FileNotFoundError):  # another collection finished it
        os.rmdir(gone, dir_fd=kv)


def half_removed(kv: int) -> Iterator[str]:
    """The names of what interrupted collections left."""
    for name in sorted(entries(kv)):
        if is_half_removed(kv, name):
            yield name


def finish_removing(kv: int, name: str) -> None:
    """Finish what an interrupted collection began.

    Raises:
        OSError: something of it cannot be removed.
    """
    handle = os.open(name, FOLDER, dir_fd=kv)
    try:
        _empty(handle)
    finally:
        os.close(handle)
    os.rmdir(name, dir_fd=kv)


def _empty(root: int) -> None:
    """Remove all in an open root; the pages first, the factor document last."""
    device = os.fstat(root).st_dev
    for name in (PAGES, *sorted(name for name in os.listdir(root) if name not in (PAGES, DOCUMENT)), DOCUMENT):
        with suppress(FileNotFoundError):
            _remove(root, name, device, 0)


def _remove(folder: int, name: str, device: int, depth: int) -> None:
    """Remove one entry; a folder with all in it, if it lies on the same device."""
    try:
        os.unlink(name, dir_fd=folder)
    except (IsADirectoryError, PermissionError):
        pass  # unlink of a folder says one or the other
    else:
        return
    if depth > _DEEPEST:
        raise OSError(errno.ELOOP, "folders lie too deep", name)
    handle = os.open(name, FOLDER, dir_fd=folder)
    try:
        if os.fstat(handle).st_dev != device:
            raise OSError(errno.EXDEV, "another disk is mounted there", name)
        while names := _some(handle):
            for each in names:
                with suppress(FileNotFoundError):
                    _remove(handle, each, device, depth + 1)
    finally:
        os.close(handle)
    os.rmdir(name, dir_fd=folder)


def _some(handle: int) -> list[str]:
    """Some of the names in a folder; a million of them are never held at once."""
    with os.scandir(handle) as found:
        return [each.name for each, _ in zip(found, range(4096), strict=False)]

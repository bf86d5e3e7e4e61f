"""Evicting: the oldest pages of a namespace, whole pages only, until enough is free."""

import hashlib
import os
import stat
from array import array
from contextlib import suppress

from reproducer.cache.folders import Found, open_pages, page_key, walk

_BLOCK = 512
_BITS = 30
_MOST = (1 << _BITS) - 1
_LATEST = (1 << 64 - _BITS) - 1  # some file systems keep times that lie later than the year 2514


def evict(root: int, need: int, *, apply: bool) -> tuple[int, int]:
    """Remove pages until `need` bytes on disk are free, those first that were neither read nor written for longest.

    The caller holds the namespace. All files of a page go together: a half would look like the whole to the engine.

    Args:
        root: the open root.
        need: bytes on disk that are to go.
        apply: remove them; otherwise they are only counted.

    Returns:
        Files and bytes on disk that went, or would go.

    Raises:
        OSError: a page cannot be removed.
    """
    pages = open_pages(root)
    if pages is None or need <= 0:
        if pages is not None:
            os.close(pages)
        return 0, 0
    try:
        oldest = _cutoff(pages, need)
        old: dict[bytes, int] = {}
        for found in walk(pages):
            if stat.S_ISREG(found.status.st_mode) and _time(found) <= oldest:
                key = _short(found.path)
                old[key] = old.get(key, 0) + found.status.st_blocks * _BLOCK
        keys = _enough(old, need)
        files = size = 0
        for found in walk(pages):
            if stat.S_ISREG(found.status.st_mode) and _short(found.path) in keys:
                files += 1
                size += found.status.st_blocks * _BLOCK
                if apply:
                    with suppress(FileNotFoundError):
                        os.unlink(found.name, dir_fd=found.folder)
        return files, size
    finally:
        os.close(pages)


def _enough(old: dict[bytes, int], need: int) -> set[bytes]:
    """As many of the old pages as free what is needed."""
    keys: set[bytes] = set()
    for key, size in old.items():
        if need <= 0:
            break
        keys.add(key)
        need -= size
    return keys


def _cutoff(pages: int, need: int) -> int:
    """The second up to which pages have to go; eight bytes of memory a file."""
    packed = array("Q")
    for found in walk(pages):
        if stat.S_ISREG(found.status.st_mode):
            packed.append(_time(found) << _BITS | min(found.status.st_blocks, _MOST))
    freed, oldest = 0, 0
    for each in sorted(packed):
        oldest = each >> _BITS
        freed += (each & _MOST) * _BLOCK
        if freed >= need:
            break
    return oldest


def _time(found: Found) -> int:
    """When a page was last read or written, in whole seconds."""
    return min(max(0, int(max(found.status.st_atime, found.status.st_mtime))), _LATEST)


def _short(path: str) -> bytes:
    key = page_key(path).encode("utf-8", "surrogateescape")
    return hashlib.blake2b(key, digest_size=8).digest()

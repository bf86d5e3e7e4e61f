"""Making sure that what was written survives a loss of power."""

import ctypes
import os
from pathlib import Path


def sync_file(path: Path) -> None:
    """Wait until a file's bytes are on the disk; raises OSError."""
    _sync(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk; raises OSError."""
    _sync(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)


def sync_tree(folder: Path) -> None:
    """Wait until everything on the folder's file system is on the disk: one call instead of one for every file."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syncfs(handle) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(handle)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

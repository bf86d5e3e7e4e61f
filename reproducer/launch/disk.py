"""Whether the disk under a namespace does what the lock asks of it, found out before the server does."""

import errno
import mmap
import os
import tempfile
from pathlib import Path

from reproducer.errors import NotCheckedError
from reproducer.host import filesystem

_BLOCK = 4096
_URING_SWITCH = Path("/proc/sys/kernel/io_uring_disabled")
_URING_OFF = "2"


def check_direct_io(folder: Path) -> None:
    """Write and read one block of a scratch file with O_DIRECT.

    Raises:
        NotCheckedError: the filesystem refuses it, is full, or the folder cannot be written.
    """
    handle, name = -1, ""
    try:
        handle, name = tempfile.mkstemp(dir=folder, prefix=".direct-")
        os.close(handle)
        handle = -1
        handle = os.open(name, os.O_RDWR | os.O_DIRECT)
        with mmap.mmap(-1, _BLOCK) as block:
            block.write(b"\xa5" * _BLOCK)
            os.pwrite(handle, block, 0)
            os.preadv(handle, [block], 0)
    except OSError as error:
        kind = filesystem(folder)
        if error.errno in (errno.EINVAL, errno.EOPNOTSUPP):
            raise NotCheckedError(
                "the namespace lies on a filesystem without O_DIRECT, which the lock asks for",
                where=str(folder),
                why=f"the filesystem is {kind}",
                todo="name a folder on ext4, xfs or btrfs with --kv",
            ) from error
        raise NotCheckedError(
            "the namespace cannot be written", where=str(folder), why=f"{error.strerror}; the filesystem is {kind}"
        ) from error
    finally:
        if name:
            Path(name).unlink(missing_ok=True)
        if handle >= 0:
            os.close(handle)


def check_io_uring() -> None:
    """Whether the kernel lets a process use io_uring.

    Raises:
        NotCheckedError: it is switched off for everybody.
    """
    try:
        switch = _URING_SWITCH.read_text(encoding="ascii").strip()
    except OSError:
        return
    if switch == _URING_OFF:
        raise NotCheckedError(
            "io_uring is switched off on this machine, and the lock asks for it",
            where=str(_URING_SWITCH),
            todo="set kernel.io_uring_disabled=0 with sysctl",
        )

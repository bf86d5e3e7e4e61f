"""Small files written whole below an open folder."""

import os
import secrets
from contextlib import suppress

PARTIAL = ".partial"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_in(folder: int, name: str, data: bytes) -> None:
    """Write a file below an open folder so that a reader sees the old bytes or the new.

    Raises:
        OSError: as the operating system says it; nothing is left then.
    """
    temporary = f".{secrets.token_hex(8)}{PARTIAL}"
    try:
        handle = os.open(temporary, _NEW, 0o600, dir_fd=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def sweep_partial(folder: int) -> None:
    """Remove what killed writers left; call it only where nobody else writes."""
    with os.scandir(folder) as found:
        names = [each.name for each in found if each.name.startswith(".") and each.name.endswith(PARTIAL)]
    for name in names:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)

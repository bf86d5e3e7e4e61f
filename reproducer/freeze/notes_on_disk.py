"""Small files that other programs left: an installer's notes, a hub client's, what a virtual environment is made of."""

import os
import stat
from pathlib import Path


def small_file(path: Path, limit: int) -> bytes | None:
    """The bytes of a plain file of bounded size; None where there is none: no link is followed, no pipe waited at."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return None
            data = file.read(limit + 1)
    except OSError:
        return None
    return data if len(data) <= limit else None

"""A log that a person names may be anything: only a plain file is read, and of a long one only its beginning."""

import os
import pty
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from reproducer.launch.startup_log import first_text, read_head


def _pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def _device(_path: Path) -> Path:
    _, slave = pty.openpty()
    return Path(os.ttyname(slave))


@pytest.mark.parametrize("read", [first_text, read_head])
@pytest.mark.parametrize(
    ("make", "why"), [(_pipe, "no plain file"), (_folder, "directory"), (_device, "no plain file")]
)
def test_no_plain_file(read: Callable[[Path], object], make: Callable[[Path], Path], why: str, tmp_path: Path) -> None:
    """A pipe that nobody writes to, a folder and a device are refused at once."""
    with pytest.raises(OSError, match=why):
        read(make(tmp_path / "log"))


def test_long_and_binary(tmp_path: Path) -> None:
    """Of a log of a gigabyte of zeros and of bytes that are no text, eight megabytes are kept, and no more is held."""
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.write(b"first \xff\xfe line\n")
        file.truncate(1 << 30)
    tracemalloc.start()
    text = first_text(log)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert text.startswith("first \ufffd\ufffd line\n\0")
    assert len(text) == 8 << 20
    assert most < 64 << 20

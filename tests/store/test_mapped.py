"""Large files hashed where they lie: the same digests, and nobody pulls the pages from under the reader."""

import fcntl
import hashlib
import mmap
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reproducer.errors import NotCheckedError
from reproducer.store import hashing
from reproducer.store.hashing import hash_file, hash_tree
from reproducer.store.mapped import PIECE, update_mapped

LARGE = 4 << 20
SHORTEN = "import os, sys; os.truncate(sys.argv[1], 100)"  # waits for a lease, as the program `truncate` does not


def leases(folder: Path) -> bool:
    """Whether the file system grants leases and the kernel promises pages."""
    path = folder / "probe"
    path.write_bytes(b"x" * PIECE)
    handle = os.open(path, os.O_RDONLY)
    try:
        with mmap.mmap(handle, PIECE, prot=mmap.PROT_READ) as piece:
            fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            piece.madvise(22)  # MADV_POPULATE_READ
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(handle)
        path.unlink()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of some pieces."""
    if not leases(tmp_path):
        pytest.skip("no leases here")
    path = tmp_path / "weights"
    path.write_bytes(os.urandom(4 * PIECE + 5))
    return path


@pytest.mark.parametrize("size", [LARGE - 1, LARGE, LARGE + 1, LARGE + PIECE, LARGE + PIECE + 4097])
def test_sizes_around_the_pieces(tmp_path: Path, size: int) -> None:
    """Mapped or read, the digest is that of all bytes, and progress counts each once."""
    data = os.urandom(size)
    (tmp_path / "file").write_bytes(data)
    seen: list[int] = []
    assert hash_file(tmp_path / "file", progress=seen.append) == (hashlib.sha256(data).hexdigest(), size)
    assert sum(seen) == size


def test_large_files_are_mapped(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a large file that nobody writes to is copied."""
    monkeypatch.setattr(hashing, "CHUNK", 4096)  # a piece that is read would be this small
    seen: list[int] = []
    hash_file(file, progress=seen.append)
    assert seen == [PIECE, PIECE, PIECE, PIECE, 5]


def test_a_writer_is_there(file: Path) -> None:
    """A file that somebody has open for writing may become shorter at any time: it is read."""
    with file.open("r+b"):
        handle = os.open(file, os.O_RDONLY)
        try:
            assert update_mapped(hashlib.sha256(), handle, file.stat().st_size, None) == 0
        finally:
            os.close(handle)
        assert hash_file(file)[0] == hashlib.sha256(file.read_bytes()).hexdigest()


def test_somebody_makes_it_shorter(file: Path) -> None:
    """Whoever wants to write waits for one piece and goes on; the tree is told to have changed, and nothing crashes."""
    writers: list[subprocess.Popen[bytes]] = []

    def progress(_: int) -> None:
        if not writers:
            writers.append(subprocess.Popen([sys.executable, "-c", SHORTEN, str(file)]))
            wait_for_breaking(file)

    with pytest.MonkeyPatch.context() as patch:
        plain = hashing._hash_handle
        patch.setattr(hashing, "_hash_handle", lambda handle, size, _: plain(handle, size, progress))
        with pytest.raises(NotCheckedError, match=r"changed while it was read"):
            hash_tree(file.parent)
    assert writers[0].wait(timeout=10) == 0
    assert file.stat().st_size == 100


def wait_for_breaking(file: Path) -> None:
    """Until the kernel says that somebody wants the file of this lease."""
    inode = f":{file.stat().st_ino} "
    until = time.monotonic() + 10
    while time.monotonic() < until:
        locks = Path("/proc/locks").read_text("ascii").splitlines()
        if any("LEASE" in line and "BREAKING" in line and inode in line for line in locks):
            return
        time.sleep(0.005)
    pytest.fail("nobody asked for the file")


def test_shorter_than_it_was(file: Path) -> None:
    """What lies beyond the end is never touched: the bytes that are there are taken and no others."""
    digest, handle = hashlib.sha256(), os.open(file, os.O_RDONLY)
    try:
        taken = update_mapped(digest, handle, 100 * PIECE, None)
    finally:
        os.close(handle)
    assert taken == 4 * PIECE
    assert digest.hexdigest() == hashlib.sha256(file.read_bytes()[:taken]).hexdigest()

"""Evicting pages by their times, whatever those are."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from reproducer.cache.evict import evict
from tests.cache.conftest import PAGE, key

MEMORY = Path("/dev/shm")  # noqa: S108  the file system that keeps any time


@pytest.fixture
def root() -> Iterator[Path]:
    """A root on a file system that keeps times beyond the year 2514."""
    if not MEMORY.is_dir():
        pytest.skip("there is no /dev/shm, and the disk may not keep such times")
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        (Path(folder) / "pages").mkdir()
        yield Path(folder)


def test_times_that_nobody_can_live_to_see(root: Path) -> None:
    """Pages from before 1970 are the oldest and those of a far future the youngest: neither stops a collection."""
    for number, seconds in enumerate((-(2**40), 1000, 2**40)):
        page = root / "pages" / f"{key(number)}_k"
        page.write_bytes(b"x" * PAGE)
        os.utime(page, (seconds, seconds))
    if page.stat().st_mtime != 2**40:
        pytest.skip("the file system does not keep such times")
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert evict(handle, 1, apply=True)[0] == 1
        assert {each.name for each in (root / "pages").iterdir()} == {f"{key(1)}_k", f"{key(2)}_k"}
        assert evict(handle, PAGE * 2, apply=True)[0] == 2
    finally:
        os.close(handle)

"""Disks without room, for real: a limit on file sizes and a file system of one mebibyte."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

WRITE = """
import hashlib, os, resource, sys
from pathlib import Path
from reproducer.errors import PennyError
from reproducer.progress import Silent
from reproducer.store import Store
root, limit, source = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
data = source.read_bytes()
store = Store(root)
for attempt in ("file", "bytes", "entry"):
    try:
        if attempt == "file":
            store.add_file(source, sha256=hashlib.sha256(data).hexdigest(), size=len(data), what="torch.whl")
        elif attempt == "bytes":
            store.add_bytes(data)
        else:
            with store.entry("tree", "key", reporter=Silent()) as entry:
                for number in range(3000):
                    (entry.work / f"file-{number}-{'x' * 60}").write_bytes(b"")
                entry.commit()
    except (PennyError, OSError) as error:
        print(attempt, getattr(error, "exit_code", "OSError"), error)
print("left", sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()))
"""


def source_of(tmp_path: Path) -> Path:
    """A file of two mebibytes."""
    path = tmp_path / "source"
    path.write_bytes(b"0123456789abcdef" * (1 << 17))
    return path


def test_a_limit_on_file_sizes(tmp_path: Path, start: Callable[..., "subprocess.Popen[str]"]) -> None:
    """Folder, bytes needed and what to do stand in the error; nothing half-written stays."""
    process = start(WRITE, tmp_path / "store", 100_000, source_of(tmp_path))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    file, data, entry, left = out.splitlines()
    for line, what in ((file, "torch.whl needs 2097152 bytes"), (data, "a file of the store needs 2097152 bytes")):
        assert line.split()[1] == "96"
        assert "a file reached the size limit" in line
        assert what in line
        assert str(tmp_path / "store") in line
    assert entry.startswith("entry 96 ")
    assert left == "left ['format']"


def test_a_full_file_system(tmp_path: Path) -> None:
    """The same on a real file system without room; it names the bytes that are free."""
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("no unshare to mount a small file system with")
    disk = tmp_path / "disk"
    disk.mkdir()
    inside = [unshare, "--user", "--map-root-user", "--mount", "sh", "-c"]
    mount = 'mount -t tmpfs -o size=1m tmpfs "$1"'
    if subprocess.run([*inside, mount, "sh", str(disk)], check=False, capture_output=True).returncode != 0:
        pytest.skip("this kernel lets nobody mount a tmpfs in a namespace of their own")
    command = f'{mount} && shift && exec "$@"'
    run = subprocess.run(
        [
            *inside,
            command,
            "sh",
            str(disk),
            sys.executable,
            "-c",
            WRITE,
            str(disk / "s"),
            "0",
            str(source_of(tmp_path)),
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    file, data, *_, left = run.stdout.splitlines()
    for line in (file, data):
        assert line.split()[1] == "96"
        assert "the disk is full" in line
        assert "needs 2097152 bytes" in line
        assert "are free" in line
        assert str(disk / "s") in line
    assert "partial" not in left
    assert "work" not in left
    assert "blobs" not in left

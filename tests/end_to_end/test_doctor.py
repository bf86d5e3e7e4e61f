"""`penny doctor` with the runtime of the repository's lock: its real NIXL on a real disk."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.newcomer import Penny

pytestmark = [pytest.mark.engine, pytest.mark.index]

# Denies io_uring_setup as a container's seccomp profile does, then probes with less data.
WITHOUT_URING = """
import ctypes, struct, sys
from pathlib import Path
from reproducer.doctor.runtime import built_interpreter
from reproducer.doctor.storage import needs_of, probe_storage
from reproducer.documents.opened import open_lock
from reproducer.progress import Silent
from reproducer.store import Store
libc = ctypes.CDLL(None)
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 425), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
header = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(program)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, header, 0, 0) == 0
opened = open_lock(Path("penny.lock.toml"))
python = built_interpreter(opened, Store(Path(sys.argv[1])), reporter=Silent())
for check in probe_storage(python, Path(sys.argv[2]), needs_of(opened.lock), reporter=Silent(), large=20 << 20):
    print(check.model_dump_json())
"""


def test_the_storage_that_the_lock_needs(newcomer: Penny, tmp_path: Path) -> None:
    """Every step of io_uring with O_DIRECT, which the committed lock asks for, passes through the real plugin."""
    folder = tmp_path / "kv"
    folder.mkdir()
    ended = newcomer("doctor", "--storage", str(folder), "--yes", "--json")
    assert ended.code == 0, ended.out + ended.err
    checks = {check["id"]: check for check in ended.result["checks"]}
    cell = [check for name, check in checks.items() if name.startswith("nixl.io_uring.o_direct.")]
    assert len(cell) == 8
    assert all(check["status"] == "passed" and check["needed"] for check in cell)
    assert checks["nixl.io_uring.o_direct.large"]["rates"]["write_ratio"] > 0
    assert checks["nixl.io_uring.o_direct.open"]["got"] == "the process holds io_uring"
    assert list(folder.iterdir()) == []


def test_a_sandbox_without_io_uring(newcomer: Penny, tmp_path: Path) -> None:
    """Where a sandbox denies io_uring the lock's mode fails with the plugin's own words, and AIO is still probed."""
    folder = tmp_path / "kv"
    folder.mkdir()
    command = [sys.executable, "-c", WITHOUT_URING, str(newcomer.store), str(folder)]
    ran = subprocess.run(command, cwd=newcomer.folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    checks = {check["id"]: check for check in map(json.loads, ran.stdout.splitlines())}
    refused = checks["nixl.io_uring.o_direct.open"]
    assert (refused["status"], refused["needed"]) == ("failed", True)
    assert "Failed to initialize io_uring instance: Operation not permitted" in refused["reason"]
    assert "seccomp" in refused["todo"]
    assert checks["nixl.aio.o_direct.large"]["status"] == "passed"

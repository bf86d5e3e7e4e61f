"""`penny doctor` as a process: what it refuses, and this host as checks."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.doctor.conftest import executable
from tests.end_to_end.newcomer import ROOT, Penny, copy_of_repository, edit_lock


def test_no_runtime_yet(tmp_path: Path) -> None:
    """Without a built runtime and without --yes nothing is built; the error says what to run."""
    penny = Penny(copy_of_repository(tmp_path / "clone"), tmp_path / "store", tmp_path / "keys")
    ended = penny("doctor", "--storage", str(tmp_path), "--json")
    assert ended.code == 96
    assert "penny build" in ended.result["error"]["todo"]
    assert not (tmp_path / "store").exists()


def test_the_wrong_place(tmp_path: Path) -> None:
    """A file, nothing at all and a link to nothing are wrong usage."""
    penny = Penny(copy_of_repository(tmp_path / "clone"), tmp_path / "store", tmp_path / "keys")
    shutil.copy(ROOT / "penny.lock.toml", tmp_path / "file")
    (tmp_path / "link").symlink_to("gone")
    for name in ("file", "gone", "link"):
        ended = penny("doctor", "--storage", str(tmp_path / name))
        assert ended.code == 2
        assert name in ended.err


def test_this_host(tmp_path: Path) -> None:
    """Without a lock host facts are shown and compared with nothing; with one each need of it is a check."""
    penny = Penny(copy_of_repository(tmp_path / "clone"), tmp_path / "store", tmp_path / "keys")
    with_lock = {check["id"]: check for check in penny("doctor", "--offline", "--json").result["checks"]}
    assert with_lock["host.platform"]["status"] in ("passed", "failed")
    assert with_lock["store.free"]["needed"]
    assert with_lock["host.gpu"]["reason"] == "the lock's launch runs on the CPU"
    (tmp_path / "clone" / "penny.lock.toml").unlink()
    alone = penny("doctor", "--json")
    without = {check["id"]: check for check in alone.result["checks"]}
    of_the_lock = {name for name in with_lock if name.startswith(("source.", "runtime.", "kv."))}
    assert without.keys() == with_lock.keys() - of_the_lock
    assert with_lock["source.environment.runtime"]["status"] == "skipped"
    assert "--offline" in with_lock["source.environment.runtime"]["reason"]
    assert with_lock["source.component.sgl-kernel-cpu"]["status"] == "passed"
    assert without["host.platform"]["status"] == "skipped"
    assert without["host.uv"]["status"] == "passed"
    assert not (tmp_path / "store").exists()


def test_a_host_that_lacks_what_the_lock_needs(tmp_path: Path) -> None:
    """A compiler and a GPU that the lock needs and the host has not are failed checks with what to do."""
    penny = Penny(copy_of_repository(tmp_path / "clone"), tmp_path / "store", tmp_path / "keys")

    def change(document: Any) -> None:
        document["toolchain"]["compiler"] = "no-such-compiler 1"
        document["launch"]["arguments"]["device"] = "cuda"

    edit_lock(penny.folder, change)
    ended = penny("doctor", "--offline", "--json", PATH="/nonexistent")
    checks = {check["id"]: check for check in ended.result["checks"]}
    assert ended.code == 68, ended.err
    for name in ("host.compilers", "host.gpu"):
        assert checks[name]["status"] == "failed"
        assert checks[name]["todo"]
    assert "no nvidia-smi" in checks["host.gpu"]["reason"]


def test_an_old_driver_and_another_gpu(tmp_path: Path) -> None:
    """nvidia-smi shows an older driver and another GPU: 68, each told with what to do, within 80 columns (R13)."""
    penny = Penny(copy_of_repository(tmp_path / "clone"), tmp_path / "store", tmp_path / "keys")
    row = "NVIDIA H200, 580.159.04, 143771, 700.00, 600.00, 9.0, 0x0000000000000040"
    executable(tmp_path / "nvidia-smi", f"#!/bin/sh\necho '{row}'\n")

    def change(document: Any) -> None:
        document["toolchain"]["driver"] = "610.57.04"
        document["launch"]["arguments"]["device"] = "cuda"
        document["hardware"] = {
            "gpu": "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
            "count": 1,
            "compute_capability": "12.0",
            "memory_gb": 96,
            "power_limit_w": 450,
        }

    edit_lock(penny.folder, change)
    path = f"{tmp_path}:{os.environ['PATH']}"
    ended = penny("doctor", "--offline", "--json", PATH=path)
    checks = {check["id"]: check for check in ended.result["checks"]}
    assert ended.code == 68
    failed = {name for name, check in checks.items() if check["status"] == "failed"}
    gpu = {"host.gpu.model", "host.gpu.compute_capability", "host.gpu.power_limit", "host.gpu.throttle"}
    assert {"host.driver", *gpu} <= failed
    assert checks["host.gpu"]["got"].startswith("NVIDIA H200, 150754820096 bytes, compute capability 9.0")
    assert checks["host.driver"]["needed"]
    assert all(checks[name]["todo"] for name in failed)
    _, lines = penny.seen("doctor", "--offline", PATH=path)
    assert "150.8 GB" in "\n".join(lines)
    assert max(map(len, lines)) <= 80


def test_a_table_of_80_columns(tmp_path: Path) -> None:
    """What a person reads fits an 80 column terminal and ends with the verdict."""
    penny = Penny(copy_of_repository(tmp_path / "clone"), tmp_path / "store", tmp_path / "keys")
    _, lines = penny.seen("doctor", "--offline")
    assert any(" GB available" in line for line in lines)
    assert max(map(len, lines)) <= 80
    assert "exit code" in lines[-1]


PROBE = """
import sys
from pathlib import Path
from reproducer.doctor.storage import Needs, probe_storage
from reproducer.doctor.checks import outcome
from reproducer.progress import Silent
checks = probe_storage(Path(sys.argv[1]), Path(sys.argv[2]), Needs("io_uring", direct=True), reporter=Silent())
for check in checks[:3]:
    print(check.id, check.status, check.reason, check.todo)
print({check.status for check in checks if check.id.startswith("nixl.")}, outcome(checks, about="nixl.").exit_code)
"""


@pytest.mark.parametrize(
    ("options", "first", "word", "code"),
    [
        ("ro", "folder.writable failed", "read-only", 68),
        ("size=1m", "folder.writable passed", "the disk is full, or nearly so make room", 96),
    ],
)
def test_a_disk_that_takes_nothing(place: Path, options: str, first: str, word: str, code: int) -> None:
    """A read-only file system and one without room are named, and no engine is tried on them."""
    inside = f'mount -t tmpfs -o {options} tmpfs "$1" && exec "$2" -c "$3" "$2" "$1"'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", inside, "sh"]
    if shutil.which("unshare") is None or subprocess.run([*command[:4], "true"], check=False).returncode != 0:
        pytest.skip("this machine gives no mount namespace")
    ran = subprocess.run(
        [*command, str(place), sys.executable, PROBE], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[0].startswith(first)
    assert word in ran.stdout
    assert lines[-1] == f"{{'skipped'}} {code}"

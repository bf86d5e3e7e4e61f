"""What the lock asks of the disk and the kernel is tried before a server is started."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reproducer.errors import NotCheckedError
from reproducer.launch.disk import check_direct_io

if TYPE_CHECKING:
    from tests.launch.conftest import Bench

PROBE = "from reproducer.launch.disk import check_direct_io; from pathlib import Path; check_direct_io(Path({!r}))"


def direct(folder: Path) -> bool:
    """Whether this filesystem takes O_DIRECT at all."""
    path = folder / "probe"
    path.touch()
    try:
        os.close(os.open(path, os.O_RDWR | os.O_DIRECT))
    except OSError:
        return False
    finally:
        path.unlink()
    return True


def test_direct_io(tmp_path: Path) -> None:
    """A filesystem that takes O_DIRECT passes, and nothing is left in the folder."""
    if not direct(tmp_path):
        pytest.skip("the temporary folder lies on a filesystem without O_DIRECT")
    check_direct_io(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_filesystem_without_direct_io(tmp_path: Path) -> None:
    """A filesystem without O_DIRECT is named, with what to do."""
    unshare, mount = shutil.which("unshare"), shutil.which("mount")
    if unshare is None or mount is None or os.geteuid() != 0:
        pytest.skip("only root can mount a filesystem without O_DIRECT")
    probe = f"{mount} -t ramfs none {tmp_path} && exec {sys.executable} -c '{PROBE.format(str(tmp_path))}'".replace(
        f"'{tmp_path}'", f'"{tmp_path}"'
    )
    done = subprocess.run([unshare, "-m", "sh", "-c", probe], capture_output=True, text=True, check=False)
    if "mount" in done.stderr and "Traceback" not in done.stderr:
        pytest.skip("this machine does not let root mount")
    assert "filesystem without O_DIRECT, which the lock asks for (the filesystem is ramfs)" in done.stderr
    assert "with --kv" in done.stderr


def test_folder_that_is_not_there(tmp_path: Path) -> None:
    """A namespace that cannot be written is one clear error."""
    with pytest.raises(NotCheckedError, match="the namespace cannot be written"):
        check_direct_io(tmp_path / "nowhere")


def test_asked_before_the_launch(bench: "Bench") -> None:
    """The probe runs before anything is started, where the lock asks for O_DIRECT."""
    bench.pages.rmdir()
    bench.root.rmdir()
    environment = {"STAND_IN_NAMESPACE": "{namespace}", "SGLANG_HICACHE_NIXL_O_DIRECT": "1"}
    arguments = {"hicache-storage-backend": "nixl", "model-path": "{checkpoint.target}"}
    with pytest.raises(NotCheckedError, match="the namespace cannot be written"):
        bench.run(environment=environment, arguments=arguments).__enter__()
    assert not bench.log.exists()
    bench.pages.mkdir(parents=True)

"""A lock covers its platform, or the package that does not is named with what it is for; a replaced wheel is told."""

from typing import Any

import pytest

from reproducer.documents.opened import open_lock
from reproducer.errors import DriftError, InvalidDocumentError, NotCheckedError
from reproducer.fetch import fetch
from reproducer.progress import Silent
from reproducer.store import Store
from tests.locking.conftest import CP, PYTHON, wheel


def test_package_for_other_platforms_only(project: Any) -> None:
    """The version is there, but not for this platform: package, version and its platforms are named (R11)."""
    project.index.add(wheel("delta", "2.0", tag=f"{CP}-{CP}-macosx_11_0_arm64"))
    project.index.add(wheel("delta", "2.0", tag=f"{CP}-{CP}-win_amd64"))
    project.edit('"alpha>=1"', '"alpha>=1", "delta>=1"')
    before = project.files()
    with pytest.raises(InvalidDocumentError) as caught:
        project.lock()
    assert f"delta 2.0 has no wheel for Python {PYTHON} on linux-x86_64" in caught.value.why
    assert f"{CP}-{CP}-macosx_11_0_arm64, {CP}-{CP}-win_amd64" in caught.value.why
    assert "alpha" not in caught.value.why
    assert project.files() == before


def test_package_of_a_package_for_other_platforms_only(project: Any) -> None:
    """What a requirement needs in turn is named too."""
    project.index.add(wheel("deep", "1.0", tag=f"{CP}-{CP}-macosx_11_0_arm64"))
    project.index.add(wheel("delta", "2.0", needs=("deep",)))
    project.edit('"alpha>=1"', '"alpha>=1", "delta>=1"')
    with pytest.raises(InvalidDocumentError) as caught:
        project.lock()
    assert "deep" in caught.value.why
    assert "macosx_11_0_arm64" in caught.value.why


def test_package_for_another_python_only(project: Any) -> None:
    """A wheel of another interpreter does not cover the lock's."""
    project.index.add(wheel("delta", "2.0", tag="cp38-cp38-manylinux_2_17_x86_64"))
    project.edit('["lonely==1.0"]', '["lonely==1.0", "delta==2.0"]')
    with pytest.raises(InvalidDocumentError, match="cp38-cp38-manylinux_2_17_x86_64"):
        project.lock()


def test_package_for_a_newer_c_library(project: Any) -> None:
    """A manifest may ask for packages whose wheels need a newer C library than 2.28, and must say so."""
    tag = f"{CP}-{CP}-manylinux_2_34_x86_64"
    project.index.add(wheel("delta", "2.0", tag=tag))
    project.edit('"alpha>=1"', '"alpha>=1", "delta>=1"')
    with pytest.raises(InvalidDocumentError, match="manylinux_2_34_x86_64"):
        project.lock()
    project.edit('compiler = "none"', 'glibc = "2.34"\ncompiler = "none"')
    assert f'name = "delta-2.0-{tag}.whl"' in project.lock(check=True).files["pylock.toml"].decode()
    project.edit('glibc = "2.34"', 'glibc = "2.33"')
    with pytest.raises(InvalidDocumentError, match="manylinux_2_34_x86_64"):
        project.lock(check=True)


def test_wheel_component_for_other_platforms_only(project: Any) -> None:
    """A wheel that is taken as it is must be for this platform as well."""
    project.index.add(wheel("delta", "2.0", tag="cp312-cp312-macosx_11_0_arm64"))
    project.edit(
        '{ kind = "local", path = "runtime/kernels" }', '{ kind = "wheel", project = "delta", version = "==2.0" }'
    )
    with pytest.raises(NotCheckedError, match="its wheels are for cp312-cp312-macosx_11_0_arm64"):
        project.lock()


def _nightly(project: Any) -> None:
    """Lock a nightly of a moving index."""
    project.index.add(wheel("alpha", "1.1.dev20260801+cu130", {"alpha.py": b"FIRST = 1\n"}, needs=("gamma",)))
    project.edit('"alpha>=1"', '"alpha==1.1.dev20260801+cu130"')
    project.written()


def test_nightly_is_locked_by_its_digest(project: Any) -> None:
    """A development version reaches a lock with the sha256 of its wheel, or not at all (R2)."""
    _nightly(project)
    name, data = wheel("alpha", "1.1.dev20260801+cu130", {"alpha.py": b"FIRST = 1\n"}, needs=("gamma",))
    import hashlib

    text = (project.folder / "pylock.toml").read_text("utf-8")
    assert name in text
    assert hashlib.sha256(data).hexdigest() in text


def test_nightly_that_was_replaced_is_reported(project: Any) -> None:
    """Other bytes under one version: locking anew names the wheel, and fetching the old lock refuses it (R2)."""
    _nightly(project)
    project.index.add(wheel("alpha", "1.1.dev20260801+cu130", {"alpha.py": b"SECOND = 2\n"}, needs=("gamma",)))
    assert project.lock().reasons == ()
    moved = project.lock(upgrade=frozenset({"alpha"})).reasons
    assert any("alpha-1.1.dev20260801+cu130" in each and "becomes" in each and "same name" in each for each in moved)
    with pytest.raises(DriftError, match=r"alpha-1\.1\.dev20260801"):
        fetch(open_lock(project.path), Store(project.folder / "new"), indexes=project.indexes, reporter=Silent())

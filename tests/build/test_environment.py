"""Environments: by hash only, relocatable, compiled once, the same content every time."""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from reproducer.build.environment import Wheel, content_files, installer, interpreter_version, make_environment
from reproducer.errors import DriftError, NotCheckedError, RebuildError
from reproducer.store.hashing import hash_tree, tree_digest

MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
Write = Callable[[str, str, Mapping[str, bytes]], Path]
TOOL = {
    "tool/__init__.py": b"def main():\n    print('tool runs')\n",
    "tool/other.py": b"X = 1\n",
    "tool-2.0+cpu.dist-info/entry_points.txt": b"[console_scripts]\ntool = tool:main\n",
}


def packed(path: Path) -> Wheel:
    """A wheel file as the store would give it: under its digest."""
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    blob = path.with_name(sha256)
    shutil.copyfile(path, blob)
    return Wheel(blob, path.name, sha256)


def make(work: Path, wheels: list[Wheel], *, python: str = MINOR, compiled: bool = True) -> str:
    """An environment in `work/venv`."""
    work.mkdir(parents=True)
    return make_environment(
        work / "venv", wheels, python=python, work=work, offline=True, compiled=compiled, what="runtime"
    )


def test_environment(tmp_path: Path, wheel: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs after a move, its modules are compiled for good, and its content does not depend on place or time."""
    monkeypatch.setenv("UV_LINK_MODE", "symlink")
    monkeypatch.setenv("UV_NO_BINARY", "1")
    tool, plain = packed(wheel("tool", "2.0+cpu", TOOL)), packed(wheel("plain", "1", {"plain.py": b"Y = 2\n"}))
    digests = []
    for name in ("a", "longer/b"):
        full = make(tmp_path / name, [tool, plain])
        assert full.startswith(f"{MINOR}.")
        moved = tmp_path / name / "moved"
        (tmp_path / name / "venv").rename(moved)
        assert sorted(path.name for path in (tmp_path / name).iterdir()) == ["moved", "venv.log"]
        assert interpreter_version(moved) == full
        ran = subprocess.run([moved / "bin" / "tool"], capture_output=True, text=True, check=True)
        assert ran.stdout == "tool runs\n"
        files = hash_tree(moved)
        kept = content_files(files)
        assert "bin/tool" in kept
        assert not any("uv_cache" in path or "activate" in path for path in files)
        digests.append(tree_digest({path: files[path] for path in kept}))
    assert digests[0] == digests[1]
    assert tool.path.read_bytes()


def test_sealed_tree_stays(tmp_path: Path, wheel: Write) -> None:
    """Importing writes nothing: every module has a `.pyc` that Python takes without looking at its source."""
    make(tmp_path / "w", [packed(wheel("tool", "2.0+cpu", TOOL))])
    venv = tmp_path / "w" / "venv"
    before = hash_tree(venv)
    source = next(venv.glob("lib/*/site-packages/tool/other.py"))
    assert int.from_bytes(next(source.parent.glob("__pycache__/other.*.pyc")).read_bytes()[4:8], "little") == 1
    source.touch()
    subprocess.run([venv / "bin" / "python", "-c", "import tool.other"], check=True)
    assert hash_tree(venv) == before


def test_hash_only(tmp_path: Path, wheel: Write) -> None:
    """A wheel whose bytes are not those of its hash is not installed, nor one that fits no host like this."""
    path = wheel("tool", "2.0+cpu", TOOL)
    good = packed(path)
    other = Wheel(good.path, good.filename, "0" * 64)
    with pytest.raises(RebuildError, match="installing the environment runtime failed"):
        make(tmp_path / "a", [other])
    foreign = Wheel(good.path, "tool-2.0+cpu-cp27-cp27m-win32.whl", good.sha256)
    with pytest.raises(RebuildError, match="installing the environment runtime failed"):
        make(tmp_path / "b", [foreign])
    with pytest.raises(DriftError, match="no wheel's file name"):
        make(tmp_path / "c", [Wheel(good.path, "tool.whl", good.sha256)])


def test_no_installer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package uv one error says what to install."""
    monkeypatch.setitem(sys.modules, "uv", None)
    with pytest.raises(NotCheckedError, match="uv cannot be run"):
        installer()


def test_no_such_python(tmp_path: Path) -> None:
    """An interpreter that is not there offline is one clear error with what to do."""
    with pytest.raises(NotCheckedError, match=r"no Python 3\.99 that uv can use.*Run without --offline"):
        make(tmp_path / "a", [], python="3.99")

"""Small real projects: source distributions with a build backend inside, and wheels."""

import base64
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.build.bench import Bench

BACKEND = """
import base64, hashlib, os, time, zipfile
import hooks

def build_wheel(out, settings, metadata):
    hooks.before()
    epoch = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
    names = sorted(f"tiny/{name}" for name in os.listdir("tiny"))
    data = {name: open(name, "rb").read() for name in names}
    modes = {name: os.stat(name).st_mode for name in names}
    made = "tiny/made.txt"
    with open("made.txt", "w") as file:
        file.write(hooks.made())
    data[made], modes[made] = open("made.txt", "rb").read(), os.stat("made.txt").st_mode
    data["tiny-1.0.dist-info/METADATA"] = b"Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n"
    data["tiny-1.0.dist-info/WHEEL"] = b"Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    rows = []
    for name in data:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data[name]).digest()).decode().rstrip("=")
        rows.append(f"{name},sha256={digest},{len(data[name])}\\n")
    record = "tiny-1.0.dist-info/RECORD"
    data[record] = ("".join(rows) + f"{record},,\\n").encode()
    with zipfile.ZipFile(os.path.join(out, "tiny-1.0-py3-none-any.whl"), "w", zipfile.ZIP_DEFLATED) as wheel:
        for name in data:
            info = zipfile.ZipInfo(name, epoch)
            info.external_attr = (modes.get(name, 0o100644) & 0xFFFF) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(info, data[name])
    return "tiny-1.0-py3-none-any.whl"
"""
PYPROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
QUIET_HOOKS = 'def before():\n    pass\n\n\ndef made():\n    return "made\\n"\n'
EPOCH = 1704067200


def tiny_tree(hooks: str = QUIET_HOOKS) -> dict[str, bytes]:
    """The files of a project whose backend runs `hooks.before()` and writes what `hooks.made()` returns."""
    return {
        "pyproject.toml": PYPROJECT.encode(),
        "backend.py": BACKEND.encode(),
        "hooks.py": hooks.encode(),
        "tiny/__init__.py": b"VALUE = 1\n",
        "tiny/data.py": b"one = 1\ntwo = 2\nthree = 3\n",
    }


def write_sdist(path: Path, files: Mapping[str, bytes], *, mode: int = 0o644) -> Path:
    """A `.tar.gz` with the files below `tiny-1.0/`."""
    with tarfile.open(path, "w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(f"tiny-1.0/{name}")
            member.size, member.mode, member.mtime = len(data), mode, 1
            tar.addfile(member, io.BytesIO(data))
    return path


def write_wheel(folder: Path, project: str, version: str, files: Mapping[str, bytes]) -> Path:
    """A valid pure wheel with the files."""
    path = folder / f"{project}-{version}-py3-none-any.whl"
    info = f"{project}-{version}.dist-info"
    content = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = []
    for name, data in content.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        rows.append(f"{name},sha256={digest},{len(data)}\n")
    content[f"{info}/RECORD"] = ("".join(rows) + f"{info}/RECORD,,\n").encode()
    with zipfile.ZipFile(path, "w") as wheel:
        for name, data in content.items():
            wheel.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), data)
    return path


@pytest.fixture
def sdist(tmp_path: Path) -> Callable[..., Path]:
    """Writes a source distribution with certain hooks or files."""

    def write(hooks: str = QUIET_HOOKS, *, name: str = "tiny-1.0.tar.gz", **more: bytes) -> Path:
        return write_sdist(tmp_path / name, {**tiny_tree(hooks), **more})

    return write


@pytest.fixture
def wheel(tmp_path: Path) -> Callable[[str, str, Mapping[str, bytes]], Path]:
    """Writes a wheel."""

    def write(project: str, version: str, files: Mapping[str, bytes]) -> Path:
        folder = tmp_path / "wheels"
        folder.mkdir(exist_ok=True)
        return write_wheel(folder, project, version, files)

    return write


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A workbench in a folder of its own."""
    return Bench(tmp_path)

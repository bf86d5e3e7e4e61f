"""The real engine's source distribution builds to the same bytes in two folders."""

import hashlib
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from unearth import PackageFinder

from reproducer.build.component import build_component
from reproducer.build.environment import Wheel, make_environment
from reproducer.build.wheel_content import compare_wheels, read_wheel
from reproducer.documents.lock import Build, Component, SdistSource

SDIST = "sglang-0.5.10.post1.tar.gz"
SDIST_SHA256 = "01f7adfe"
TOOLS = ("setuptools==80.9.0", "setuptools-scm==8.3.1", "wheel==0.45.1", "packaging==25.0")


def download(folder: Path, *arguments: str) -> None:
    """Take wheels from the user's package index."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    subprocess.run([*command, "--dest", str(folder), *arguments], check=True)


@pytest.mark.index
def test_two_folders_same_bytes(tmp_path: Path) -> None:
    """SGLang 0.5.10.post1, unpatched, built twice in two folders of different depth: bytes-identical."""
    wheels = tmp_path / "wheels"
    download(wheels, "--only-binary", ":all:", *TOOLS)
    sdist = fetch_sdist(tmp_path)
    data = sdist.read_bytes()
    sha256 = hashlib.sha256(data).hexdigest()
    assert sha256.startswith(SDIST_SHA256)
    source = SdistSource(project="sglang", version="0.5.10.post1", filename=SDIST, sha256=sha256, size=len(data))
    component = Component(name="sglang", kind="wheel", source=source, build_environment="build", outputs=())
    tools = [Wheel(path, path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in wheels.iterdir()]
    provided = dict(each.split("==") for each in TOOLS)
    contents = []
    for name in ("a", "another/and/deeper"):
        work = tmp_path / name
        (work / "build").mkdir(parents=True)
        make_environment(work / "venv", tools, python="3.11", work=work, offline=False, compiled=False, what="build")
        built = build_component(
            component,
            Build(source_date_epoch=1704067200),
            python=work / "venv" / "bin" / "python",
            provided=provided,
            sdist=sdist,
            read=lambda _: b"",
            work=work / "build",
        )
        contents.append(read_wheel(built.path, build_paths=[built.built_in]))
    assert compare_wheels(*contents) == ("bytes-identical", ())


def fetch_sdist(folder: Path) -> Path:
    """The source distribution, from the user's indexes; pip would run its build to read its metadata."""
    from reproducer.fetch.indexes import Indexes

    indexes = Indexes.from_user()
    finder = PackageFinder(
        index_urls=list(indexes.index_urls), find_links=list(indexes.find_links), no_binary=["sglang"]
    )
    found = next(iter(finder.find_matches("sglang==0.5.10.post1")))
    path = folder / SDIST
    with urllib.request.urlopen(found.link.normalized, timeout=120) as answer:  # noqa: S310  the user's own indexes
        path.write_bytes(answer.read())
    return path

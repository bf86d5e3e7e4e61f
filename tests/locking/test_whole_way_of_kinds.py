"""Components of every kind beside a tiny engine, from the command line: lock, fetch, build, rebuild, attest, verify."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.opened import open_lock
from reproducer.errors import NotCheckedError
from reproducer.fetch.indexes import Indexes
from reproducer.host import host_platform
from reproducer.locking.artefacts import Artefacts
from reproducer.progress import Silent
from reproducer.store import Store
from tests.locking.conftest import PYTHON

pytestmark = [
    pytest.mark.index,  # Meson is a wheel
    pytest.mark.skipif(
        any(shutil.which(each) is None for each in ("cmake", "ninja", "make", "nvcc")),
        reason="needs cmake, ninja, make and nvcc on this machine",
    ),
]
COMPONENTS = """\
[[components]]
name = "by-cmake"
kind = "cmake"
source = { kind = "local", path = "runtime/by-cmake" }
arguments = ["-DCMAKE_BUILD_TYPE=Release"]

[[components]]
name = "by-meson"
kind = "meson"
source = { kind = "local", path = "runtime/by-meson" }
build_environment = "meson"

[[components]]
name = "by-nvcc"
kind = "nvcc"
source = { kind = "local", path = "runtime/by-nvcc" }
arguments = ["-cubin", "-o", "{output}/kernel.cubin", "{source}/kernel.cu"]
architectures = ["sm_90"]

[[components]]
name = "by-command"
kind = "command"
source = { kind = "local", path = "runtime/by-command" }
arguments = ["make", "-j{jobs}", "-C", "{source}", "OUT={output}"]
variables = { CXX = "g++" }

[[environments]]
name = "meson"
requirements = ["meson"]

[[environments]]
name = "runtime"
"""
LIBRARY = 'extern "C" int answer() { return 42; }\n'
SOURCES = {
    "by-cmake/CMakeLists.txt": (
        "cmake_minimum_required(VERSION 3.20)\nproject(native LANGUAGES CXX)\n"
        "add_library(native SHARED native.cpp)\ninstall(TARGETS native DESTINATION lib)\n"
    ),
    "by-cmake/native.cpp": LIBRARY,
    "by-meson/meson.build": "project('native', 'cpp')\nshared_library('native', 'native.cpp', install: true)\n",
    "by-meson/native.cpp": LIBRARY,
    "by-nvcc/kernel.cu": "__global__ void scale(float *x) { x[threadIdx.x] *= 2; }\n",
    "by-command/Makefile": "all:\n\t$(CXX) -shared -fPIC -o $(OUT)/libnative.so native.cpp\n",
    "by-command/native.cpp": LIBRARY,
}
OUTPUTS = {
    "by-cmake": {"lib/libnative.so"},
    "by-nvcc": {"kernel.cubin"},
    "by-command": {"libnative.so"},
}


@pytest.fixture
def kinds(project: Any) -> Any:
    """The tiny project with four components more, not locked with them yet; its index has Meson."""
    store = Store(project.folder.parent / "from-index")
    artefacts = Artefacts(store, Indexes.from_user(), Silent(), PYTHON, host_platform(), offline=False)
    try:
        meson = artefacts.release("meson", ">=1.5", "wheel", keep=None, where="test")
        project.index.add((meson.filename, artefacts.fetched(meson).read_bytes()))
    except NotCheckedError as error:
        pytest.skip(f"no package index within reach: {error}")
    for path, text in SOURCES.items():
        file = project.folder / "runtime" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    project.edit('[[environments]]\nname = "runtime"\n', COMPONENTS)
    return project


def penny(project: Any, *arguments: str, store: Path, code: int = 0) -> Any:
    """Run the command line in the project's folder; its JSON."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    done = subprocess.run(
        [sys.executable, "-m", "reproducer", *arguments, "--json"],
        cwd=project.folder,
        env={**kept, "PIP_INDEX_URL": project.index.url, "PENNY_STORE": str(store)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, (done.returncode, done.stderr[-2000:], done.stdout[-2000:])
    return json.loads(done.stdout)


def test_whole_way(kinds: Any, tmp_path: Path) -> None:
    """A stranger's store gets the same files of every kind, twice, and verify says so; a changed one is told."""
    theirs = tmp_path / "their-store"
    assert penny(kinds, "lock", "--yes", store=kinds.store.root)["changed"]
    lock = open_lock(kinds.path).lock
    found = {name: {each.filename for each in lock.component(name).outputs} for name in OUTPUTS}
    assert found == OUTPUTS
    assert {Path(each.filename).name for each in lock.component("by-meson").outputs} == {"libnative.so"}
    assert lock.component("by-nvcc").outputs[0].architectures == ("sm_90",)
    assert penny(kinds, "lock", "--check", store=kinds.store.root)["reasons"] == []
    penny(kinds, "fetch", store=theirs)
    for options in ((), ("--rebuild",)):
        built = penny(kinds, "build", "--yes", "--offline", *options, store=theirs)
        assert (built["level"], built["differences"]) == ("bytes-identical", [])
    keys, evidence = tmp_path / "keys", tmp_path / "evidence"
    folders = ("--keys", str(keys), "--evidence", str(evidence))
    # Nothing was launched or measured, which both say, and which is no matter here.
    bundle = penny(kinds, "attest", "--builds", *folders, store=theirs, code=104)["bundle"]
    verified = penny(kinds, "verify", bundle, "--key", str(keys / "penny.pub.pem"), store=theirs, code=104)
    assert {each["id"] for each in verified["checks"] if each["status"] == "failed"} == {
        "suite",
        "measure.decode.single",
    }
    for component in (*OUTPUTS, "by-meson"):
        for output in lock.component(component).outputs:
            ident = f"build.{component}.{output.filename}["
            said = [each["status"] for each in verified["checks"] if each["id"].startswith(ident)]
            assert said == ["passed", "passed"], ident  # both builds are signed and hold
    text = kinds.path.read_text("utf-8")
    cubin = lock.component("by-nvcc").outputs[0]
    for digest in (cubin.sha256, cubin.content_sha256, cubin.device_code_sha256):
        text = text.replace(str(digest), "0" * 64)
    kinds.path.write_text(text, "utf-8")
    other = penny(kinds, "build", "--yes", "--offline", store=theirs, code=66)
    assert other["level"] == "inputs-identical"
    assert any("kernel.cubin" in json.dumps(each) for each in other["differences"])

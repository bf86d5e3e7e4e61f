"""A module that FlashInfer would compile at its first run, compiled ahead of time by nvcc from released sources."""

import shutil
import zipfile
from pathlib import Path

import pytest

from reproducer.build.architectures import unfit
from reproducer.build.file_levels import compare_file
from reproducer.documents.sources import Artefact
from reproducer.errors import NotCheckedError
from reproducer.fetch.indexes import Indexes
from reproducer.host import host_platform
from reproducer.locking.artefacts import Artefacts
from reproducer.progress import Silent
from reproducer.store import Store
from tests.build.bench import MINOR, Bench

pytestmark = [
    pytest.mark.releases,
    pytest.mark.index,
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc on this machine"),
]
ARGUMENTS = (
    *("-shared", "-Xcompiler=-fPIC", "-std=c++17", "-O3", "--use_fast_math"),
    *("-DFLASHINFER_ENABLE_F16", "-DFLASHINFER_ENABLE_BF16"),
    *("-I{source}/flashinfer/data/include", "-I{source}/flashinfer/data/csrc"),
    *("-isystem", "{source}/flashinfer/data/spdlog/include", "-isystem", "{source}/tvm_ffi/include"),
    *("-o", "{output}/cascade.so"),
    *("{source}/flashinfer/data/csrc/cascade.cu", "{source}/flashinfer/data/csrc/flashinfer_cascade_binding.cu"),
)
FOLDERS = ("flashinfer/data/include/", "flashinfer/data/spdlog/", "tvm_ffi/include/")
FILES = ("cascade.cu", "flashinfer_cascade_binding.cu", "tvm_ffi_utils.h")


def sources(folder: Path) -> dict[str, str]:
    """The headers and the sources of the module, from the two released wheels."""
    artefacts = Artefacts(Store(folder / "store"), Indexes.from_user(), Silent(), MINOR, host_platform(), offline=False)
    found: dict[str, str] = {}
    try:
        for project, version in (("flashinfer-python", "==0.7.4"), ("apache-tvm-ffi", "==0.1.15.post2")):
            release = artefacts.release(project, version, "wheel", keep=None, where="test")
            wheel = artefacts.fetched(Artefact(**release.model_dump(include=set(Artefact.model_fields))))
            with zipfile.ZipFile(wheel) as packed:
                found |= {
                    name: packed.read(name).decode("utf-8")
                    for name in packed.namelist()
                    if name.startswith(FOLDERS) or name.removeprefix("flashinfer/data/csrc/") in FILES
                }
    except NotCheckedError as error:
        pytest.skip(f"no package index within reach: {error}")
    return {name: text for name, text in found.items() if not name.endswith("/")}


def test_cascade(tmp_path: Path) -> None:
    """No GPU and no torch is needed; the list is the one asked for, and two folders give the same bytes."""
    bench = Bench(tmp_path)
    component = bench.component(
        "nvcc", sources(tmp_path), architectures=("sm_90a", "sm_120a"), arguments=ARGUMENTS, jobs=2
    )
    first, second = bench.twice(component)
    assert [(each.filename, each.architectures) for each in first] == [("cascade.so", ("sm_90a", "sm_120a"))]
    assert compare_file(first[0], second[0]) == ("bytes-identical", ())
    libraries = {first[0].filename: first[0].architectures}
    assert unfit(libraries, "12.0") == ()
    assert unfit(libraries, "10.0") == ("cascade.so: built for sm_90a, sm_120a, and the device is 10.0",)

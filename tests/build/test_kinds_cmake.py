"""CMake: a shared library and its header, the same bytes from any folder, and what is refused."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from reproducer.build import place
from reproducer.build.file_levels import compare_file
from reproducer.errors import InvalidDocumentError, RebuildError, UnsafeInputError
from tests.build.bench import EPOCH, LIBRARY, Bench, names

pytestmark = pytest.mark.skipif(
    shutil.which("cmake") is None or shutil.which("ninja") is None, reason="needs cmake and ninja on this machine"
)
LISTS = """\
cmake_minimum_required(VERSION 3.20)
project(native LANGUAGES CXX)
include(GNUInstallDirs)
add_library(native SHARED native.cpp)
add_library(user SHARED user.cpp)
target_link_libraries(user PRIVATE native)
install(TARGETS native user)
install(FILES native.h DESTINATION include)
"""
SOURCES = {
    "CMakeLists.txt": LISTS,
    "native.cpp": LIBRARY,
    "native.h": 'extern "C" int answer();\n',
    "user.cpp": '#include "native.h"\nextern "C" int twice() { return answer() + answer(); }\n',
}
DEBUG = ("-DCMAKE_BUILD_TYPE=RelWithDebInfo",)


def test_library_is_built(bench: Bench) -> None:
    """The installed tree is the output: libraries that load, a header, all with the epoch's time; tools are named."""
    built = bench.build(bench.component("cmake", SOURCES))
    assert names(built.outputs) == ["include/native.h", "lib/libnative.so", "lib/libuser.so"]
    assert ctypes.CDLL(str(built.folder / "lib" / "libnative.so")).answer() == 1
    assert {int(path.stat().st_mtime) for path in built.folder.rglob("*")} == {EPOCH}
    assert sorted(built.tools) == ["c++", "cc", "cmake", "ld", "ninja"]
    said = subprocess.run(["cmake", "--version"], capture_output=True, text=True, check=True).stdout
    assert built.tools["cmake"] == said.splitlines()[0]


def test_two_folders_give_the_same_bytes(bench: Bench) -> None:
    """Debug information, the name of a source, a library that needs another: byte-identical from two folders."""
    first, second = bench.twice(bench.component("cmake", SOURCES, arguments=DEBUG))
    assert [compare_file(*pair)[0] for pair in zip(first, second, strict=True)] == ["bytes-identical"] * 3


def test_two_folders_without_mounts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be mounted the flags for the compiler keep the folder out of what it writes."""
    monkeypatch.setattr(place, "_POINTS", ())
    component = bench.component("cmake", SOURCES, arguments=DEBUG)
    first, second = bench.build(component, "a"), bench.build(component, "elsewhere/and/deeper")
    levels = [compare_file(*pair)[0] for pair in zip(first.outputs, second.outputs, strict=True)]
    assert levels == ["bytes-identical"] * 3
    for built in (first, second):
        assert str(bench.folder).encode() not in (built.folder / "lib" / "libnative.so").read_bytes()
    mapped = ctypes.CDLL(str(first.folder / "lib" / "libnative.so")).place
    mapped.restype = ctypes.c_char_p
    assert mapped() == b"/penny-build/src/native/native.cpp"


def test_jobs_change_nothing(bench: Bench) -> None:
    """One job or four: the same bytes, and one product in the store for both."""
    one = bench.component("cmake", SOURCES, jobs=1)
    product, built = bench.workshop.files(one, ())
    again, same = bench.workshop.files(one.model_copy(update={"jobs": 4}), ())
    assert (product.reused, again.reused) == (False, True)
    assert same.outputs == built.outputs
    assert bench.build(one.model_copy(update={"jobs": 4})).outputs == built.outputs


def test_a_branch_named_in_a_build_file_is_caught(bench: Bench) -> None:
    """A dependency that a build file fetches at a branch, from a repository that is there, stops the build by name."""
    repository = bench.folder / "kernels.git"
    subprocess.run(["git", "init", "-q", "-b", "main", repository], check=True)
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    (repository / "CMakeLists.txt").write_text("add_library(kernels INTERFACE)\n")
    subprocess.run(["git", "-C", repository, "add", "."], check=True)
    subprocess.run(["git", "-C", repository, *identity, "commit", "-q", "-m", "one"], check=True)
    lists = LISTS + (
        "include(FetchContent)\n"
        f"FetchContent_Declare(kernels GIT_REPOSITORY {repository}\n  GIT_TAG main)\n"
        "FetchContent_MakeAvailable(kernels)\n"
    )
    with pytest.raises(RebuildError, match="ask to fetch what the lock does not name") as caught:
        bench.build(bench.component("cmake", {**SOURCES, "CMakeLists.txt": lists}))
    assert "'CMakeLists.txt', line 10: " in str(caught.value)
    assert " at 'main', which may move" in str(caught.value)
    assert "transport 'file' not allowed" in str(caught.value)


def test_nothing_is_installed_elsewhere(bench: Bench, tmp_path: Path) -> None:
    """A rule that installs to an absolute path is refused by that path, and nothing lands there."""
    bait = tmp_path / "bait"
    lists = f"{LISTS}install(FILES native.h DESTINATION {bait})\n"
    with pytest.raises(UnsafeInputError, match=r"bait/native\.h' outside of its folder"):
        bench.build(bench.component("cmake", {**SOURCES, "CMakeLists.txt": lists}))
    assert not bait.exists()


def test_versioned_libraries_are_links(bench: Bench) -> None:
    """A link among the outputs is refused with its name; CMake has an option that makes none."""
    lists = f"{LISTS}set_target_properties(native PROPERTIES VERSION 1.2 SOVERSION 1)\n"
    component = bench.component("cmake", {**SOURCES, "CMakeLists.txt": lists})
    with pytest.raises(UnsafeInputError, match=r"gave a link: 'lib/libnative\.so"):
        bench.build(component)
    plain = component.model_copy(update={"arguments": ("-DCMAKE_PLATFORM_NO_VERSIONED_SONAME=ON",)})
    assert "lib/libnative.so" in names(bench.build(plain, "b").outputs)


def test_compilers_are_the_ones_named(bench: Bench) -> None:
    """`CXX` decides which compiler is looked for and whose version is recorded."""
    component = bench.component("cmake", SOURCES, variables={"CXX": "g++ -DOTHER"})
    assert bench.build(component).tools["c++"].startswith("g++ ")
    with pytest.raises(RebuildError, match="native, compiling, failed"):
        bench.build(component.model_copy(update={"variables": {"CXXFLAGS": "-Danswer=1+"}}), "b")


def test_placeholders(bench: Bench) -> None:
    """An argument with a placeholder that nothing fills is refused before anything runs."""
    component = bench.component("cmake", SOURCES, arguments=("-DX={prefix}",))
    with pytest.raises(InvalidDocumentError, match=r"components\.native: the arguments name \{prefix\}"):
        bench.build(component)

"""Builds whose tools come from wheels of a package index: Meson with Ninja, and a C++ extension by setuptools."""

import sys
from pathlib import Path

import pytest

from reproducer.binaries.wheel_content import compare_wheels, read_wheel
from reproducer.build.file_levels import compare_file
from reproducer.documents.sources import Artefact
from reproducer.errors import NotCheckedError, RebuildError
from reproducer.fetch.indexes import Indexes
from reproducer.host import host_platform
from reproducer.locking.artefacts import Artefacts
from reproducer.progress import Silent
from reproducer.store import Store
from tests.build.bench import LIBRARY, MINOR, Bench, names

pytestmark = pytest.mark.index
MESON = """\
project('native', 'cpp', default_options: ['buildtype=debugoptimized'])
native = shared_library('native', 'native.cpp', install: true)
executable('tool', 'tool.cpp', link_with: native, install: true)
install_headers('native.h')
"""
SOURCES = {
    "meson.build": MESON,
    "native.cpp": LIBRARY,
    "native.h": 'extern "C" int answer();\n',
    "tool.cpp": '#include "native.h"\nint main() { return answer() - 1; }\n',
}
SETUP = """\
from setuptools import Extension, setup

setup(ext_modules=[Extension("fast", ["fast.cpp"], extra_compile_args=["-g"])])
"""
EXTENSION = """\
#include <Python.h>
namespace { int calls; }
static PyObject *answer(PyObject *, PyObject *) { return PyLong_FromLong(41 + ++calls); }
static PyObject *place(PyObject *, PyObject *) { return PyUnicode_FromString(__FILE__); }
static PyMethodDef methods[] = {
    {"answer", answer, METH_NOARGS, ""}, {"place", place, METH_NOARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "fast", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_fast() { return PyModule_Create(&module); }
"""
PROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "fast"
version = "1.0"
"""


def bench_with(folder: Path, **wanted: str) -> Bench:
    """A workbench whose build environment holds these wheels of the user's index."""
    artefacts = Artefacts(Store(folder / "store"), Indexes.from_user(), Silent(), MINOR, host_platform(), offline=False)
    found: list[Artefact] = []
    try:
        for project, specifier in wanted.items():
            artefact = artefacts.release(project, specifier, "wheel", keep=None, where="test")
            artefacts.fetched(artefact)
            found.append(Artefact(**artefact.model_dump(include=set(Artefact.model_fields))))
    except NotCheckedError as error:
        pytest.skip(f"no package index within reach: {error}")
    return Bench(folder, tuple(found))


def test_meson(tmp_path: Path) -> None:
    """Meson and Ninja come from the build environment and say their versions; two folders give the same bytes."""
    bench = bench_with(tmp_path, meson=">=1.5", ninja=">=1.11")
    component = bench.component("meson", SOURCES, build_environment="build")
    versions = {each.project: each.version for each in bench.environment}
    tools = bench.workshop.tools(component, bench.environment)
    assert tools["meson"] == versions["meson"]
    assert tools["ninja"].startswith(versions["ninja"])
    assert {"c++", "cc"} <= set(tools)
    first, second = bench.twice(component)
    assert names(first) == ["bin/tool", "include/native.h", "lib/libnative.so"]
    assert [compare_file(*pair)[0] for pair in zip(first, second, strict=True)] == ["bytes-identical"] * 3
    other = component.model_copy(update={"arguments": ("-Dlibdir=native", "-Dbuildtype=release"), "jobs": 1})
    assert "native/libnative.so" in names(bench.build(other, "c").outputs)


def test_meson_fetches_nothing(tmp_path: Path) -> None:
    """A wrap at a branch is not downloaded; the build file that asks for it is named."""
    bench = bench_with(tmp_path, meson=">=1.5", ninja=">=1.11")
    wrap = "[wrap-git]\nurl = https://example.org/part.git\nrevision = main\n"
    files = {**SOURCES, "meson.build": MESON + "dependency('part')\n", "subprojects/part.wrap": wrap}
    with pytest.raises(RebuildError, match=r"'subprojects/part\.wrap', line 2: .*part\.git' at 'main', which may move"):
        bench.build(bench.component("meson", files, build_environment="build"))


def test_extension(tmp_path: Path) -> None:
    """A wheel with a C++ extension and debug information is the same from two folders, and it works."""
    bench = bench_with(tmp_path, setuptools=">=70")
    files = {"setup.py": SETUP, "fast.cpp": EXTENSION, "pyproject.toml": PROJECT}
    component = bench.component("wheel", files, build_environment="build")
    works = [tmp_path / name for name in ("a", "elsewhere/and/deeper")]
    for work in works:
        work.mkdir(parents=True)
    built = [bench.workshop.build(component, bench.environment, work) for work in works]
    first, second = (read_wheel(each.path, build_paths=[each.built_in]) for each in built)
    level, differences = compare_wheels(first, second)
    assert (level, [each.where for each in differences]) == ("bytes-identical", [])
    library = next(path for path in first.members if path.endswith(".so"))
    assert f"cpython-{sys.version_info.major}{sys.version_info.minor}" in library

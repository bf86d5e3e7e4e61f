"""A component that CMake builds, the whole way: manifest, lock, fetch, build, namespace, launch plan, verify."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from reproducer.attest.statements import build_statement
from reproducer.build.runtime import Runtime, build
from reproducer.difference.diff import diff
from reproducer.documents.lock import Component, FileOutput, Lock
from reproducer.documents.opened import OpenedLock, open_lock
from reproducer.documents.receipts import BuildReceipt
from reproducer.errors import DriftError, RebuildError, UsageError
from reproducer.fetch import fetch
from reproducer.identity.namespace import derive
from reproducer.launch.plan import plan
from reproducer.progress import Silent
from reproducer.verify.receipts import verify_receipts

pytestmark = pytest.mark.skipif(
    shutil.which("cmake") is None or shutil.which("ninja") is None, reason="needs cmake and ninja on this machine"
)
COMPONENT = """\
[[components]]
name = "native"
kind = "cmake"
source = { kind = "local", path = "runtime/native" }
arguments = ["-DCMAKE_BUILD_TYPE=Release"]
jobs = 2

[[environments]]
name = "runtime"
"""
LISTS = """\
cmake_minimum_required(VERSION 3.20)
project(native LANGUAGES CXX)
add_library(native SHARED native.cpp)
install(TARGETS native DESTINATION lib)
"""


@pytest.fixture(scope="module")
def native_once(tmp_path_factory: pytest.TempPathFactory, locked_once: Any) -> Any:
    """A locked project with a component of C++."""
    folder = tmp_path_factory.mktemp("native") / "project"
    shutil.copytree(locked_once.folder, folder)
    project = type(locked_once)(folder, locked_once.index, locked_once.store, locked_once.indexes)
    native = folder / "runtime" / "native"
    native.mkdir()
    (native / "CMakeLists.txt").write_text(LISTS)
    (native / "native.cpp").write_text('extern "C" int answer() { return 42; }\n')
    project.edit('[[environments]]\nname = "runtime"\n', COMPONENT)
    project.edit('KV = "{namespace}"', 'KV = "{namespace}"\nNATIVE = "{component.native}/lib/libnative.so"')
    project.written()
    return project


@pytest.fixture
def native(tmp_path: Path, native_once: Any) -> Any:
    """A copy of it."""
    shutil.copytree(native_once.folder, tmp_path / "project")
    return type(native_once)(tmp_path / "project", native_once.index, native_once.store, native_once.indexes)


def built(project: Any, opened: OpenedLock | None = None, *, again: bool = False) -> Runtime:
    """Fetched and built."""
    opened = opened or open_lock(project.path)
    fetched = fetch(opened, project.store, indexes=project.indexes, reporter=Silent(), offline=False)
    return build(opened, project.store, fetched, reporter=Silent(), accepted="--yes", again=again, offline=True)


def changed(opened: OpenedLock, **native: Any) -> OpenedLock:
    """The lock with other facts of its component of C++."""
    data = opened.lock.content()
    next(each for each in data["components"] if each["name"] == "native").update(native)
    return OpenedLock(Lock.from_data(data, where="lock"), opened.path)


def component(project: Any) -> Component:
    """The component in the lock on disk."""
    return open_lock(project.path).lock.component("native")


def test_locked_and_built(native: Any) -> None:
    """The lock has the file and the tools; the build reaches its bytes, and verify and the statement say so."""
    locked = component(native)
    assert [each.filename for each in locked.outputs] == ["lib/libnative.so"]
    assert isinstance(locked.outputs[0], FileOutput)
    assert set(locked.tools or ()) >= {"c++", "cmake", "ninja"}
    assert native.lock(accepted=False).reasons == ()
    opened = open_lock(native.path)
    runtime = built(native)
    receipt = runtime.receipt
    assert receipt.level == "bytes-identical"
    assert (runtime.components["native"] / "lib" / "libnative.so").is_file()
    assert [(each.component, each.filename) for each in receipt.outputs][-1] == ("native", "lib/libnative.so")
    checks = {each.id: each for each in verify_receipts(opened, (receipt,))}
    assert checks["build.native.lib/libnative.so"].status == "passed"
    assert checks["build.level"].status == "passed"
    subjects = [each["name"] for each in build_statement(opened.lock, receipt, "0" * 64)["subject"]]
    assert "native/lib/libnative.so" in subjects
    assert BuildReceipt.from_json(receipt.canonical(), where="receipt") == receipt


def test_a_launch_sees_the_folder(native: Any, tmp_path: Path) -> None:
    """`{component.NAME}` is the folder on this machine, and stays a placeholder in what a receipt carries."""
    runtime = built(native)
    made = plan(open_lock(native.path), runtime, tmp_path / "namespace")
    folder = runtime.components["native"]
    assert made.engine.environment(made.launch, values=made.values)["NATIVE"] == f"{folder}/lib/libnative.so"
    assert made.environment["NATIVE"] == "{component.native}/lib/libnative.so"
    assert str(native.store.root) not in json.dumps([made.environment, made.arguments])


def test_rebuilt(native: Any) -> None:
    """`--rebuild` builds it once more elsewhere and finds the same bytes."""
    receipt = built(native, again=True).receipt
    assert (receipt.outputs[-1].level, receipt.outputs[-1].differences) == ("bytes-identical", ())


def test_another_file_is_told(native: Any) -> None:
    """A lock that expects other bytes, or one more file: the level says so, the difference names it, verify fails."""
    opened = open_lock(native.path)
    output = component(native).outputs[0].model_dump(exclude_none=True)
    other = changed(opened, outputs=[{**output, "sha256": "0" * 64, "content_sha256": "1" * 64}])
    receipt = built(native, other).receipt
    assert (receipt.level, receipt.outputs[-1].level) == ("inputs-identical", "inputs-identical")
    assert receipt.outputs[-1].differences[0].where == "lib/libnative.so"
    failed = [each.id for each in verify_receipts(other, (receipt,)) if each.status == "failed"]
    assert "build.native.lib/libnative.so" in failed
    more = changed(opened, outputs=[output, {**output, "filename": "lib/other.so"}])
    receipt = built(native, more).receipt
    assert receipt.level == "none"
    assert receipt.outputs[-1].differences[0].where == "lib/other.so"
    checks = {each.id: each for each in verify_receipts(more, (receipt,))}
    assert checks["build.native.lib/other.so"].status == "failed"
    assert checks["build.level"].got == "none"


def test_a_forged_level_is_found(native: Any) -> None:
    """A receipt that claims more than its digests show is found by verify."""
    opened = open_lock(native.path)
    receipt = built(native).receipt
    output = receipt.outputs[-1].model_copy(update={"sha256": "0" * 64})
    forged = receipt.model_copy(update={"outputs": (*receipt.outputs[:-1], output)})
    failed = [each.id for each in verify_receipts(opened, (forged,)) if each.status == "failed"]
    assert [each for each in failed if each.startswith("build.")] == ["build.native.lib/libnative.so", "build.level"]


def test_other_tools_are_drift(native: Any) -> None:
    """A lock made with another compiler is not built with this one; it is an input that drifted (exit code 65)."""
    opened = open_lock(native.path)
    tools = {**(component(native).tools or {}), "c++": "c++ (Other) 1.0"}
    with pytest.raises(DriftError, match=r"components\.native, key tools: .*expected 'c\+\+ \(Other\) 1\.0'") as caught:
        built(native, changed(opened, tools=tools))
    assert caught.value.exit_code == 65


def test_tools_are_kept_until_an_upgrade(native: Any) -> None:
    """Locking again keeps the tools of the lock, whatever is here; `--upgrade NAME` takes those that are here."""
    text = native.path.read_text()
    native.path.write_text(re.sub(r'"?c\+\+"? = ".*"', '"c++" = "c++ (Other) 1.0"', text))
    assert (component(native).tools or {})["c++"] == "c++ (Other) 1.0"
    assert native.lock(accepted=False).reasons == ()
    with pytest.raises(UsageError, match="building native runs other people's code"):
        native.lock(accepted=False, upgrade=frozenset({"native"}))
    native.written(upgrade=frozenset({"native"}))
    assert native.path.read_text() == text


def test_changed_sources_are_locked_anew(native: Any) -> None:
    """A changed source is named by `--check`, and locking learns the new output."""
    before = component(native).outputs[0]
    native.edit("42", "43", native.folder / "runtime" / "native" / "native.cpp")
    reasons = native.lock(check=True, accepted=False).reasons
    assert "components[native].outputs: to be built again, for an input changed" in reasons
    native.written()
    assert component(native).outputs[0].sha256 != before.sha256


def test_a_wheel_that_names_its_compiler(native: Any) -> None:
    """A wheel whose component names a compiler has the compilers among its tools, and other ones are drift."""
    assert open_lock(native.path).lock.component("kernels").tools is None
    source = 'source = { kind = "local", path = "runtime/kernels" }'
    native.edit(source, f'{source}\nvariables = {{ CXX = "g++" }}')
    tools = native.written().document.component("kernels").tools
    assert tools["c++"].startswith("g++ ")
    built(native)
    data = open_lock(native.path).lock.content()
    next(each for each in data["components"] if each["name"] == "kernels")["tools"] = {**tools, "c++": "g++ 1.0"}
    with pytest.raises(DriftError, match=r"components\.kernels, key tools: .*expected 'g\+\+ 1\.0'"):
        built(native, OpenedLock(Lock.from_data(data, where="lock"), native.path))


def test_architectures_that_nothing_is_built_for(native: Any) -> None:
    """A component that asks for device code and gives none is no lock."""
    native.edit("jobs = 2", 'jobs = 2\narchitectures = ["sm_90"]')
    with pytest.raises(RebuildError, match="build of native holds no device code for sm_90"):
        native.lock()


def test_identity_on_a_real_lock(native: Any) -> None:
    """Jobs change nothing; tools, arguments, variables and outputs are other runtimes."""
    opened = open_lock(native.path)
    name = derive(opened.lock).digest
    jobs = changed(opened, jobs=7)
    assert derive(jobs.lock).digest == name
    assert derive(changed(opened, tools={**(component(native).tools or {}), "ld": "other"}).lock).digest != name
    assert derive(changed(opened, architectures=["sm_90"]).lock).digest != name
    assert derive(changed(opened, variables={"X": "1"}).lock).digest != name
    output = component(native).outputs[0].model_dump(exclude_none=True)
    assert derive(changed(opened, outputs=[{**output, "content_sha256": "1" * 64}]).lock).digest != name
    differences = diff(opened, jobs)
    assert differences.before.digest == differences.after.digest
    assert not differences.rebuild

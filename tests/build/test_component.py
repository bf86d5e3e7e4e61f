"""Building a wheel: the same bytes from any folder and any caller, and clear errors where it cannot be."""

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reproducer.binaries.wheel_content import compare_wheels, read_wheel
from reproducer.build import place
from reproducer.build.component import BuiltWheel, build_component, build_system, prepare_source
from reproducer.documents.base import FileReference
from reproducer.documents.lock import Build, Component
from reproducer.documents.opened import read_reference
from reproducer.documents.sources import LocalSource, SdistSource
from reproducer.errors import DriftError, InvalidDocumentError, RebuildError, UnsafeInputError

EPOCH = 1704067200
PYTHON = Path(sys.executable).resolve()
Sdist = Callable[..., Path]


def refer(folder: Path, name: str) -> FileReference:
    """A reference to a file that is there."""
    data = (folder / name).read_bytes()
    return FileReference(path=name, sha256=hashlib.sha256(data).hexdigest(), size=len(data))


def describe(sdist: Path, *patches: FileReference, **variables: str) -> Component:
    """A component with a source distribution."""
    source = SdistSource(
        project="tiny",
        version="1.0",
        filename=sdist.name,
        sha256=hashlib.sha256(sdist.read_bytes()).hexdigest(),
        size=sdist.stat().st_size,
    )
    return Component(
        name="tiny",
        kind="wheel",
        source=source,
        patches=patches,
        build_environment="build",
        variables=variables,
        outputs=(),
    )


def build(component: Component, work: Path, sdist: Path | None, *, beside: Path | None = None) -> BuiltWheel:
    """Build with the interpreter of these tests."""
    work.mkdir(parents=True)
    return build_component(
        component,
        Build(source_date_epoch=EPOCH),
        python=PYTHON,
        provided={},
        sdist=sdist,
        read=lambda reference: read_reference(beside or work, reference, where="the lock"),
        work=work,
    )


HOOKS = """
import os, sys
def before():
    assert "PYTHONPATH" not in os.environ and "SECRET" not in os.environ
    assert os.environ["SOURCE_DATE_EPOCH"] == "1704067200"
    assert "x" * 3 == os.environ.get("FLAVOUR", "xxx")
def made():
    return repr(sorted({"b", "a", "c", "d"}, key=hash)) + os.environ["TZ"] + os.environ["LANG"]
"""


def test_same_bytes_from_anywhere(tmp_path: Path, sdist: Sdist, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folder, umask, locale, time zone, hash seed and PYTHONPATH of the caller do not reach the wheel."""
    source = sdist(HOOKS)
    first = build(describe(source, FLAVOUR="xxx"), tmp_path / "a", source)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("SECRET", "1")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("PYTHONHASHSEED", "5")
    monkeypatch.setenv("FLAVOUR", "y")
    old = os.umask(0o077)
    try:
        second = build(describe(source, FLAVOUR="xxx"), tmp_path / "longer" / "b", source)
    finally:
        os.umask(old)
    assert compare_wheels(read_wheel(first.path), read_wheel(second.path)) == ("bytes-identical", ())
    assert first.path.read_bytes() == second.path.read_bytes()
    assert not first.path.is_relative_to(tmp_path / "a" / "src")


def test_the_folder_is_the_same_everywhere(tmp_path: Path, sdist: Sdist) -> None:
    """A build sees one path wherever its folder is, so a wheel that names it is the same from two folders."""
    source = sdist("import os\ndef before(): pass\ndef made(): return os.getcwd() + os.environ['HOME']\n")
    one, two = (build(describe(source), tmp_path / name, source) for name in ("a", "longer/b"))
    if one.built_in == tmp_path / "a":
        pytest.skip("this kernel allows no mounts")
    assert one.path.read_bytes() == two.path.read_bytes()
    assert str(one.built_in) in read_wheel(one.path).texts["tiny/made.txt"]
    assert read_wheel(one.path, build_paths=[one.built_in]).texts["tiny/made.txt"].startswith("/penny-build/src/")


def test_what_comes_from_the_folder_is_named(tmp_path: Path, sdist: Sdist, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without mounts a wheel that names its folder is content-identical once that is normalised, and named before."""
    monkeypatch.setattr(place, "_POINTS", ())
    source = sdist("import os\ndef before(): pass\ndef made(): return os.getcwd()\n")
    one, two = (build(describe(source), tmp_path / name, source) for name in ("a", "b"))
    level, differences = compare_wheels(read_wheel(one.path), read_wheel(two.path))
    assert level == "inputs-identical"
    assert [each.where for each in differences] == ["tiny/made.txt"]
    normal = [read_wheel(each.path, build_paths=[each.built_in]) for each in (one, two)]
    assert compare_wheels(*normal)[0] == "content-identical"


def test_patched(tmp_path: Path, sdist: Sdist) -> None:
    """Patches are applied before the build; one that does not apply builds nothing."""
    source = sdist()
    good = "--- a/tiny/data.py\n+++ b/tiny/data.py\n@@ -2 +2 @@\n-two = 2\n+two = 22\n"
    (tmp_path / "1.patch").write_text(good)
    (tmp_path / "2.patch").write_text(good)
    one, two = refer(tmp_path, "1.patch"), refer(tmp_path, "2.patch")
    built = build(describe(source, one), tmp_path / "a", source, beside=tmp_path)
    assert "tiny/data.py" in read_wheel(built.path).members
    assert read_wheel(built.path).texts["tiny/data.py"] == "one = 1\ntwo = 22\nthree = 3\n"
    with pytest.raises(DriftError, match=r"2\.patch: tiny/data\.py, hunk 1: does not apply at line 2"):
        build(describe(source, one, two), tmp_path / "b", source, beside=tmp_path)
    assert not (tmp_path / "b" / "out").exists()
    (tmp_path / "1.patch").write_text(good + "\n")
    with pytest.raises(DriftError, match=r"1\.patch is not the file that the lock pins"):
        build(describe(source, one), tmp_path / "c", source, beside=tmp_path)


def test_patched_sources_look_like_unpacked_ones(tmp_path: Path, sdist: Sdist) -> None:
    """Files that a patch wrote have the modes and times of all others, whatever the caller's umask."""
    source = sdist()
    (tmp_path / "1.patch").write_text("--- /dev/null\n+++ b/new/tool.py\n@@ -0,0 +1 @@\n+X = 1\n")
    component = describe(source, refer(tmp_path, "1.patch"))
    old = os.umask(0o077)
    try:
        tree = prepare_source(
            component,
            sdist=source,
            read=lambda reference: (tmp_path / reference.path).read_bytes(),
            folder=tmp_path / "src",
            epoch=EPOCH,
        )
    finally:
        os.umask(old)
    found = {path.name: path.stat() for path in (tree, *tree.rglob("*"))}
    assert "tool.py" in found
    assert {int(each.st_mtime) for each in found.values()} == {EPOCH}
    assert {each.st_mode & 0o777 for each in found.values()} == {0o644, 0o755}


def test_no_network(tmp_path: Path, sdist: Sdist) -> None:
    """A build that wants the network fails, with its own words in the error."""
    source = sdist(
        "import socket\ndef before(): socket.create_connection(('192.0.2.1', 80), 3)\ndef made(): return ''\n"
    )
    with pytest.raises(RebuildError, match=r"the build of tiny failed.*(unreachable|timed out)"):
        build(describe(source), tmp_path / "a", source)


def test_bad_backends(tmp_path: Path, sdist: Sdist) -> None:
    """No wheel, two wheels, a link, a crash: each is a RebuildError that says so."""
    for index, (before, told) in enumerate(
        [
            ("raise SystemExit(0)", "it gave nothing"),
            ("open(os.path.join(sys.argv[0], '..', '..', 'x'), 'w')", "failed"),
            ("raise RuntimeError('because')", "RuntimeError: because"),
        ]
    ):
        source = sdist(f"import os, sys\ndef before(): {before}\ndef made(): return ''\n")
        with pytest.raises(RebuildError, match=told):
            build(describe(source), tmp_path / str(index), source)
    out = tmp_path / "two" / "out" / "other.whl"
    source = sdist(f"def before(): open({str(out)!r}, 'w')\ndef made(): return ''\n")
    with pytest.raises(RebuildError, match="did not give exactly one wheel"):
        build(describe(source), tmp_path / "two", source)


def test_local_source(tmp_path: Path) -> None:
    """Exactly the listed files are built, each verified; what is not listed does not count."""
    from_files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "back"\nbackend-path = ["."]\n',
        "back.py": "import os, zipfile\ndef build_wheel(out, *_):\n"
        "    with zipfile.ZipFile(os.path.join(out, 'k-1-py3-none-any.whl'), 'w') as w:\n"
        "        w.writestr('files', ' '.join(sorted(os.listdir())))\n    return 'k-1-py3-none-any.whl'\n",
    }
    folder = tmp_path / "kernel"
    folder.mkdir()
    for name, text in {**from_files, "unlisted.py": ""}.items():
        (folder / name).write_text(text)
    files = tuple(refer(folder, name) for name in from_files)
    component = Component(
        name="kernel",
        kind="wheel",
        source=LocalSource(path="kernel", files=files),
        build_environment="build",
        outputs=(),
    )
    built = build(component, tmp_path / "a", None, beside=tmp_path)
    assert read_wheel(built.path).texts["files"] == "back.py pyproject.toml"
    (folder / "back.py").write_text("changed")
    with pytest.raises(DriftError, match=r"kernel/back\.py is not the file"):
        build(component, tmp_path / "b", None, beside=tmp_path)
    twice = component.model_copy(update={"source": LocalSource(path="kernel", files=(files[0], files[0]))})
    with pytest.raises(InvalidDocumentError, match=r"lists 'pyproject\.toml' twice"):
        build(twice, tmp_path / "c", None, beside=tmp_path)


def test_build_requirements(tmp_path: Path) -> None:
    """What the sources require and the build environment lacks is named before anything runs."""
    (tmp_path / "pyproject.toml").write_text(
        "[build-system]\nrequires = ['setuptools>=70', 'Wheel', 'x; sys_platform == \"win32\"']\n"
        "build-backend = 'setuptools.build_meta'\n"
    )
    plan = build_system(tmp_path, {"setuptools": "80.1", "wheel": "0.45"}, where="p")
    assert plan == {"backend": "setuptools.build_meta", "backend_path": []}
    with pytest.raises(RebuildError, match=r"setuptools>=70 is asked for and it has 65\.5; Wheel is not in it"):
        build_system(tmp_path, {"setuptools": "65.5"}, where="p")
    (tmp_path / "pyproject.toml").write_text("[build-system]\nrequires=[]\nbuild-backend='a'\nbackend-path=['../x']\n")
    with pytest.raises(UnsafeInputError, match="backend-path leaves"):
        build_system(tmp_path, {}, where="p")
    for bad in (
        "[build-system",
        "[build-system]\nrequires=['???']\n",
        "[build-system]\nrequires=[]\nbuild-backend='a b'\n",
    ):
        (tmp_path / "pyproject.toml").write_text(bad)
        with pytest.raises(RebuildError, match="p: "):
            build_system(tmp_path, {}, where="p")

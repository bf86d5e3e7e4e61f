"""Two builds of one thing: the level between them, and each difference by name."""

import io
import os
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from reproducer.binaries.wheel_content import compare_wheels, read_wheel
from reproducer.documents.built import is_enough
from reproducer.errors import UnsafeInputError, UsageError
from reproducer.rebuild.compare import compare_artefacts
from tests.binaries.conftest import KERNEL, Compile

WHERE = "const char *where(void) { return __FILE__; }\n"
RECORD = "p-1.dist-info/RECORD"


def wheel(
    folder: Path, members: Mapping[str, bytes], *, time: tuple[int, ...] = (2024, 1, 1, 0, 0, 0), mode: int = 0o644
) -> Path:
    """A wheel of members."""
    folder.mkdir(exist_ok=True)
    path = folder / "p-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as packed:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, time)  # type: ignore[arg-type]  # six numbers
            info.external_attr = mode << 16
            packed.writestr(info, data)
    return path


def two(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders whose paths are equally long."""
    folders = tmp_path / "aaaa", tmp_path / "bbbb"
    for each in folders:
        each.mkdir()
    return folders


def test_a_wheel_whose_library_names_its_folder(gcc: Compile, tmp_path: Path) -> None:
    """A wheel with a library that differs by the folder it was built in is content-identical, and that is named."""
    folders = two(tmp_path)
    libraries = [gcc(WHERE, "-g", folder=each).read_bytes() for each in folders]
    wheels = [wheel(each / "w", {"p/x.so": data}) for each, data in zip(folders, libraries, strict=True)]
    found = compare_artefacts(*wheels, build_paths=folders)
    assert found.level == "content-identical"
    said = {each.where: each for each in found.differences}
    assert (said["p/x.so: build path"].expected, said["p/x.so: build path"].got) == ("build folder 1", "build folder 2")
    assert "p/x.so: build id" in said
    assert ".debug_line_str" in said["p/x.so: debug sections"].reason
    assert compare_artefacts(*wheels).level == "inputs-identical"
    contents = [read_wheel(each, build_paths=folders) for each in wheels]
    assert compare_wheels(*contents)[0] == "content-identical"


def test_record_times_and_modes(tmp_path: Path) -> None:
    """The order of RECORD, times and modes are named and do not count."""
    rows = [b"p/a.py,,\n", b"p/b.py,,\n", RECORD.encode() + b",,\n"]
    members = {"p/a.py": b"A = 1\n", "p/b.py": b"B = 1\n"}
    first = wheel(tmp_path / "1", {**members, RECORD: b"".join(rows)})
    second = wheel(
        tmp_path / "2", {**members, RECORD: b"".join(reversed(rows))}, time=(2025, 1, 1, 0, 0, 0), mode=0o600
    )
    found = compare_artefacts(first, second)
    assert found.level == "content-identical"
    said = {(each.where, each.reason) for each in found.differences}
    assert (RECORD, "the same rows in another order") in said
    assert {("p/a.py", "mode"), ("p/a.py", "time")} <= said


def test_versions_and_members(tmp_path: Path) -> None:
    """A changed line, a missing and an extra member are content."""
    first = wheel(tmp_path / "1", {"p/a.py": b"__version__ = '1.0'\n", "p/gone.py": b""})
    second = wheel(tmp_path / "2", {"p/a.py": b"__version__ = '1.1'\n", "p/more.py": b""})
    found = compare_artefacts(first, second)
    assert found.level == "inputs-identical"
    said = {each.where: each.reason for each in found.differences}
    assert "1.1" in said["p/a.py"]
    assert (said["p/gone.py"], said["p/more.py"]) == ("a missing member", "an extra member")


def test_embedded_version(gcc: Compile) -> None:
    """A version inside a library is named with the section it stands in."""
    source = 'const char version[] = "tool 1.2.3";\n'
    found = compare_artefacts(gcc(source), gcc(source.replace("1.2.3", "1.2.4")))
    assert found.level == "inputs-identical"
    (section,) = [each for each in found.differences if each.where == "the file: section .rodata"]
    assert ("'tool 1.2.3'" in section.reason, "'tool 1.2.4'" in section.reason) == (True, True)


def test_folders(tmp_path: Path) -> None:
    """Paths, bytes, links and modes of a folder; a mode alone is no content, a link to another place is."""
    folders = two(tmp_path)
    for each in folders:
        (each / "a").write_text("x")
        (each / "link").symlink_to(each / "a")
    assert compare_artefacts(*folders, build_paths=folders).level == "bytes-identical"
    assert compare_artefacts(*folders).level == "inputs-identical"
    (folders[1] / "a").chmod(0o755)
    found = compare_artefacts(*folders, build_paths=folders)
    assert found.level == "content-identical"
    assert [(each.where, each.expected, each.got) for each in found.differences] == [("a", "644", "755")]
    (folders[1] / "link").unlink()
    (folders[1] / "link").symlink_to("b")
    found = compare_artefacts(*folders, build_paths=folders)
    assert found.level == "inputs-identical"
    assert found.differences[0].where == "link"


def test_archives(tmp_path: Path) -> None:
    """A tar archive counts by its members, and the times of them are named."""

    def packed(name: str, time: int, data: bytes) -> Path:
        with tarfile.open(tmp_path / name, "w:gz") as target:
            entry = tarfile.TarInfo("top/a.txt")
            entry.size, entry.mtime = len(data), time
            target.addfile(entry, io.BytesIO(data))
        return tmp_path / name

    found = compare_artefacts(packed("1.tar.gz", 0, b"x"), packed("2.tar.gz", 86400, b"x"))
    assert found.level == "content-identical"
    assert (found.differences[0].expected, found.differences[0].got) == ("1970-01-01 00:00:00", "1970-01-02 00:00:00")
    assert compare_artefacts(packed("1.tar.gz", 0, b"x"), packed("3.tar.gz", 0, b"y")).level == "inputs-identical"


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    """A folder and a file, a pipe in a folder, an archive that leaves its folder, a link."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="a folder cannot be compared with a file"):
        compare_artefacts(tmp_path / "folder", tmp_path / "file")
    os.mkfifo(tmp_path / "folder" / "pipe")
    with pytest.raises(UnsafeInputError):
        compare_artefacts(tmp_path / "folder", tmp_path / "folder")
    with tarfile.open(tmp_path / "evil.tar", "w") as target:
        target.addfile(tarfile.TarInfo("../out"))
    with pytest.raises(UnsafeInputError, match="leaves its folder"):
        compare_artefacts(tmp_path / "evil.tar", tmp_path / "evil.tar")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(UnsafeInputError, match="symbolic link"):
        compare_artefacts(tmp_path / "link", tmp_path / "file")
    (tmp_path / "cut.tar.gz").write_bytes(b"\x1f\x8b\x08\0")
    with pytest.raises(UnsafeInputError, match="no archive"):
        compare_artefacts(tmp_path / "cut.tar.gz", tmp_path / "cut.tar.gz")


def test_r14_device_code(nvcc: Compile, tmp_path: Path) -> None:
    """R14: two builds by nvcc in two folders are never the same bytes, and are accepted by their device code."""
    folders = tmp_path / "one", tmp_path / "a folder of another length"
    for each in folders:
        each.mkdir()
    options = ("-shared", "-Xcompiler=-fPIC", "-rdc=true", "-gencode=arch=compute_90,code=[sm_90,compute_90]")
    libraries = [nvcc(*options, name="k.so", folder=each) for each in folders]
    assert libraries[0].read_bytes() != libraries[1].read_bytes()
    found = compare_artefacts(*libraries, build_paths=folders)
    assert found.level == "device-code-identical"
    assert is_enough(found.level)
    names = {each.where for each in found.differences}
    assert {"the file: nvcc's random names", "the file: build id"} <= names
    wheels = [wheel(each / "w", {"p/k.so": (each / "k.so").read_bytes(), "p/a.py": b"x = 1\n"}) for each in folders]
    assert compare_artefacts(*wheels, build_paths=folders).level == "device-code-identical"
    contents = [read_wheel(each, build_paths=folders) for each in wheels]
    assert compare_wheels(*contents)[0] == "device-code-identical"


def test_r14_other_code_beside(nvcc: Compile, tmp_path: Path) -> None:
    """The same kernels do not make good another Python module, another kernel or another list of architectures."""
    folders = two(tmp_path)
    options = ("-shared", "-Xcompiler=-fPIC", "-rdc=true", "-arch=sm_90")
    first = nvcc(*options, name="k.so", folder=folders[0])
    again = nvcc(*options, name="k.so", folder=folders[1])
    kernels = [wheel(each.parent / "w", {"k.so": each.read_bytes()}) for each in (first, again)]
    assert compare_artefacts(*kernels).level == "device-code-identical"
    beside = wheel(tmp_path / "w", {"k.so": again.read_bytes(), "a.py": b"x = 1\n"})
    assert compare_artefacts(kernels[0], beside).level == "inputs-identical"
    other = nvcc(*options, name="k.so", source=KERNEL.replace("+=", "-="))
    assert compare_artefacts(first, other).level == "inputs-identical"
    more = nvcc("-shared", "-Xcompiler=-fPIC", "-gencode=arch=compute_90,code=[sm_90,compute_90]", name="k.so")
    found = compare_artefacts(
        nvcc("-shared", "-Xcompiler=-fPIC", "-gencode=arch=compute_90,code=sm_90", name="k.so"), more
    )
    assert found.level == "inputs-identical"
    said = next(each for each in found.differences if each.where == "the file: architectures")
    assert (said.expected, said.got) == ("sm_90", "compute_90, sm_90")


def test_broken_archives_are_refused_in_one_line(tmp_path: Path) -> None:
    """Links in a circle, packed bytes that are none, a header without end: no fault of penny, and no memory taken."""
    circle = io.BytesIO()
    with tarfile.open(fileobj=circle, mode="w") as packed:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
            entry = tarfile.TarInfo(f"a{int(kind)}")
            entry.type, entry.linkname = kind, f"a{int(tarfile.SYMTYPE)}"
            packed.addfile(entry)
    lzma = io.BytesIO()
    with zipfile.ZipFile(lzma, "w", compression=zipfile.ZIP_LZMA) as zipped:
        zipped.writestr("a", os.urandom(1000))
    broken = bytearray(lzma.getvalue())
    broken[60:500] = bytes(each ^ 0x55 for each in broken[60:500])
    header = tarfile.TarInfo("p")
    header.type, header.size = tarfile.XHDTYPE, 1 << 20
    endless = header.tobuf(format=tarfile.USTAR_FORMAT) + bytes(1 << 20) + bytes(1024)
    for name, data in {"c.tar": circle.getvalue(), "b.whl": bytes(broken), "h.tar": endless}.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(UnsafeInputError) as caught:
            compare_artefacts(tmp_path / name, tmp_path / name)
        assert ("more than 8192 bytes" in str(caught.value)) == (name == "h.tar")

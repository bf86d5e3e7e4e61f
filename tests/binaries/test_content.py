"""What counts of a built file: each thing that is left out, and beside each what is not."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproducer.binaries.content import FileContent, content_of, file_content
from reproducer.binaries.reading import window_of
from reproducer.binaries.volatile import Volatile
from tests.binaries.conftest import KERNEL, Compile

PLAIN = "int f(int x) { return x * 3; }\n"


def same(first: Path, second: Path, *folders: Path) -> tuple[FileContent, FileContent]:
    """Two files that differ in bytes and agree in content."""
    one, two = (file_content(each, build_paths=folders) for each in (first, second))
    assert one.sha256 != two.sha256
    assert one.content_sha256 == two.content_sha256
    assert not one.fault
    return one, two


def test_build_id_debug_comment_and_symbols(gcc: Compile) -> None:
    """Build id, debug sections, the compiler's name and the symbol table do not count; one instruction does."""
    first = gcc(PLAIN, "-Wl,--build-id=0x1111111111111111111111111111111111111111")
    same(first, gcc(PLAIN, "-Wl,--build-id=0x2222222222222222222222222222222222222222"))
    same(first, gcc(PLAIN, "-g", "-Wl,--build-id=0x1111111111111111111111111111111111111111"))
    same(first, gcc(PLAIN, "-s", "-Wl,--build-id=0x1111111111111111111111111111111111111111"))
    silent = first.with_name("silent.so")
    subprocess.run(["objcopy", "-R", ".comment", str(first), str(silent)], check=True)
    same(first, silent)
    other = gcc(PLAIN.replace("3", "5"), "-Wl,--build-id=0x1111111111111111111111111111111111111111")
    assert file_content(other).content_sha256 != file_content(first).content_sha256


def test_build_paths(gcc: Compile, tmp_path: Path) -> None:
    """The folder a library was built in is replaced wherever it stands; without naming it, it counts."""
    source = "const char *where(void) { return __FILE__; }\n"
    one, two = tmp_path / "aaaa", tmp_path / "bbbb"
    for each in (one, two):
        each.mkdir()
    first, second = (gcc(source, "-g", folder=each) for each in (one, two))
    assert str(one).encode() in first.read_bytes()
    same(first, second, one, two)
    assert file_content(first).content_sha256 != file_content(second).content_sha256


def test_objects_count_by_names(gcc: Compile) -> None:
    """In an object a call of another function is another content, though only the symbol table says so."""
    call = "int g(int); int f(int x) { return g(x); }\n"
    same(gcc(call, "-c", name="x.o"), gcc(call, "-c", "-g", name="x.o"))
    one, two = (file_content(gcc(each, "-c", name="x.o")) for each in (call, call.replace("g(", "h(")))
    assert one.content_sha256 != two.content_sha256


def test_archives(gcc: Compile, tmp_path: Path) -> None:
    """Time, owner, mode and symbol table of an archive do not count; its members do, debug sections apart."""
    program = shutil.which("ar")
    if program is None:
        pytest.skip("there is no ar")

    def archive(path: Path, name: str, *flags: str) -> Path:
        subprocess.run([program or "ar", *flags, str(tmp_path / name), str(path)], check=True)
        return tmp_path / name

    name = "a_name_that_is_longer_than_sixteen.o"
    member = gcc(PLAIN, "-c", name=name)
    first = archive(member, "1.a", "rcD")
    same(first, archive(member, "2.a", "rcU"))
    same(first, archive(gcc(PLAIN, "-c", "-g", name=name), "3.a", "rcU"))
    other = archive(gcc(PLAIN.replace("3", "7"), "-c", name=name), "4.a", "rcD")
    assert file_content(other).content_sha256 != file_content(first).content_sha256


def test_nvcc_names(nvcc: Compile, tmp_path: Path) -> None:
    """Process ids and path digests in nvcc's names differ from folder to folder, and do not count."""
    one, two = tmp_path / "one", tmp_path / "a folder of another length"
    for each in (one, two):
        each.mkdir()
    for name, options in {
        "k.so": ("-shared", "-Xcompiler=-fPIC", "-arch=sm_90"),
        "k.cubin": ("-cubin", "-arch=sm_90"),
        "k.fatbin": ("-fatbin", "-arch=sm_120"),
        "k.ptx": ("-ptx", "-arch=compute_90", "-lineinfo"),
    }.items():
        first, second = (nvcc(*options, name=name, folder=each) for each in (one, two))
        assert first.read_bytes() != second.read_bytes(), name
        results = [file_content(each, build_paths=[one, two]) for each in (first, second)]
        assert results[0].device_code_sha256 == results[1].device_code_sha256 is not None, name
        assert results[0].content_sha256 == results[1].content_sha256, name


def test_only_device_code_the_same(nvcc: Compile, tmp_path: Path) -> None:
    """Exported random names reorder a library's symbols, and debug builds hold paths: the device code is the same."""
    one, two = tmp_path / "one", tmp_path / "a folder of another length"
    for each in (one, two):
        each.mkdir()
    for options in (("-rdc=true", "-arch=sm_90"), ("-G", "-g", "-arch=sm_90")):
        results = [
            file_content(
                nvcc("-shared", "-Xcompiler=-fPIC", *options, name="k.so", folder=each), build_paths=[one, two]
            )
            for each in (one, two)
        ]
        assert results[0].device_code_sha256 == results[1].device_code_sha256
        assert results[0].content_sha256 != results[1].content_sha256


def test_device_code_ignores_host_code(nvcc: Compile) -> None:
    """Other host code around the same kernels is another content and the same device code."""
    options = ("-shared", "-Xcompiler=-fPIC", "-arch=sm_90")
    first = file_content(nvcc(*options, name="k.so"))
    second = file_content(nvcc(*options, name="k.so", source=KERNEL + "int more(int x) { return x + 1; }\n"))
    assert first.device_code_sha256 == second.device_code_sha256
    assert first.content_sha256 != second.content_sha256


def test_text_and_other_bytes(tmp_path: Path) -> None:
    """In text only the folder is replaced; bytes that are neither text nor known count as they are."""
    text, data = tmp_path / "a.py", tmp_path / "b.bin"
    text.write_text(f"prefix = '{tmp_path}'  # tmpxft_00000001_00000002\n")
    data.write_bytes(b"\0" + str(tmp_path).encode())
    assert file_content(text, build_paths=[tmp_path]).content_sha256 != file_content(text).content_sha256
    assert file_content(text).content_sha256 == file_content(text).sha256
    assert file_content(data, build_paths=[tmp_path]).content_sha256 == file_content(data).sha256


def test_pieces_make_no_difference() -> None:
    """A name or folder is replaced as one wherever a piece ends and wherever its held-back end begins."""
    volatile = Volatile.of([Path("/tmp/x")])  # noqa: S108  a text
    names = b"tmpxft_00001cd3_00000000-6_k /tmp/x/_GLOBAL__N__6443d1c1_4_k_cu_a3913406"
    whole = b"a" * 20_000 + names + b"b" * 20_000
    expected = volatile.normal(whole)
    assert b"6443d1c1" not in expected
    assert b"00001cd3" not in expected
    assert b"/penny-build/" in expected
    for begin in (20_000, 20_000 + 8192):
        for cut in range(begin, begin + len(names)):
            assert b"".join(volatile.stream([whole[:cut], whole[cut:]])) == expected


@given(st.lists(st.binary(max_size=40), max_size=6), st.integers(0, 400))
def test_any_pieces(parts: list[bytes], cut: int) -> None:
    """The same for any bytes between names."""
    volatile = Volatile()
    whole = b"_INTERNAL_6443d1c1_4_k_cu_a3913406".join(parts)
    assert b"".join(volatile.stream([whole[:cut], whole[cut:]])) == volatile.normal(whole)


def test_root_is_no_build_folder(tmp_path: Path) -> None:
    """A build folder `/` or `.` would match every path and is not looked for."""
    (tmp_path / "a").write_text("/usr/lib ./x\n")
    assert (
        file_content(tmp_path / "a", build_paths=[Path("/"), Path()]).content_sha256
        == file_content(tmp_path / "a").sha256
    )


@pytest.mark.parametrize(
    "text",
    [
        b".version 8.0 \n" + b"\n" * 65_000 + b"x",
        b".version 8.0 \n.target sm_90\n" + b".section .debug_a{\n" * 15_000,
    ],
)
def test_ptx_is_read_in_the_time_that_its_bytes_take(text: bytes) -> None:
    """Text that nearly matches what is looked for, many thousand times over, is looked at once."""
    from time import process_time

    start = process_time()
    content_of(window_of(text))
    assert process_time() - start < 2

"""Architecture lists of device code: what nvcc was asked for is what is read back."""

import contextlib
import os
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reproducer.binaries.content import content_of, file_content
from reproducer.binaries.fatbin import architectures_of, entries
from reproducer.binaries.reading import MalformedError, window_of
from reproducer.errors import UnsafeInputError
from tests.binaries.conftest import KERNEL, Compile

LISTS: dict[str, Sequence[str]] = {
    "one": ("sm_90",),
    "specific": ("sm_90a",),
    "several": ("compute_120", "sm_75", "sm_80", "sm_90", "sm_90a", "sm_100", "sm_120"),
    "families": ("compute_100f", "sm_100f", "sm_103a", "sm_121a"),
    "text only": ("compute_90",),
}


def options(architectures: Sequence[str]) -> list[str]:
    """What nvcc must be told for a list."""
    return [f"-gencode=arch=compute_{each.partition('_')[2]},code={each}" for each in architectures]


def entry(kind: int, number: int, payload: bytes, *, flags: int = 0, compressed: int = 0, size: int = 0) -> bytes:
    """One entry as the module's documentation has it."""
    return (
        struct.pack("<HHIQIIIIQQQQ", kind, 257, 64, len(payload), compressed, 0, 0, number, 0, flags, 0, size) + payload
    )


def fatbin(*parts: bytes) -> bytes:
    """A fat binary of entries."""
    body = b"".join(parts)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


@pytest.mark.parametrize("name", LISTS)
def test_lists(nvcc: Compile, name: str) -> None:
    """A fat binary holds exactly the architectures it was compiled for, compressed or not."""
    wanted = tuple(LISTS[name])
    assert architectures_of(nvcc("-fatbin", *options(wanted), name="k.fatbin")) == wanted
    packed = nvcc("-fatbin", "-Xfatbin", "-compress-all", *options(wanted), name="k.fatbin")
    assert architectures_of(packed) == wanted


def test_shared_library(nvcc: Compile) -> None:
    """The list of a shared library is that of all its fat binaries; relocatable device code counts too."""
    wanted = ("compute_90", "sm_90", "sm_120")
    assert architectures_of(nvcc("-shared", "-Xcompiler=-fPIC", *options(wanted), name="k.so")) == wanted
    objects = nvcc("-c", "-rdc=true", *options([*wanted, "lto_90"]), name="k.o")
    assert architectures_of(objects) == ("compute_90", "lto_90", "sm_90", "sm_120")


@pytest.mark.parametrize("architecture", ["sm_75", "sm_90", "sm_90a", "sm_100f", "sm_120a"])
def test_cubin_and_ptx(nvcc: Compile, architecture: str) -> None:
    """A cubin and a PTX file alone say what they are for, suffix and all."""
    assert architectures_of(nvcc("-cubin", f"-arch={architecture}", name="k.cubin")) == (architecture,)
    virtual = architecture.replace("sm", "compute")
    assert architectures_of(nvcc("-ptx", f"-arch={virtual}", name="k.ptx")) == (virtual,)


def test_archive(nvcc: Compile) -> None:
    """A static library holds the device code of its objects."""
    assert architectures_of(nvcc("-lib", *options(["sm_90"]), name="k.a")) == ("sm_90",)


def test_files_without_device_code(tmp_path: Path) -> None:
    """Other files hold none: that is None, not an empty list."""
    (tmp_path / "k.cu").write_text(KERNEL)
    (tmp_path / "empty").write_bytes(b"")
    assert architectures_of(tmp_path / "k.cu") is None
    assert architectures_of(tmp_path / "empty") is None


@pytest.mark.parametrize("mode", ["speed", "balance", "size"])
def test_compression_does_not_count(nvcc: Compile, mode: str) -> None:
    """The same code in a fat binary is the same however it is compressed: not at all, LZ4, zstd."""
    wanted = options(["sm_90", "compute_90"])
    plain = file_content(nvcc("-fatbin", "--compress-mode=none", *wanted, name="k.fatbin"))
    packed = file_content(
        nvcc("-fatbin", f"--compress-mode={mode}", "-Xfatbin=-compress-all", *wanted, name="k.fatbin")
    )
    assert packed.device_code_sha256 == plain.device_code_sha256
    assert packed.content_sha256 == plain.content_sha256
    assert packed.sha256 != plain.sha256


def test_another_kernel_is_other_code(nvcc: Compile) -> None:
    """One changed constant, instruction or architecture is another device code."""
    first = file_content(nvcc("-fatbin", *options(["sm_90", "compute_90"]), name="k.fatbin"))
    for source in (KERNEL.replace("3, 4", "3, 5"), KERNEL.replace("+=", "-=")):
        for wanted in ("sm_90", "compute_90"):
            one = file_content(nvcc("-fatbin", *options([wanted]), name="k.fatbin"))
            other = file_content(nvcc("-fatbin", *options([wanted]), name="k.fatbin", source=source))
            assert one.device_code_sha256 != other.device_code_sha256
    fewer = file_content(nvcc("-fatbin", *options(["sm_90"]), name="k.fatbin"))
    assert fewer.device_code_sha256 != first.device_code_sha256


def test_lies(tmp_path: Path) -> None:
    """Sizes beyond the end, no magic, a header too short, too much after decompression."""
    good = fatbin(entry(2, 90, b"\0" * 8))
    assert [each.architecture for each in entries(window_of(good))] == ["sm_90"]
    for bad in (
        good[:-1],
        good + b"more",
        good[:8] + struct.pack("<Q", 1 << 60) + good[16:],
        good[:20] + struct.pack("<I", 3) + good[24:],
        good[:24] + struct.pack("<Q", 1 << 60) + good[32:],
    ):
        (tmp_path / "bad").write_bytes(bad)
        with pytest.raises(UnsafeInputError):
            architectures_of(tmp_path / "bad")
        assert file_content(tmp_path / "bad").fault
    bomb = fatbin(entry(2, 90, b"x" * 8, flags=0x8000, compressed=8, size=1 << 40))
    (found,) = entries(window_of(bomb))
    with pytest.raises(MalformedError, match="after decompression"):
        found.plain()
    assert content_of(window_of(bomb)).architectures == ("sm_90",)


def test_zeros_between(tmp_path: Path) -> None:
    """Fat binaries lie at multiples of 8 with zeros between, however many."""
    one, two = fatbin(entry(2, 90, b"\0" * 8)), fatbin(entry(1, 120, b"\0" * 8))
    data = one + bytes((3 << 20) + 8) + two + bytes(16)
    (tmp_path / "k.fatbin").write_bytes(data)
    assert architectures_of(tmp_path / "k.fatbin") == ("compute_120", "sm_90")


@settings(max_examples=300)
@given(st.data())
def test_any_bytes_changed(data: st.DataObject) -> None:
    """Whatever headers say, reading ends, and lies are MalformedError."""
    numbers = st.integers(0, 2**32 - 1)
    parts = [
        entry(
            draw[0] & 15, draw[1] % 200, os.urandom(draw[2] % 64), flags=draw[3], compressed=draw[4] % 64, size=draw[5]
        )
        for draw in data.draw(st.lists(st.tuples(*[numbers] * 6), max_size=4))
    ]
    content = bytearray(fatbin(*parts))
    for place, value in data.draw(
        st.lists(st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255)), max_size=3)
    ):
        content[place] = value
    with contextlib.suppress(MalformedError):
        list(entries(window_of(bytes(content))))
    assert content_of(window_of(bytes(content))).size == len(content)

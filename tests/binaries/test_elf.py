"""ELF files as readelf sees them, and as nobody should have written them."""

import contextlib
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproducer.binaries.content import content_of
from reproducer.binaries.elf import Elf, read_elf
from reproducer.binaries.reading import MalformedError, opened, window_of
from reproducer.errors import NotCheckedError, UnsafeInputError
from tests.binaries.conftest import Compile

SOURCE = "#include <math.h>\ndouble f(double x) { return sin(x); }\n"


def elf_of(path: Path) -> Elf:
    """A file's sections, with everything that is read on demand read."""
    with opened(path) as window:
        elf = read_elf(window)
        assert (elf.build_id, elf.comment, elf.dynamic, elf.debug_sections) is not None
        return elf


def everything(data: bytes) -> None:
    """Read whatever there is to be read."""
    elf = read_elf(window_of(data))
    _ = (elf.build_id, elf.comment, elf.dynamic, elf.debug_sections)
    for section in elf.sections:
        if section.kind == 2:  # SYMTAB
            elf.symbols(section)
        if section.kind == 4:  # RELA
            list(elf.relocations(section))


@pytest.fixture(scope="module")
def library(gcc: Compile) -> Path:
    """A shared library with everything in it."""
    options = ("-g", "-Wl,--build-id", "-Wl,-soname,libf.so.1", "-Wl,-rpath,/opt/a:$ORIGIN/b", "-Wl,--no-as-needed")
    return gcc(SOURCE, *options, "-lm")


def test_what_readelf_says(library: Path) -> None:
    """Sections, build id, compiler, needed libraries and search path are those that readelf prints."""
    program = shutil.which("readelf")
    if program is None:
        pytest.skip("there is no readelf")
    text = subprocess.run(
        [program, "-SWnd", "-p", ".comment", str(library)], capture_output=True, text=True, check=True
    ).stdout
    elf = elf_of(library)
    named = re.findall(r"^  \[ *\d+\] (\.\S+) ", text, re.MULTILINE)
    assert [each.name for each in elf.sections[1:]] == named
    assert [elf.build_id] == re.findall(r"Build ID: ([0-9a-f]+)", text)
    assert elf.dynamic is not None
    assert elf.dynamic.needed == tuple(re.findall(r"Shared library: \[(.*)\]", text))
    assert "libm.so.6" in elf.dynamic.needed
    assert elf.dynamic.soname == "libf.so.1"
    assert elf.dynamic.runpath == ("/opt/a", "$ORIGIN/b")
    assert all(each in text for each in elf.comment)
    assert elf.comment
    assert ".debug_info" in elf.debug_sections


def test_relocations_by_name(gcc: Compile) -> None:
    """Relocations of an object name their symbols, as readelf does."""
    path = gcc(SOURCE, "-c", "-fno-builtin", name="x.o")
    with opened(path) as window:
        elf = read_elf(window)
        moved = [each for section in elf.named(".rela.text") for each in elf.relocations(section)]
    assert [each.symbol for each in moved] == ["sin"]


def test_every_truncation(library: Path) -> None:
    """A file cut anywhere is malformed, or one that says less; it counts as it is and never crashes."""
    data = library.read_bytes()
    for end in [*range(200), *range(200, len(data), 997)]:
        try:
            everything(data[:end])
        except MalformedError:
            assert content_of(window_of(data[:end])).size == end


@given(st.data())
def test_any_bytes_changed(library: Path, data: st.DataObject) -> None:
    """Changed headers lie, and every lie is MalformedError."""
    content = bytearray(library.read_bytes())
    (table,) = struct.unpack_from("<Q", content, 40)
    places = st.one_of(st.integers(0, 63), st.integers(table, len(content) - 1), st.integers(0, len(content) - 1))
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=12)):
        content[place] = value
    with contextlib.suppress(MalformedError):
        everything(bytes(content))
    content_of(window_of(bytes(content)))


@given(st.binary(max_size=400))
def test_any_bytes_after_the_magic(tail: bytes) -> None:
    """Arbitrary bytes behind a magic are malformed or harmless."""
    data = b"\x7fELF\x02\x01\x01" + tail
    with contextlib.suppress(MalformedError):
        everything(data)
    assert content_of(window_of(data)).size == len(data)


def test_overlapping_sections_are_refused() -> None:
    """A thousand sections that all span the file would be read a thousand times."""
    count = 1000
    header = struct.pack(
        "<4sBBBBB7xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 0, 3, 62, 1, 0, 0, 64, 0, 64, 0, 0, 64, count, 0
    )
    size = 64 + 64 * count
    data = header + struct.pack("<IIQQQQIIQQ", 0, 1, 0, 0, 0, size, 0, 0, 0, 0) * count
    with pytest.raises(MalformedError, match="overlap"):
        read_elf(window_of(data))


def test_only_regular_files(tmp_path: Path, library: Path) -> None:
    """Links, folders and pipes are refused, and a file that is not there is not checked."""
    import os

    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(library)
    for name in ("pipe", "link", "."):
        with pytest.raises(UnsafeInputError), opened(tmp_path / name):
            pass
    with pytest.raises(NotCheckedError), opened(tmp_path / "absent"):
        pass

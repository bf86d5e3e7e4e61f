"""NVIDIA device code: fat binaries in host files, `.fatbin`, `.cubin` and PTX text.

NVIDIA does not document the format. Facts by experiment with nvcc 13.0.88 on lists of architectures from 75 to 121
(each list was compared with what `cuobjdump -lelf -lptx` 13.5 says), with libcurand of CUDA 12 and with `nixl_ep` 1.5:

* A host file holds fat binaries in the section `.nv_fatbin`, relocatable device code (`-rdc=true`) in
  `__nv_relfatbin`: one after another, aligned to 8 bytes with zeros between.
* Fat binary: magic 0xba55ed50, version 1, header size 16 (u32, u16, u16), size of what follows (u64).
* Entry: kind (u16: 1 PTX, 2 ELF, 8 LTO-IR), version (u16), header size (u32), payload size with padding (u64), payload
  size where compressed (u32 at 16), architecture as a decimal number (u32 at 28), flags (u64 at 40), size after
  decompression (u64 at 56). Header and payload follow each other without gaps.
* Flags: 0x2000 the payload is an LZ4 block, 0x8000 a zstd frame; 0x100000 the architecture has the suffix `a`,
  0x200000 the suffix `f`. These stand in the header of compressed entries too.
* A cubin's ELF flags name the architecture: bits 8 to 15 where the ABI version is 8 or more (CUDA 13, and Blackwell
  before), bits 0 to 7 where it is 7. The suffix is not among them; the note `.note.nv.tkinfo` holds ptxas's own
  arguments (`-arch sm_90a`), which cubins of CUDA 12 lack.
* PTX is text: `.version`, then `.target sm_90a`.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reproducer.binaries.archive import archive_members, is_archive
from reproducer.binaries.decompress import LARGEST, lz4_block, zstd_frame
from reproducer.binaries.elf import CUDA, Elf, is_elf, read_elf
from reproducer.binaries.reading import PIECE, MalformedError, Window, opened, window_of
from reproducer.errors import UnsafeInputError

SECTIONS = (".nv_fatbin", "__nv_relfatbin")
PTX, ELF, LTO = 1, 2, 8
MAGIC = struct.pack("<I", 0xBA55ED50)
_HEADER = 16
_ENTRY = "<HHIQIIIIQQQQ"
_SMALLEST_ENTRY = 64
_LZ4, _ZSTD = 0x2000, 0x8000
_SPECIFIC, _FAMILY = 0x100000, 0x200000
_MOST_ENTRIES = 1 << 20
_WIDE_ABI = 8
_LARGEST_RATIO = 256
_LARGEST_NOTE = 1 << 16
_NAMES = {PTX: "compute", ELF: "sm", LTO: "lto"}
_TARGET = re.compile(rb"^[ \t]*\.target[ \t]+sm_([0-9]{2,3}[af]?)\b", re.MULTILINE)
_PTX = re.compile(rb"\A\s*(?://[^\n]*\n\s*)*\.version\s+[0-9]+\.[0-9]+\s")
_ARGUMENT = re.compile(rb"-arch[ =]sm_([0-9]{2,3}[af]?)\b")
_ARCHITECTURE = re.compile(r"([a-z]+)_([0-9]+)([a-z]?)")


@dataclass(frozen=True)
class Entry:
    """One piece of device code.

    Attributes:
        kind: PTX, ELF, LTO, or a number that nobody knows yet.
        architecture: such as `sm_90a`, `compute_120`, `lto_90`.
        payload: its bytes as they lie there.
        compression: `lz4`, `zstd` or empty.
        size: its bytes after decompression.
    """

    kind: int
    architecture: str
    payload: Window
    compression: str
    size: int

    def plain(self) -> Window:
        """The payload after decompression.

        Raises:
            MalformedError: it is damaged, larger than 1 GiB, or 256 times as large as what is there.
        """
        if not self.compression:
            return self.payload
        if self.size > min(LARGEST, _LARGEST_RATIO * self.payload.size):
            raise MalformedError(f"names {self.size} bytes after decompression")
        data = self.payload.read(0, self.payload.size)
        return window_of(lz4_block(data, self.size) if self.compression == "lz4" else zstd_frame(data, self.size))


def is_fatbin(window: Window) -> bool:
    """Whether the bytes begin as a fat binary does."""
    return window.size >= _HEADER and window.read(0, len(MAGIC)) == MAGIC


def is_ptx(window: Window) -> bool:
    """Whether the bytes are PTX text."""
    return _PTX.match(window.read(0, min(window.size, 4096))) is not None


def entries(window: Window) -> Iterator[Entry]:
    """The entries of every fat binary in a stretch of bytes, in order.

    Raises:
        MalformedError: the headers lie.
    """
    position, count = 0, 0
    while (position := _skip_zeros(window, position)) < window.size:
        magic, version, header, size = window.unpack("<4sHHQ", position)
        if magic != MAGIC or version != 1 or header < _HEADER:
            raise MalformedError(f"has no fat binary at {position}")
        body = window.inside(position + header, size)
        position += header + size
        offset = 0
        while offset < body.size:
            entry, length = _entry(body, offset)
            offset += length
            count += 1
            if count > _MOST_ENTRIES:
                raise MalformedError(f"has more than {_MOST_ENTRIES} entries")
            yield entry


def _entry(body: Window, offset: int) -> tuple[Entry, int]:
    fields = body.unpack(_ENTRY, offset)
    kind, _version, header, padded, compressed = fields[:5]
    number, flags, size = fields[7], fields[9], fields[11]
    if header < _SMALLEST_ENTRY:
        raise MalformedError(f"has an entry header of {header} bytes")
    payload = body.inside(offset + header, padded)
    compression = "lz4" if flags & _LZ4 else "zstd" if flags & _ZSTD else ""
    if compression:
        payload = payload.inside(0, compressed)
    suffix = "a" if flags & _SPECIFIC else "f" if flags & _FAMILY else ""
    name = _NAMES.get(kind, f"kind{kind}")
    return Entry(
        kind, f"{name}_{number}{suffix}", payload, compression, size if compression else padded
    ), header + padded


def _skip_zeros(window: Window, position: int) -> int:
    """The first 8-byte boundary from here on that does not begin with zeros alone."""
    position = (position + 7) // 8 * 8
    while position < window.size:
        piece = window.read(position, min(PIECE, window.size - position))
        left = piece.lstrip(b"\0")
        if left:
            return position + (len(piece) - len(left)) // 8 * 8
        position += len(piece)
    return window.size


def cubin_architecture(elf: Elf) -> str:
    """What a cubin is built for, such as `sm_90a`; by number alone where its compiler left no note."""
    number = elf.flags >> 8 & 0xFF if elf.abi_version >= _WIDE_ABI else elf.flags & 0xFF
    for note in elf.named(".note.nv.tkinfo"):
        if note.content.size <= _LARGEST_NOTE:
            match = _ARGUMENT.search(note.content.read(0, note.content.size))
            if match and match[1].rstrip(b"af") == str(number).encode():
                return f"sm_{match[1].decode()}"
    return f"sm_{number}"


def device_code(window: Window) -> Iterator[Entry] | None:
    """The device code of a host file, archive of objects, fat binary, cubin or PTX text; None of anything else.

    A host file that could hold some and holds none is None as well.

    Raises:
        MalformedError: now or while iterating, where headers lie.
    """
    if is_elf(window):
        elf = read_elf(window)
        if elf.machine == CUDA:
            return iter([Entry(ELF, cubin_architecture(elf), window, "", window.size)])
        sections = [each.content for name in SECTIONS for each in elf.named(name) if each.content.size]
        return _of_all(sections) if sections else None
    if is_fatbin(window):
        return entries(window)
    if is_archive(window):
        return _of_archive(window)
    if is_ptx(window):
        match = _TARGET.search(window.read(0, min(window.size, 1 << 16)))
        if match is None:
            raise MalformedError("is PTX without a target")
        return iter([Entry(PTX, f"compute_{match[1].decode()}", window, "", window.size)])
    return None


def _of_all(sections: list[Window]) -> Iterator[Entry]:
    for section in sections:
        yield from entries(section)


def _of_archive(window: Window) -> Iterator[Entry] | None:
    found = [
        code
        for member in archive_members(window)
        if is_elf(member.content) and (code := device_code(member.content)) is not None
    ]
    return (entry for code in found for entry in code) if found else None


def in_order(architectures: set[str]) -> tuple[str, ...]:
    """Architectures by kind, number and suffix."""

    def key(name: str) -> tuple[str, int, str]:
        match = _ARCHITECTURE.fullmatch(name)
        return (match[1], int(match[2]), match[3]) if match else (name, 0, "")

    return tuple(sorted(architectures, key=key))


def architectures_of(path: Path) -> tuple[str, ...] | None:
    """What the device code in a file is built for, such as `("compute_120", "sm_90a", "sm_120")`.

    Returns:
        None for a file without device code.

    Raises:
        UnsafeInputError: its headers lie, or it is no regular file.
        NotCheckedError: it cannot be read.
    """
    with opened(path) as window:
        try:
            found = device_code(window)
            return None if found is None else in_order({each.architecture for each in found})
        except MalformedError as error:
            raise UnsafeInputError("holds device code that cannot be read", where=str(path), why=str(error)) from error

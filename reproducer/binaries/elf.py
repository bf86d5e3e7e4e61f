"""64-bit little-endian ELF files: header, sections, build id, compiler comment, what is needed at run time.

Layout: System V gABI, chapters 4 and 5 (`Elf64_Ehdr`, `Elf64_Shdr`, `Elf64_Sym`, `Elf64_Rela`, `Elf64_Dyn`,
extended section numbering in section 0); each fact was compared with what `readelf` of binutils 2.40 prints for files
that gcc 12 and nvcc 13.0 wrote. A cubin is such a file too: machine 190 (`EM_CUDA`).
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from reproducer.binaries.reading import MalformedError, Window

MAGIC = b"\x7fELF"
CUDA = 190
PROGBITS, SYMTAB, STRTAB, RELA, DYNAMIC, NOTE, NOBITS, REL = 1, 2, 3, 4, 6, 7, 8, 9
_HEADER = "<4sBBBBB7xHHIQQQIHHHHHH"
_SECTION = "<IIQQQQIIQQ"
_SYMBOL = "<IBBHQQ"
_RELA = "<QQq"
_DYN = "<qQ"
_EXTENDED = 0xFFFF
_MOST_SECTIONS = 1 << 20
_LARGEST_TABLE = 256 << 20
_LARGEST_NAME = 1 << 16
_GNU_BUILD_ID = 3
_NEEDED, _SONAME, _RPATH, _RUNPATH = 1, 14, 15, 29


@dataclass(frozen=True)
class Section:
    """One section.

    Attributes:
        index: its number.
        content: its bytes; empty where it has none in the file (`NOBITS`).
        size: its size in memory.
    """

    index: int
    name: str
    kind: int
    flags: int
    address: int
    size: int
    link: int
    info: int
    content: Window


@dataclass(frozen=True)
class Symbol:
    """One symbol."""

    name: str
    info: int
    section: int
    value: int
    size: int


@dataclass(frozen=True)
class Relocation:
    """One relocation: where, which kind, against which symbol, plus what."""

    offset: int
    kind: int
    symbol: str
    addend: int


@dataclass(frozen=True)
class Dynamic:
    """What the dynamic linker is told by name."""

    soname: str | None
    needed: tuple[str, ...]
    runpath: tuple[str, ...]


@dataclass(frozen=True)
class Elf:
    """An ELF file."""

    kind: int
    machine: int
    flags: int
    os_abi: int
    abi_version: int
    sections: tuple[Section, ...]

    def named(self, name: str) -> Iterator[Section]:
        """The sections of that name."""
        return (each for each in self.sections if each.name == name)

    @cached_property
    def build_id(self) -> str | None:
        """The GNU build id in hex; None where there is none."""
        for section in self.sections:
            if section.kind == NOTE:
                for owner, kind, text in _notes(section):
                    if owner == b"GNU" and kind == _GNU_BUILD_ID:
                        return text.hex()
        return None

    @cached_property
    def comment(self) -> tuple[str, ...]:
        """What compilers wrote about themselves."""
        found = [_table(section).read(0, section.content.size) for section in self.named(".comment")]
        texts = [each.decode("utf-8", "backslashreplace") for data in found for each in data.split(b"\0") if each]
        return tuple(texts)

    @cached_property
    def debug_sections(self) -> tuple[str, ...]:
        """Names of the sections that only a debugger reads."""
        return tuple(each.name for each in self.sections if is_debug(each.name))

    @cached_property
    def dynamic(self) -> Dynamic | None:
        """What the dynamic section says; None where there is none."""
        for section in self.sections:
            if section.kind == DYNAMIC:
                return self._dynamic(section)
        return None

    def _dynamic(self, section: Section) -> Dynamic:
        strings = self._linked(section)
        found: dict[int, list[str]] = {}
        for tag, value in _records(section, _DYN):
            if tag == 0:
                break
            if tag in (_NEEDED, _SONAME, _RPATH, _RUNPATH):
                found.setdefault(tag, []).append(_text(strings, value))
        paths = [each for text in found.get(_RPATH, []) + found.get(_RUNPATH, []) for each in text.split(":")]
        return Dynamic(next(iter(found.get(_SONAME, [])), None), tuple(found.get(_NEEDED, [])), tuple(paths))

    def symbols(self, table: Section) -> tuple[Symbol, ...]:
        """The symbols of a symbol table, in its order; raises MalformedError where it is damaged."""
        known = self._symbols.get(table.index)
        if known is None:
            strings = self._linked(table)
            known = tuple(
                Symbol(_text(strings, name), info, section, value, size)
                for name, info, _other, section, value, size in _records(table, _SYMBOL)
            )
            self._symbols[table.index] = known
        return known

    @cached_property
    def _symbols(self) -> dict[int, tuple[Symbol, ...]]:
        """Tables that were read once; every relocation section asks for the same one."""
        return {}

    def relocations(self, section: Section) -> Iterator[Relocation]:
        """The relocations with addend of a section; a symbol that has no name goes by that of its section."""
        if not 0 <= section.link < len(self.sections):
            raise MalformedError(f"section {section.index} names a symbol table that does not exist")
        symbols = self.symbols(self.sections[section.link])
        for offset, info, addend in _records(section, _RELA):
            number = info >> 32
            if number >= len(symbols):
                raise MalformedError(f"section {section.index} names symbol {number} of {len(symbols)}")
            symbol = symbols[number]
            name = symbol.name
            if not name and 0 < symbol.section < len(self.sections):
                name = self.sections[symbol.section].name
            yield Relocation(offset, info & 0xFFFFFFFF, name, addend)

    def _linked(self, section: Section) -> bytes:
        if not 0 <= section.link < len(self.sections):
            raise MalformedError(f"section {section.index} names a string table that does not exist")
        strings = self.sections[section.link]
        return _table(strings).read(0, strings.content.size)


def is_elf(window: Window) -> bool:
    """Whether the bytes begin as an ELF file does."""
    return window.size >= len(MAGIC) and window.read(0, len(MAGIC)) == MAGIC


def is_debug(name: str) -> bool:
    """Whether a section of that name is only read by a debugger; `.nv.merc.` is NVIDIA's second copy of a section."""
    plain = name.removeprefix(".nv.merc")
    for prefix in (".rela", ".rel"):
        plain = plain.removeprefix(prefix)
    return plain.startswith(
        (".debug_", ".zdebug_", ".nv_debug", ".stab", ".gdb_index", ".gnu_debug", ".gnu_debugaltlink")
    )


def read_elf(window: Window) -> Elf:
    """The header and the section table.

    Raises:
        MalformedError: not a 64-bit little-endian ELF file, or one whose headers point outside of it.
    """
    header = window.unpack(_HEADER, 0)
    magic, width, order, version, os_abi, abi_version = header[:6]
    kind, machine, _version, _entry, _phoff, offset, flags = header[6:13]
    entry_size, count, names = header[16:19]
    if magic != MAGIC or (width, order, version) != (2, 1, 1):
        raise MalformedError("is no 64-bit little-endian ELF file")
    if not offset:
        return Elf(kind, machine, flags, os_abi, abi_version, ())
    if entry_size != struct.calcsize(_SECTION):
        raise MalformedError(f"has section headers of {entry_size} bytes")
    first = window.unpack(_SECTION, offset)
    count = count or first[5]
    names = first[6] if names == _EXTENDED else names
    if count > _MOST_SECTIONS:
        raise MalformedError(f"has {count} sections")
    table = window.read(offset, count * entry_size)
    raw = list(struct.iter_unpack(_SECTION, table))
    if names >= count:
        raise MalformedError(f"names section {names} of {count} for its names")
    strings = b""
    if names:
        where, size = raw[names][4], raw[names][5]
        _refuse_endless(size)
        strings = window.read(where, size)
    sections = []
    total = spelt = 0
    for index, (name, sort, marks, address, start, size, link, info, _align, _entry_size) in enumerate(raw):
        empty = sort in (0, NOBITS)
        content = window.inside(0, 0) if empty else window.inside(start, size)
        total += content.size
        # Sections of a real file lie beside each other; a million that overlap would be read a million times.
        if total > 2 * window.size:
            raise MalformedError("has sections that overlap")
        text = _text(strings, name) if strings else ""
        spelt += len(text)
        _refuse_endless(spelt)
        sections.append(Section(index, text, sort, marks, address, size, link, info, content))
    return Elf(kind, machine, flags, os_abi, abi_version, tuple(sections))


def _refuse_endless(size: int) -> None:
    if size > _LARGEST_TABLE:
        raise MalformedError("has section names without end")


def _text(strings: bytes, offset: int) -> str:
    """The text at an offset of a string table."""
    if not 0 <= offset < len(strings):
        if offset == 0:
            return ""
        raise MalformedError(f"names text {offset} of {len(strings)}")
    end = strings.find(b"\0", offset, offset + _LARGEST_NAME)
    if end < 0:
        raise MalformedError(f"has a text at {offset} that does not end")
    return strings[offset:end].decode("utf-8", "backslashreplace")


def _table(section: Section) -> Window:
    """A section's bytes, where they are few enough to be read whole."""
    if section.content.size > _LARGEST_TABLE:
        raise MalformedError(f"section {section.index} is larger than any table")
    return section.content


def _records(section: Section, layout: str) -> Iterator[tuple[int, ...]]:
    size = struct.calcsize(layout)
    data = _table(section).read(0, section.content.size)
    if len(data) % size:
        raise MalformedError(f"section {section.index} is no whole number of records")
    return struct.iter_unpack(layout, data)


def _notes(section: Section) -> Iterator[tuple[bytes, int, bytes]]:
    """Owner, type and text of each note."""
    data = _table(section).read(0, section.content.size)
    offset = 0
    while offset + 12 <= len(data):
        owner_size, size, kind = struct.unpack_from("<III", data, offset)
        owner = offset + 12
        text = owner + (owner_size + 3) // 4 * 4
        offset = text + (size + 3) // 4 * 4
        if text + size > len(data):
            raise MalformedError(f"section {section.index} holds a note that is cut short")
        yield data[owner : owner + owner_size].rstrip(b"\0"), kind, data[text : text + size]

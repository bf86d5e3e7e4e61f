"""What a built file holds, apart from when and where it was built.

The content digest of an ELF file is one over its sections, each by name, type, flags and bytes. It leaves out

* the build id (`.note.gnu.build-id`): a digest over everything else that is left out here too;
* debug sections, `.gnu_debuglink` and, of linked files, `.symtab` and `.strtab`: what `strip` removes;
* `.comment` and `.note.nv.tkinfo`: what the compiler calls itself, which the lock records as its toolchain;
* `__nv_module_id` and the digits of nvcc's random names, wherever they stand;
* the folders it was built in, wherever they stand: each is replaced by one text. Where two folders differ in length,
  what lies behind moves, and code that refers to it differs: that is a difference (compile with
  `-ffile-prefix-map`);
* file offsets, section numbers, and how device code is compressed (which may move what lies behind it).

Objects and cubins are linked by name, so there symbols and relocations count by their names. Static archives count by
member, without time, owner, mode and symbol table. PTX counts without comments, `.file`, `.loc` and debug sections. In
other text only the folders are replaced. Everything else, and every
file that lies about itself, counts as it is.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from reproducer.binaries.archive import archive_members, is_archive
from reproducer.binaries.device_code import device_code_digest, entry_digest, normal_hash, normal_name, ptx_body
from reproducer.binaries.elf import CUDA, NOBITS, RELA, STRTAB, SYMTAB, Elf, Section, is_debug, is_elf, read_elf
from reproducer.binaries.fatbin import (
    ELF,
    SECTIONS,
    Entry,
    cubin_architecture,
    device_code,
    entries,
    in_order,
    is_fatbin,
    is_ptx,
)
from reproducer.binaries.reading import MalformedError, Window, opened
from reproducer.binaries.volatile import Volatile
from reproducer.canonical import content_digest

_UNUSED = {".note.gnu.build-id", ".comment", ".note.nv.tkinfo", "__nv_module_id", ".shstrtab", ".gnu.build.attributes"}
_OBJECT = 1
_NAMELESS = (3, 4)  # symbols that stand for a section or a source file


@dataclass(frozen=True)
class FileContent:
    """One built file.

    Attributes:
        sha256: digest of its bytes.
        size: its bytes.
        content_sha256: digest of its content.
        device_code_sha256: digest of its device code alone; None where it has none.
        architectures: what its device code is built for; None where it has none.
        fault: how it lies about itself; empty where it does not. Such a file counts as it is.
    """

    sha256: str
    size: int
    content_sha256: str
    device_code_sha256: str | None = None
    architectures: tuple[str, ...] | None = None
    fault: str = ""


def file_content(path: Path, *, build_paths: Sequence[Path] = ()) -> FileContent:
    """The content of a file.

    Args:
        path: a regular file.
        build_paths: folders it was built in.

    Raises:
        UnsafeInputError: a link, folder, device, socket or pipe.
        NotCheckedError: it cannot be read, or changes meanwhile.
    """
    with opened(path) as window:
        return content_of(window, build_paths=build_paths)


def content_of(window: Window, *, build_paths: Sequence[Path] = ()) -> FileContent:
    """The content of bytes; raises MalformedError only where a file became shorter while it was read."""
    digest, has_null = hashlib.sha256(), False
    for piece in window.pieces():
        digest.update(piece)
        has_null = has_null or b"\0" in piece
    plain = FileContent(digest.hexdigest(), window.size, digest.hexdigest())
    reading = _Reading(Volatile.of(build_paths))
    try:
        content = reading.content(window, has_null=has_null)
    except MalformedError as error:
        return replace(plain, fault=str(error))
    return replace(
        plain,
        content_sha256=content or plain.sha256,
        device_code_sha256=device_code_digest(reading.code) if reading.code else None,
        architectures=in_order({architecture for architecture, _ in reading.code}) if reading.code else None,
    )


@dataclass
class _Reading:
    """One pass over a file.

    Attributes:
        volatile: what is replaced.
        code: the device code met on the way: architecture and digest of each entry.
    """

    volatile: Volatile
    code: list[tuple[str, str]] = field(default_factory=list)

    def content(self, window: Window, *, has_null: bool) -> str | None:
        """The digest of what is left after normalisation; None where nothing is to be normalised."""
        if is_elf(window):
            return self._elf(window)
        if is_archive(window):
            return content_digest(
                ["archive", [[each.name, self._member(each.content)] for each in archive_members(window)]]
            )
        if is_fatbin(window):
            return content_digest(["fatbin", self.entries(window)])
        if not has_null and is_ptx(window):
            self.code += [(each.architecture, entry_digest(each, self.volatile)) for each in device_code(window) or ()]
            return hashlib.sha256(ptx_body(window, self.volatile)).hexdigest()
        return None if has_null else normal_hash(window, replace(self.volatile, names=False))

    def _elf(self, window: Window) -> str:
        elf = read_elf(window)
        if elf.machine == CUDA:
            entry = Entry(ELF, cubin_architecture(elf), window, "", window.size)
            self.code.append((entry.architecture, entry_digest(entry, self.volatile)))
        parts = elf_parts(elf, self.volatile, self.entries)
        return content_digest(["elf", parts])

    def _member(self, window: Window) -> str:
        """The content of a member of an archive; one that lies about itself counts as it is."""
        if is_elf(window):
            before = len(self.code)
            try:
                return self._elf(window)
            except MalformedError:
                del self.code[before:]
        return normal_hash(window, Volatile())

    def entries(self, window: Window) -> list[list[str]]:
        """Each entry of fat binaries by architecture and content, sorted."""
        parts = []
        for entry in entries(window):
            try:
                plain = replace(entry, payload=entry.plain(), compression="")
            except MalformedError:
                plain = entry
            self.code.append((entry.architecture, entry_digest(plain, self.volatile)))
            parts.append([entry.architecture, _entry(plain, self.volatile)])
        return sorted(parts)


def entry_parts(window: Window, volatile: Volatile) -> list[list[str]]:
    """What counts of a section that holds fat binaries, as `elf_parts` takes it."""
    return _Reading(volatile).entries(window)


def elf_parts(elf: Elf, volatile: Volatile, fat: Callable[[Window], list[list[str]]] | None = None) -> list[list[Any]]:
    """What counts of an ELF file: its header, and each section that is not left out as [name, type, flags, digest].

    Args:
        elf: the file.
        volatile: what is replaced.
        fat: gives what counts of a section that holds fat binaries; None where such a section counts as bytes.

    Raises:
        MalformedError: sections lie about themselves.
    """
    by_name = elf.kind == _OBJECT or elf.machine == CUDA
    parts: list[list[Any]] = [["header", elf.kind, elf.machine, f"{elf.flags:x}"]]
    for section in elf.sections[1:]:
        if is_left_out(section, by_name=by_name):
            continue
        if fat is not None and section.name in SECTIONS:
            digest = content_digest(fat(section.content))
        else:
            digest = _section(elf, section, volatile, by_name=by_name)
        parts.append([normal_name(section.name, volatile), section.kind, f"{section.flags:x}", digest])
    return sorted(parts, key=str) if by_name else parts


def is_left_out(section: Section, *, by_name: bool) -> bool:
    """Whether a section does not count; `by_name` where the file is linked by the names of its symbols."""
    if section.name in _UNUSED or is_debug(section.name):
        return True
    if section.name == ".strtab":
        return section.kind == STRTAB
    return section.kind == SYMTAB and not by_name


def _section(elf: Elf, section: Section, volatile: Volatile, *, by_name: bool) -> str:
    if section.kind == NOBITS:
        return f"{section.size} bytes"
    if by_name and section.kind == SYMTAB:
        return content_digest(_symbols(elf, section, volatile))
    if by_name and section.kind == RELA:
        moved = (
            [str(each.offset), str(each.kind), normal_name(each.symbol, volatile), str(each.addend)]
            for each in elf.relocations(section)
        )
        return content_digest(sorted(moved))
    return normal_hash(section.content, volatile)


def _symbols(elf: Elf, table: Section, volatile: Volatile) -> list[list[str]]:
    found = []
    for each in elf.symbols(table):
        home = elf.sections[each.section].name if each.section < len(elf.sections) else str(each.section)
        if each.info & 15 not in _NAMELESS and not is_debug(home):
            name, where = normal_name(each.name, volatile), normal_name(home, volatile)
            found.append([name, where, str(each.info), str(each.value), str(each.size)])
    return sorted(found)


def _entry(entry: Entry, volatile: Volatile) -> str:
    """The content of one entry."""
    if entry.kind == ELF and not entry.compression and is_elf(entry.payload):
        try:
            return content_digest(["elf", elf_parts(read_elf(entry.payload), volatile)])
        except MalformedError:
            pass
    return normal_hash(entry.payload, volatile)

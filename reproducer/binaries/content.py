"""What a built file holds, apart from when and where it was built.

The content digest of an ELF file is one over its sections, each by name, type, flags and bytes. It leaves out

* the build id (`.note.gnu.build-id`): a digest over everything else that is left out here too;
* debug sections, `.gnu_debuglink` and, of linked files, `.symtab` and `.strtab`: what `strip` removes;
* `.comment` and `.note.nv.tkinfo`: what the compiler calls itself, which the lock records as its toolchain;
* `__nv_module_id` and the digits of nvcc's random names, wherever they stand;
* the folders it was built in, wherever they stand: each is replaced by one text. Where two folders differ in length,
  what lies behind moves, and code that refers to it differs: that is a difference (compile with
  `-ffile-prefix-map`);
* file offsets, section numbers, and the compression of device code.

Objects and cubins are linked by name, so there symbols and relocations count by their names. Static archives count by
member, without time, owner, mode and symbol table. In text only the folders are replaced. Everything else, and every
file that lies about itself, counts as it is.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reproducer.binaries.archive import archive_members, is_archive
from reproducer.binaries.device_code import device_code_digest, normal_hash, normal_name
from reproducer.binaries.elf import CUDA, NOBITS, RELA, STRTAB, SYMTAB, Elf, Section, is_debug, is_elf, read_elf
from reproducer.binaries.fatbin import ELF, SECTIONS, Entry, device_code, entries, in_order, is_fatbin, is_ptx
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
    volatile = Volatile.of(build_paths)
    try:
        content = _content(window, volatile, has_null=has_null)
        found = device_code(window)
        if found is None:
            return replace(plain, content_sha256=content or plain.sha256)
        code = list(found)
        return replace(
            plain,
            content_sha256=content or plain.sha256,
            device_code_sha256=device_code_digest(code, volatile),
            architectures=in_order({each.architecture for each in code}),
        )
    except MalformedError as error:
        return replace(plain, fault=str(error))


def _content(window: Window, volatile: Volatile, *, has_null: bool) -> str | None:
    """The digest of what is left after normalisation; None where nothing is to be normalised."""
    if is_elf(window):
        return content_digest(["elf", elf_parts(read_elf(window), volatile)])
    if is_archive(window):
        parts = [[each.name, _content_or_bytes(each.content, volatile)] for each in archive_members(window)]
        return content_digest(["archive", parts])
    if is_fatbin(window):
        return content_digest(["fatbin", entry_parts(entries(window), volatile)])
    if has_null:
        return None
    return normal_hash(window, volatile if is_ptx(window) else replace(volatile, names=False))


def _content_or_bytes(window: Window, volatile: Volatile) -> str:
    """The content of a member of an archive."""
    if is_elf(window):
        try:
            return content_digest(["elf", elf_parts(read_elf(window), volatile)])
        except MalformedError:
            pass
    return normal_hash(window, Volatile())


def elf_parts(elf: Elf, volatile: Volatile) -> list[list[Any]]:
    """What counts of an ELF file: its header, and each section that is not left out as [name, type, flags, digest].

    Raises:
        MalformedError: sections lie about themselves.
    """
    by_name = elf.kind == _OBJECT or elf.machine == CUDA
    parts: list[list[Any]] = [["header", elf.kind, elf.machine, f"{elf.flags:x}"]]
    for section in elf.sections[1:]:
        if is_left_out(section, by_name=by_name):
            continue
        title = normal_name(section.name, volatile)
        parts.append([title, section.kind, f"{section.flags:x}", _section(elf, section, volatile, by_name=by_name)])
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
    if section.name in SECTIONS:
        return content_digest(entry_parts(entries(section.content), volatile))
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


def entry_parts(found: Iterable[Entry], volatile: Volatile) -> list[list[str]]:
    """What counts of a fat binary: each entry by architecture and content, sorted."""
    return sorted([each.architecture, _entry(each, volatile)] for each in found)


def _entry(entry: Entry, volatile: Volatile) -> str:
    try:
        plain = entry.plain()
        if entry.kind == ELF and is_elf(plain):
            return content_digest(["elf", elf_parts(read_elf(plain), volatile)])
    except MalformedError:
        plain = entry.payload
    return normal_hash(plain, volatile)

"""The digest of device code alone: what a GPU runs, apart from how it is wrapped and named.

Of a cubin count the sections that hold instructions, constants, initial values and the sizes of shared, local and
global memory, with their relocations by symbol name. What describes them for a debugger, a profiler or a person does
not, nor do kernel attributes in `.nv.info*`, which name symbols by their number in a table whose order depends on
nvcc's random names. Of PTX counts the text without comments, `.file`, `.loc` and debug sections. The order of entries
does not count either, for it is the order of linking. LTO-IR and kinds that nobody knows count as they lie there.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from reproducer.binaries.decompress import LARGEST
from reproducer.binaries.elf import CUDA, NOBITS, RELA, Elf, is_elf, read_elf
from reproducer.binaries.fatbin import ELF, PTX, Entry
from reproducer.binaries.reading import MalformedError, Window
from reproducer.binaries.volatile import Volatile
from reproducer.canonical import content_digest

_CODE = (".text.", ".nv.constant", ".nv.global", ".nv.shared", ".nv.local", ".nv.capmerc.text.")
_DEBUG_SECTION = re.compile(rb"^[ \t]*\.section[ \t]+\.debug_[a-z_]+\s*\{[^{}]*\}[ \t]*\n?", re.MULTILINE)
_DROPPED = re.compile(rb"^[ \t]*(?://[^\n]*|\.file\b[^\n]*|\.loc\b[^\n]*)?\n", re.MULTILINE)


def device_code_digest(found: Iterable[tuple[str, str]]) -> str:
    """One digest over device code: the architecture and digest of each entry, in whatever order."""
    return content_digest(sorted([architecture, digest] for architecture, digest in found))


def entry_digest(entry: Entry, volatile: Volatile) -> str:
    """The digest of one entry."""
    try:
        plain = entry.plain()
        if entry.kind == ELF and is_elf(plain):
            return content_digest(["cubin", cubin_parts(read_elf(plain), volatile)])
        if entry.kind == PTX:
            return content_digest(["ptx", hashlib.sha256(ptx_body(plain, volatile)).hexdigest()])
    except MalformedError:
        plain = entry.payload
    return content_digest(["as it lies", _hashed(plain)])


def cubin_parts(elf: Elf, volatile: Volatile) -> list[Any]:
    """What counts of a cubin, section by section.

    Raises:
        MalformedError: it is no cubin, or one whose sections lie about themselves.
    """
    if elf.machine != CUDA:
        raise MalformedError("is no cubin")
    parts = []
    for section in elf.sections:
        name = section.name.removeprefix(".rela")
        if not name.startswith(_CODE):
            continue
        title = normal_name(section.name, volatile)
        if section.kind == NOBITS:
            parts.append([title, "size", str(section.size)])
        elif section.kind == RELA:
            moved = [
                [str(each.offset), str(each.kind), normal_name(each.symbol, volatile), str(each.addend)]
                for each in elf.relocations(section)
            ]
            parts.append([title, "relocations", content_digest(sorted(moved))])
        else:
            parts.append([title, "bytes", normal_hash(section.content, volatile)])
    return sorted(parts)


def ptx_body(window: Window, volatile: Volatile) -> bytes:
    """PTX without what only a person or a debugger reads; raises MalformedError where it is larger than 1 GiB."""
    if window.size > LARGEST:
        raise MalformedError("is PTX without end")
    text = window.read(0, window.size).rstrip(b"\0")
    return volatile.normal(_DROPPED.sub(b"", _DEBUG_SECTION.sub(b"", text)))


def normal_name(name: str, volatile: Volatile) -> str:
    """A section's or symbol's name with everything volatile replaced."""
    return volatile.normal(name.encode()).decode()


def normal_hash(window: Window, volatile: Volatile) -> str:
    """sha256 of bytes with everything volatile replaced, in flat memory."""
    digest = hashlib.sha256()
    for piece in volatile.stream(window.pieces()):
        digest.update(piece)
    return digest.hexdigest()


def _hashed(window: Window) -> str:
    digest = hashlib.sha256()
    for piece in window.pieces():
        digest.update(piece)
    return digest.hexdigest()

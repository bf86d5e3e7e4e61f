"""An `.eval` log: a zip archive, of which two members are read and nothing is ever unpacked to disk.

The central directory is read here and not by `zipfile`: members are packed with zstd (method 93), which it does not
know before Python 3.14, and a stranger's directory must be bounded before an object is made for each entry.
"""

import stat
import struct
import zlib
from dataclasses import dataclass
from typing import Any

from reproducer.binaries.decompress import zstd_frame
from reproducer.binaries.reading import MalformedError
from reproducer.documents.base import shown
from reproducer.documents.bounds import refuse_many
from reproducer.errors import InvalidDocumentError, UnsafeInputError
from reproducer.results.reading import LARGEST, MOST_VALUES, parse_foreign

HEADER = "header.json"
SUMMARIES = "summaries.json"
MOST_MEMBERS = 20_000
_END = struct.Struct("<4s4H2LH")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_STORED, _DEFLATED, _ZSTD = 0, 8, 93
_ENCRYPTED, _UTF8 = 1, 1 << 11


@dataclass(frozen=True)
class Member:
    """One entry of the central directory."""

    name: str
    method: int
    crc: int
    packed: int
    size: int
    offset: int


def is_archive(data: bytes) -> bool:
    """Whether the bytes begin as a zip archive does."""
    return data[:4] in (b"PK\x03\x04", b"PK\x05\x06")


def read_log(data: bytes, *, where: str) -> dict[str, Any]:
    """Header and summaries of a log, and the names of what else is in it.

    Raises:
        UnsafeInputError: a name that leaves the archive's folder, a link, a member twice.
        InvalidDocumentError: no such archive, damaged, too large, or a log that was never finished.
    """
    members = members_of(data, where=where)
    if HEADER not in members:
        raise InvalidDocumentError(
            f"has no {HEADER}", where=where, why="it is no log of inspect_ai, or the evaluation never ended"
        )
    found: dict[str, Any] = {}
    for name, member in members.items():
        if name in (HEADER, SUMMARIES):
            text = content_of(data, member, where=where)
            refuse_many(text, where=f"{where}: {name}", most=MOST_VALUES)
            try:
                found[name] = parse_foreign(text.decode("utf-8"), where=f"{where}: {name}")
            except UnicodeDecodeError as error:
                raise InvalidDocumentError("is not UTF-8", where=f"{where}: {name}") from error
        else:
            found[name] = f"{member.size} bytes"
    return found


def members_of(data: bytes, *, where: str) -> dict[str, Member]:
    """The members by name, judged before any is read; raises as `read_log` does."""
    start = len(data) - _END.size
    if start < 0 or data[start : start + 4] != b"PK\x05\x06":
        raise InvalidDocumentError(
            "is no zip archive", where=where, why="it does not end as one without a comment does"
        )
    _, disk, first_disk, here, count, size, offset, _ = _END.unpack_from(data, start)
    if disk or first_disk or here != count or offset + size != start:
        raise InvalidDocumentError("is no plain zip archive", where=where, why="its directory is not where it says")
    if count > MOST_MEMBERS:
        raise InvalidDocumentError(f"holds more than {MOST_MEMBERS} members", where=where)
    found: dict[str, Member] = {}
    position = offset
    for _ in range(count):
        member, position = _entry(data, position, start, where=where)
        if member.name in found:
            raise UnsafeInputError(f"member {shown(member.name)} stands twice", where=where)
        found[member.name] = member
    if position != start:
        raise InvalidDocumentError("is no plain zip archive", where=where, why="its directory has another length")
    return found


def content_of(data: bytes, member: Member, *, where: str) -> bytes:
    """The bytes of one member: as many as are named, and of the checksum that is named.

    Raises:
        InvalidDocumentError: damaged, larger than a result, or packed in a way that logs are not.
    """
    place = f"{where}: {member.name}"
    if member.size > LARGEST:
        raise InvalidDocumentError(f"is larger than {LARGEST} bytes", where=place)
    packed = _packed(data, member, where=place)
    try:
        content = _unpacked(packed, member)
    except (MalformedError, zlib.error, ImportError) as error:
        raise InvalidDocumentError("cannot be unpacked", where=place, why=str(error)) from error
    if len(content) != member.size or zlib.crc32(content) != member.crc:
        raise InvalidDocumentError("is damaged", where=place, why="it is not of the size and checksum that are named")
    return content


def _entry(data: bytes, position: int, end: int, *, where: str) -> tuple[Member, int]:
    if position + _ENTRY.size > end:
        raise InvalidDocumentError("is no plain zip archive", where=where, why="its directory is cut short")
    fields = _ENTRY.unpack_from(data, position)
    mark, made_by, _, flags, method, _, _, crc, packed, size, named, extra, comment, _, _, outside, offset = fields
    after = position + _ENTRY.size + named + extra + comment
    if mark != b"PK\x01\x02" or after > end:
        raise InvalidDocumentError("is no plain zip archive", where=where, why="its directory is damaged")
    raw = data[position + _ENTRY.size : position + _ENTRY.size + named]
    try:
        name = raw.decode("utf-8" if flags & _UTF8 else "ascii")
    except UnicodeDecodeError as error:
        raise InvalidDocumentError("has a member whose name is no text", where=where) from error
    _plain_name(name, where=where)
    mode = outside >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG) or flags & _ENCRYPTED:
        raise UnsafeInputError(f"member {shown(name)} is a link, a folder or encrypted", where=where, why=f"{made_by}")
    return Member(name, method, crc, packed, size, offset), after


def _plain_name(name: str, *, where: str) -> None:
    parts = name.split("/")
    if not name.isprintable() or "\\" in name or any(part in ("", ".", "..") for part in parts):
        raise UnsafeInputError(
            f"member {shown(name)} has a name that leaves its folder or is no plain text",
            where=where,
            todo="a log of inspect_ai holds none; nothing was unpacked",
        )


def _packed(data: bytes, member: Member, *, where: str) -> bytes:
    """The bytes behind the member's own header, which must be of the same name."""
    if member.offset + _LOCAL.size > len(data):
        raise InvalidDocumentError("is not in the archive", where=where)
    mark, *_, named, extra = _LOCAL.unpack_from(data, member.offset)
    start = member.offset + _LOCAL.size
    begin = start + named + extra
    if mark != b"PK\x03\x04" or data[start : start + named].decode("utf-8", "replace") != member.name:
        raise InvalidDocumentError("is not where the archive's directory says", where=where)
    if begin + member.packed > len(data):
        raise InvalidDocumentError("is cut short", where=where)
    return data[begin : begin + member.packed]


def _unpacked(packed: bytes, member: Member) -> bytes:
    if member.method == _STORED:
        return packed
    if member.method == _DEFLATED:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, member.size + 1)
    if member.method == _ZSTD:
        return zstd_frame(packed, member.size)
    raise MalformedError(f"method {member.method} is none of those that logs are packed with")

"""What a wheel holds, apart from how it was packed, and how two wheels differ.

`bytes-identical` compares the files. `content-identical` compares the unpacked members after normalisation: order,
times, modes and compression of the archive do not count, RECORD counts only where it contradicts the members it
lists, the folder a wheel was built in is replaced where a text member names it, and ELF files, archives of objects and
device code count as `reproducer.binaries.content` says. `device-code-identical` takes the device code of a member in
place of the member, where it has some; every other member still counts whole.

A member list is a text file, one `sha256  size  path` a line, sorted by path; it lies beside a lock so that a
difference can be named without the other wheel.
"""

import base64
import csv
import difflib
import hashlib
import io
import re
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reproducer.archives.members import BROKEN_ARCHIVE, zip_members
from reproducer.archives.tree_writer import CHUNK, DEFAULT_LIMITS
from reproducer.binaries import archive, elf, fatbin
from reproducer.binaries.content import FileContent, content_of
from reproducer.binaries.reading import Window
from reproducer.canonical import content_digest
from reproducer.documents.base import FileReference, Sha256, shown
from reproducer.documents.built import Difference, Level
from reproducer.documents.lock import Output
from reproducer.errors import InvalidDocumentError, UnsafeInputError
from reproducer.store.hashing import hash_file

BUILD_PATH = b"/penny-build"
_LINE = re.compile(r"^([0-9a-f]{64})  (0|[1-9][0-9]{0,15})  (.+)$")
_RECORD = re.compile(r"[^/]+\.dist-info/RECORD")
_LARGEST_IN_MEMORY = 32 << 20
_SHORT_TEXT = 16384
_MOST_LINES_COMPARED = 400
_MOST_LINES_SHOWN = 6


@dataclass(frozen=True)
class WheelContent:
    """A wheel's normalised members.

    Attributes:
        sha256: digest of the wheel file itself.
        size: its bytes.
        members: digest and size of every member after normalisation, by path.
        texts: the members that are short text, for naming differences.
        packing: what normalisation drops, by path: mode and time of the archive entry.
        device_code: digest of the device code of every member that has some, by path.
    """

    sha256: Sha256
    size: int
    members: dict[str, FileReference]
    texts: dict[str, str]
    packing: dict[str, tuple[int, str]]
    device_code: dict[str, Sha256] = field(default_factory=dict)

    @property
    def device_code_digest(self) -> str | None:
        """The content digest with the device code of members in place of them; None where no member has any."""
        if not self.device_code:
            return None
        code = {path: f"device code {digest}" for path, digest in self.device_code.items()}
        return content_digest({path: each.sha256 for path, each in self.members.items()} | code)

    @property
    def digest(self) -> str:
        """The content digest: sha256 over the RFC 8785 JSON of {path: sha256}."""
        return content_digest({path: each.sha256 for path, each in self.members.items()})


def read_wheel(wheel: Path, *, build_paths: Sequence[Path] = ()) -> WheelContent:
    """Read and normalise a wheel.

    Args:
        wheel: the file.
        build_paths: folders it was built in, to be replaced in text members.

    Raises:
        UnsafeInputError: not a zip file, or with members that must not be.
    """
    raw: dict[str, _Raw] = {}
    packing = {}
    normal: dict[str, FileReference] = {}
    texts: dict[str, str] = {}
    records: dict[str, bytes] = {}
    code: dict[str, Sha256] = {}
    try:
        sha256, size = hash_file(wheel)
        with zipfile.ZipFile(wheel) as packed:
            listed = [each for each in zip_members(packed, where=wheel.name) if not each.is_dir()]
            if sum(each.file_size for each in listed) > DEFAULT_LIMITS.allowed(size):
                raise UnsafeInputError("unpacks to more than a wheel of its size may", where=wheel.name)
            for member in listed:
                path = member.filename
                raw[path], data = _read(packed, member, wheel.name)
                time = "{}-{:02}-{:02} {:02}:{:02}:{:02}".format(*member.date_time)
                packing[path] = (member.external_attr >> 16 & 0o7777, time)
                if _RECORD.fullmatch(path) and data is not None:
                    records[path] = data
                elif _is_binary(packed, member):
                    built = _binary(packed, member, build_paths)
                    normal[path] = FileReference(path=path, sha256=built.content_sha256, size=raw[path].size)
                    if built.device_code_sha256 is not None:
                        code[path] = built.device_code_sha256
                else:
                    normal[path] = _normal(path, raw[path], data, build_paths, texts)
    except (*BROKEN_ARCHIVE, RuntimeError, OSError, ValueError) as error:
        raise UnsafeInputError("is no wheel that can be read", where=wheel.name, why=str(error)) from error
    for path, data in records.items():
        normal[path] = _kept(path, _contradictions(data, raw), texts)
    return WheelContent(sha256, size, dict(sorted(normal.items())), texts, packing, code)


@dataclass(frozen=True)
class _Raw:
    """A member as it lies in the wheel; `digest` is spelt as RECORD spells it."""

    sha256: str
    size: int
    has_null: bool

    @property
    def digest(self) -> str:
        return "sha256=" + base64.urlsafe_b64encode(bytes.fromhex(self.sha256)).decode().rstrip("=")


def _read(packed: zipfile.ZipFile, member: zipfile.ZipInfo, where: str) -> tuple[_Raw, bytes | None]:
    """A member's digest, and its bytes where they are few; one member is in memory at a time."""
    digest = hashlib.sha256()
    kept: list[bytes] | None = [] if member.file_size <= _LARGEST_IN_MEMORY else None
    done, has_null = 0, False
    with packed.open(member) as source:
        while piece := source.read(CHUNK):
            digest.update(piece)
            done += len(piece)
            has_null = has_null or b"\0" in piece
            if kept is not None:
                kept.append(piece)
    if done != member.file_size:
        raise UnsafeInputError(f"member {shown(member.filename)} is cut short", where=where)
    if kept is None and (not has_null or _RECORD.fullmatch(member.filename)):
        raise UnsafeInputError(
            f"member {shown(member.filename)} is text of more than {_LARGEST_IN_MEMORY} bytes", where=where
        )
    return _Raw(digest.hexdigest(), done, has_null), None if kept is None else b"".join(kept)


def _is_binary(packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> bool:
    """Whether a member begins as an ELF file, an archive of objects or a fat binary does."""
    with packed.open(member) as source:
        return source.read(8).startswith((elf.MAGIC, archive.MAGIC, fatbin.MAGIC))


def _binary(packed: zipfile.ZipFile, member: zipfile.ZipInfo, build_paths: Sequence[Path]) -> FileContent:
    """The content of such a member, read from a file that has no name."""
    with packed.open(member) as source, tempfile.TemporaryFile() as copy:
        while piece := source.read(CHUNK):
            copy.write(piece)
        copy.flush()
        return content_of(Window(copy.fileno(), 0, member.file_size), build_paths=build_paths)


def _normal(
    path: str, raw: _Raw, data: bytes | None, build_paths: Sequence[Path], texts: dict[str, str]
) -> FileReference:
    """A member with the folder it was built in replaced where it is text."""
    if data is None or raw.has_null:
        return FileReference(path=path, sha256=raw.sha256, size=raw.size)
    for folder in build_paths:
        data = data.replace(str(folder).encode(), BUILD_PATH)
    return _kept(path, data, texts)


def _kept(path: str, data: bytes, texts: dict[str, str]) -> FileReference:
    text = _short_text(data)
    if text is not None:
        texts[path] = text
    return FileReference(path=path, sha256=hashlib.sha256(data).hexdigest(), size=len(data))


def _contradictions(record: bytes, raw: Mapping[str, _Raw]) -> bytes:
    """The rows of a RECORD that say something else than the members, sorted; normally none."""
    rows = set()
    listed = set()
    try:
        for row in csv.reader(io.StringIO(record.decode("utf-8"), newline="")):
            path, digest, size = (*row, "", "", "")[:3]
            listed.add(path)
            member = raw.get(path)
            if member is None:
                rows.add(f"{path}: listed but absent")
            elif digest and not (digest == member.digest and size in ("", str(member.size))):
                rows.add(f"{path}: listed as {digest},{size}")
    except (UnicodeDecodeError, csv.Error):
        return record
    signatures = (".dist-info/RECORD.jws", ".dist-info/RECORD.p7s")
    rows |= {f"{path}: present but not listed" for path in raw if path not in listed and not path.endswith(signatures)}
    return "".join(f"{row}\n" for row in sorted(rows)).encode()


def _short_text(data: bytes) -> str | None:
    if len(data) > _SHORT_TEXT or b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def members(wheel: Path, *, build_paths: Sequence[Path] = ()) -> dict[str, FileReference]:
    """Digest and size of every member of a wheel after normalisation; raises as `read_wheel` does."""
    return read_wheel(wheel, build_paths=build_paths).members


def render_members(content: Mapping[str, FileReference]) -> bytes:
    """The member list as a text file."""
    return "".join(f"{each.sha256}  {each.size}  {path}\n" for path, each in sorted(content.items())).encode()


def parse_members(data: bytes, *, where: str) -> dict[str, FileReference]:
    """A member list from its text file.

    Raises:
        InvalidDocumentError: names the line that is not `sha256  size  path`, or stands twice or out of order.
    """
    found: dict[str, FileReference] = {}
    try:
        lines = data.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise InvalidDocumentError("the member list is not UTF-8", where=where) from error
    if lines.pop():
        raise InvalidDocumentError("the member list does not end with a newline", where=where)
    before = ""
    for number, line in enumerate(lines, start=1):
        match = _LINE.match(line)
        if match is None or match[3] <= before:
            raise InvalidDocumentError(
                f"line {number}: not the next `sha256  size  path`", where=where, why=f"got {shown(line)}"
            )
        before = match[3]
        try:
            found[before] = FileReference(path=before, sha256=match[1], size=int(match[2]))
        except ValueError as error:
            raise InvalidDocumentError(f"line {number}: {shown(before)} is not a plain path", where=where) from error
    return found


def compare_wheels(expected: WheelContent, got: WheelContent) -> tuple[Level, tuple[Difference, ...]]:
    """The level that a wheel reaches against another one, and every difference by member."""
    if expected.sha256 == got.sha256:
        return "bytes-identical", ()
    differences = _by_member(expected.members, got, expected.texts)
    if differences:
        code = expected.device_code_digest
        return ("device-code-identical" if code and code == got.device_code_digest else "inputs-identical"), differences
    return "content-identical", _by_packing(expected, got)


def compare_output(
    expected: Output, expected_members: Mapping[str, FileReference], got: WheelContent
) -> tuple[Level, tuple[Difference, ...]]:
    """The level that a wheel reaches against what the lock expects, and every difference by member.

    Args:
        expected: the lock's output.
        expected_members: the member list that the lock names, parsed.
        got: the wheel.
    """
    if expected.sha256 == got.sha256:
        return "bytes-identical", ()
    differences = _by_member(expected_members, got, {})
    if differences:
        code = expected.device_code_sha256
        return ("device-code-identical" if code and code == got.device_code_digest else "inputs-identical"), differences
    if expected.content_sha256 != got.digest:
        why = "the lock's member list and content digest contradict each other"
        return "inputs-identical", (
            Difference(where=expected.filename, expected=expected.content_sha256, got=got.digest, reason=why),
        )
    packing = "same content; order, times, modes or compression of the archive differ"
    return "content-identical", (
        Difference(where=expected.filename, expected=expected.sha256, got=got.sha256, reason=packing),
    )


def _by_member(
    expected: Mapping[str, FileReference], got: WheelContent, texts: Mapping[str, str]
) -> tuple[Difference, ...]:
    found = []
    for path in sorted({*expected, *got.members}):
        before, after = expected.get(path), got.members.get(path)
        if before is None and after is not None:
            found.append(Difference(where=path, got=_as_text(after), reason="an extra member"))
        elif after is None and before is not None:
            found.append(Difference(where=path, expected=_as_text(before), reason="a missing member"))
        elif before is not None and after is not None and before.sha256 != after.sha256:
            old, new = texts.get(path), got.texts.get(path)
            reason = line_difference(old, new) if old is not None and new is not None else _guess(before, new)
            found.append(Difference(where=path, expected=_as_text(before), got=_as_text(after), reason=reason))
    return tuple(found)


def _as_text(member: FileReference) -> str:
    return f"sha256 {member.sha256}, {member.size} bytes"


def line_difference(old: str, new: str) -> str:
    """Extra and missing lines between two short texts."""
    before, after = old.splitlines(), new.splitlines()
    if max(len(before), len(after)) > _MOST_LINES_COMPARED:
        return f"got {len(after)} lines, expected {len(before)}"
    changes = [line for line in difflib.ndiff(before, after) if line[:2] in ("+ ", "- ")]
    words = [f"{'extra' if line[0] == '+' else 'missing'} line {shown(line[2:])}" for line in changes]
    more = f" and {len(words) - _MOST_LINES_SHOWN} more" if len(words) > _MOST_LINES_SHOWN else ""
    return "got " + ", ".join(words[:_MOST_LINES_SHOWN]) + more if words else "got other line endings"


def _guess(before: FileReference, new: str | None) -> str:
    """What differs, where only the digest of the expected text is known: one change is tried at a time."""
    if new is None:
        return ""
    lines = new.splitlines(keepends=True)
    for index, line in enumerate(lines[:_MOST_LINES_COMPARED]):
        if _is(before, "".join(lines[:index] + lines[index + 1 :])):
            return f"got extra line {shown(line.rstrip())}"
    if _is(before, "".join(sorted(lines))):
        return "got the lines in another order"
    if _is(before, new.replace("\r\n", "\n")) or _is(before, new.replace("\n", "\r\n")):
        return "got other line endings"
    return f"got {len(lines)} lines, the last {shown(lines[-1].rstrip())}" if lines else "got an empty file"


def _is(reference: FileReference, text: str) -> bool:
    data = text.encode()
    return len(data) == reference.size and hashlib.sha256(data).hexdigest() == reference.sha256


def _by_packing(expected: WheelContent, got: WheelContent) -> tuple[Difference, ...]:
    """How the same content is packed differently."""
    found = []
    for path in sorted({*expected.packing} & {*got.packing}):
        (old_mode, old_time), (new_mode, new_time) = expected.packing[path], got.packing[path]
        if old_mode != new_mode:
            found.append(Difference(where=path, expected=f"{old_mode:o}", got=f"{new_mode:o}", reason="mode"))
        if old_time != new_time:
            found.append(Difference(where=path, expected=old_time, got=new_time, reason="time"))
    if not found:
        why = "same members, modes and times; order or compression differ"
        found.append(Difference(where="the archive", expected=expected.sha256, got=got.sha256, reason=why))
    return tuple(found)

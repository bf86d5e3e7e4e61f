"""An artefact as its members: a wheel or other zip file, a tar archive, a folder, or one file.

Times, modes and the order of an archive are kept beside what its members hold, so that they can be named.
"""

import os
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Literal

from reproducer.archives.members import BROKEN_ARCHIVE, BoundedMember
from reproducer.archives.tree_writer import CHUNK, DEFAULT_LIMITS, member_path
from reproducer.binaries.content import FileContent, content_of, file_content
from reproducer.binaries.reading import Window, opened, window_of
from reproducer.binaries.volatile import Volatile
from reproducer.binaries.wheel_content import read_wheel
from reproducer.errors import UnsafeInputError
from reproducer.store.hashing import LinkReference, hash_file, hash_tree

Kind = Literal["wheel", "archive", "folder", "file"]
_FAULTS = (*BROKEN_ARCHIVE, OSError, ValueError, RuntimeError)  # links in a circle are a RecursionError
_MOST_MEMBERS = 200_000


@dataclass(frozen=True)
class Member:
    """One file or link of an artefact.

    Attributes:
        content_sha256: what it holds, apart from when and where it was built.
        raw_sha256: digest of its bytes; None where only the whole archive was digested.
        device_code_sha256: digest of its device code; None where it has none.
        link: the target of a symbolic link; None of a file.
        mode: permission bits.
        time: as the archive has it; empty in a folder, where it says nothing.
    """

    content_sha256: str
    raw_sha256: str | None
    device_code_sha256: str | None = None
    link: str | None = None
    mode: int = 0
    time: str = ""


@dataclass(frozen=True)
class Tree:
    """An artefact.

    Attributes:
        path: where it lies.
        kind: what it is.
        sha256: digest of the file; None of a folder.
        members: by path; a single file is one member without a name.
    """

    path: Path
    kind: Kind
    sha256: str | None
    members: dict[str, Member] = field(default_factory=dict)

    @contextmanager
    def open(self, member: str) -> Iterator[Window]:
        """The bytes of a member that is no link; raises UnsafeInputError where it is not there any more."""
        if self.kind in ("file", "folder"):
            with opened(self.path / member if member else self.path) as window:
                yield window
            return
        try:
            with _archived(self.path, member) as source, tempfile.TemporaryFile() as copy:
                size = _copy(source, copy, DEFAULT_LIMITS.allowed(self.path.stat().st_size))
                yield Window(copy.fileno(), 0, size)
        except _FAULTS as error:
            raise UnsafeInputError("cannot be read any more", where=self.path.name, why=str(error)) from error


def read_tree(path: Path, *, build_paths: Sequence[Path] = ()) -> Tree:
    """An artefact from the disk.

    Args:
        path: a folder, an archive or a file; a link is not followed.
        build_paths: folders it was built in.

    Raises:
        UnsafeInputError: a link, device, socket or pipe, or an archive that does what it must not.
        NotCheckedError: it cannot be read.
    """
    if path.is_symlink():
        raise UnsafeInputError("is a symbolic link", where=str(path))
    if path.is_dir():
        return Tree(path, "folder", None, _folder(path, build_paths))
    with opened(path) as window:
        start = window.read(0, min(window.size, 262))
        first = window.read(0, min(window.size, 6))
    if start.startswith(b"PK\x03\x04"):
        return _zip(path, build_paths)
    if start[257:262] == b"ustar" or first.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")):
        sha256, size = hash_file(path)
        return Tree(path, "archive", sha256, _tar(path, size, build_paths))
    content = file_content(path, build_paths=build_paths)
    return Tree(path, "file", content.sha256, {"": _member(content, path.stat().st_mode & 0o7777)})


def _member(content: FileContent, mode: int, time: str = "") -> Member:
    return Member(content.content_sha256, content.sha256, content.device_code_sha256, mode=mode, time=time)


def _link(target: str, build_paths: Sequence[Path]) -> Member:
    normal = Volatile.of(build_paths, names=False).normal(os.fsencode(target))
    content = content_of(window_of(b"link to " + normal))
    return Member(content.sha256, None, link=os.fsdecode(normal))


def _folder(folder: Path, build_paths: Sequence[Path]) -> dict[str, Member]:
    found = {}
    for path, reference in hash_tree(folder).items():
        if isinstance(reference, LinkReference):
            found[path] = _link(reference.target, build_paths)
        else:
            mode = stat.S_IMODE((folder / path).lstat().st_mode)
            found[path] = _member(file_content(folder / path, build_paths=build_paths), mode)
    return found


def _zip(path: Path, build_paths: Sequence[Path]) -> Tree:
    """A zip file; in a wheel RECORD counts only where it contradicts the members."""
    content = read_wheel(path, build_paths=build_paths)
    members = {
        name: Member(reference.sha256, None, content.device_code.get(name), mode=mode, time=time)
        for name, reference in content.members.items()
        for mode, time in [content.packing[name]]
    }
    return Tree(path, "wheel" if path.suffix == ".whl" else "archive", content.sha256, members)


def _tar(path: Path, size: int, build_paths: Sequence[Path]) -> dict[str, Member]:
    found: dict[str, Member] = {}
    left = DEFAULT_LIMITS.allowed(size)
    try:
        with tarfile.open(path, tarinfo=BoundedMember) as packed:
            for entry in packed:
                name = str(member_path(entry.name, where=path.name))
                if entry.isdir():
                    continue
                if name in found or len(found) >= _MOST_MEMBERS:
                    raise UnsafeInputError(f"holds {len(found)} members and then {name!r}", where=path.name)
                if entry.issym():
                    found[name] = _link(entry.linkname, build_paths)
                    continue
                source = packed.extractfile(entry) if entry.isreg() or entry.islnk() else None
                if source is None:
                    raise UnsafeInputError(f"member {name!r} is neither file, folder nor link", where=path.name)
                with source, tempfile.TemporaryFile() as copy:
                    done = _copy(source, copy, left)
                    left -= done
                    content = content_of(Window(copy.fileno(), 0, done), build_paths=build_paths)
                found[name] = _member(content, entry.mode & 0o7777, _time(entry.mtime))
    except (*_FAULTS, KeyError, OverflowError) as error:
        raise UnsafeInputError("is no archive that can be read", where=path.name, why=str(error)) from error
    return dict(sorted(found.items()))


@contextmanager
def _archived(path: Path, member: str) -> Iterator[IO[bytes]]:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed, packed.open(member) as source:
            yield source
        return
    with tarfile.open(path, tarinfo=BoundedMember) as packed_tar:
        for entry in packed_tar:
            if str(member_path(entry.name, where=path.name)) == member and (source_ := packed_tar.extractfile(entry)):
                with source_:
                    yield source_
                return
    raise ValueError(f"member {member!r} is gone")


def _copy(source: IO[bytes], target: IO[bytes], allowed: int) -> int:
    done = 0
    while piece := source.read(CHUNK):
        done += len(piece)
        if done > allowed:
            raise ValueError("unpacks to more than an archive of its size may")
        target.write(piece)
    target.flush()
    return done


def _time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return str(int(seconds))

"""Reading archives from strangers: nothing of them grows without bound or depends on the host.

Python's `tarfile` has an extraction filter, but it lets duplicates, sparse files and bombs through and follows
links while it writes. So members are read here with `tarfile` and `zipfile`, and `tree_writer.py` writes them.
"""

import gzip
import hashlib
import lzma
import re
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn, Protocol

from reproducer.archives.tree_writer import CHUNK, DEFAULT_LIMITS, Limits, TreeWriter, member_path
from reproducer.documents.base import shown
from reproducer.errors import DriftError, NotCheckedError, UnsafeInputError

# What Python's own readers raise where an archive is broken, beside OSError, ValueError and RuntimeError.
BROKEN_ARCHIVE = (
    tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, NotImplementedError,
)  # fmt: skip
_LONGEST_HEADER = 8 << 10
_MANY_DIGITS = re.compile(rb"[0-9]{100}")


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Bounded:
    """A readable stream that refuses to give more than it may."""

    def __init__(self, source: _Readable, allowed: int, where: str) -> None:
        self.source = source
        self.left = allowed
        self.where = where

    def read(self, size: int) -> bytes:
        piece = self.source.read(size)
        self.left -= len(piece)
        if self.left < 0:
            raise UnsafeInputError(
                "unpacks to more than a source archive of its size may", where=self.where, why="a decompression bomb"
            )
        return piece


class _Replay:
    """A tar stream whose next piece has been read already."""

    def __init__(self, piece: bytes, stream: Any) -> None:
        self._piece = piece
        self._stream = stream

    def read(self, size: int) -> bytes:
        piece, self._piece = self._piece, b""
        return piece or self._stream.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class BoundedMember(tarfile.TarInfo):
    """A header of a tar file; `tarfile` reads extended ones whole and searches them in quadratic time."""

    _EXTENDED = frozenset(
        {tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK}
    )

    def _proc_member(self, tar: Any) -> Any:
        """`tarfile`'s own place for members of special types."""
        if self.type not in self._EXTENDED:
            return super()._proc_member(tar)  # type: ignore[misc]
        if not 0 <= self.size <= _LONGEST_HEADER:
            raise UnsafeInputError(f"holds a header of more than {_LONGEST_HEADER} bytes", where=shown(self.name))
        stream = tar.fileobj
        piece = stream.read(-(-self.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE)
        if _MANY_DIGITS.search(piece) and self.type not in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK):
            raise UnsafeInputError("holds a header with a number that is none", where=shown(self.name))
        tar.fileobj = _Replay(piece, stream)
        try:
            return super()._proc_member(tar)  # type: ignore[misc]
        finally:
            tar.fileobj = stream


@contextmanager
def _faults(where: str) -> Iterator[None]:
    """Name what a broken archive or a full disk is."""
    try:
        yield
    except (*BROKEN_ARCHIVE, gzip.BadGzipFile) as error:
        raise UnsafeInputError("is no archive that can be read", where=where, why=str(error)) from error
    except (RuntimeError, ValueError) as error:
        raise UnsafeInputError("is no archive that can be read", where=where, why=str(error)) from error
    except OSError as error:
        raise NotCheckedError("cannot be unpacked", where=where, why=error.strerror or str(error)) from error


def unpack_sdist(archive: Path, folder: Path, *, name: str, epoch: int, limits: Limits = DEFAULT_LIMITS) -> Path:
    """Unpack a source distribution (`.tar.gz`, `.zip`) into a folder that does not exist yet.

    Args:
        archive: the verified file.
        folder: where to; on an error it is gone again.
        name: the archive's file name, which tells its kind and stands in errors.
        epoch: modification time of everything unpacked, in seconds.
        limits: how large it may become.

    Returns:
        The one top folder of the distribution.

    Raises:
        UnsafeInputError: a member that must not be; names it.
        NotCheckedError: the disk is full or cannot be written.
    """
    unpack = {".tar.gz": _unpack_tar, ".zip": _unpack_zip, ".whl": _unpack_zip}
    ending = next((each for each in unpack if name.endswith(each)), None)
    if ending is None:
        raise UnsafeInputError("is no archive of a known kind", where=name, why="known: .tar.gz, .zip")
    try:
        with _faults(name):
            allowed = limits.allowed(archive.stat().st_size)
            folder.mkdir(parents=True)
            writer = TreeWriter(folder, where=name, epoch=epoch, limits=limits, allowed=allowed)
            unpack[ending](archive, writer)
            writer.finish()
        return _only_folder(folder, name)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _only_folder(folder: Path, name: str) -> Path:
    tops = sorted(folder.iterdir())
    if len(tops) != 1 or not tops[0].is_dir() or tops[0].is_symlink():
        raise UnsafeInputError(f"holds {len(tops)} entries at the top instead of one folder", where=name)
    return tops[0]


def _unpack_tar(archive: Path, writer: TreeWriter) -> None:
    where = writer.where
    # Headers count too: 1.5 KiB for each member that is allowed, beside the content itself.
    headers = 3 * 512 * writer.limits.members
    with gzip.open(archive, "rb") as plain:
        bounded = _Bounded(plain, writer.allowed + min(headers, writer.allowed), where)
        with tarfile.open(  # type: ignore[call-overload]  # a reader
            fileobj=bounded, mode="r|", errorlevel=2, tarinfo=BoundedMember
        ) as tar:
            for member in tar:
                path = member_path(member.name, where=where)
                if not path.parts and member.isdir():
                    continue
                if not path.parts:
                    raise UnsafeInputError(f"member {shown(member.name)} has no name", where=where)
                if member.issparse():
                    raise UnsafeInputError(f"member {shown(member.name)} is a sparse file", where=where)
                if member.isdir():
                    writer.directory(path)
                elif member.issym():
                    writer.symlink(path, member.linkname)
                elif member.islnk():
                    writer.copy(path, member_path(member.linkname, where=where))
                elif member.type in (tarfile.REGTYPE, tarfile.AREGTYPE):
                    source = tar.extractfile(member)
                    if source is None:
                        raise UnsafeInputError(f"member {shown(member.name)} has no content", where=where)
                    writer.file(path, source, member.size, executable=bool(member.mode & stat.S_IXUSR))
                else:
                    raise UnsafeInputError(
                        f"member {shown(member.name)} is neither a file, a folder nor a link",
                        where=where,
                        why="devices and pipes do not belong in a source archive",
                    )


def _unpack_zip(archive: Path, writer: TreeWriter) -> None:
    with zipfile.ZipFile(archive) as packed:
        for member in zip_members(packed, where=writer.where, limits=writer.limits):
            path = member_path(member.filename, where=writer.where)
            if member.is_dir():
                writer.directory(path)
                continue
            with packed.open(member) as source:
                executable = bool((member.external_attr >> 16) & stat.S_IXUSR)
                writer.file(path, source, member.file_size, executable=executable)


def zip_members(packed: zipfile.ZipFile, *, where: str, limits: Limits = DEFAULT_LIMITS) -> list[zipfile.ZipInfo]:
    """The members of a zip file, checked: plain files and folders, no name twice, within the limits.

    Raises:
        UnsafeInputError: names the first member that must not be.
    """
    members = packed.infolist()
    if len(members) > limits.members:
        raise UnsafeInputError(f"has more than {limits.members} members", where=where)
    seen: set[PurePosixPath] = set()
    total = 0
    for member in members:
        path = member_path(member.filename, where=where)
        kind = stat.S_IFMT(member.external_attr >> 16)
        if not path.parts:
            raise UnsafeInputError(f"member {shown(member.filename)} has no name", where=where)
        if path in seen:
            raise UnsafeInputError(f"member {shown(member.filename)} stands twice in the archive", where=where)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise UnsafeInputError(f"member {shown(member.filename)} is a link or a device", where=where)
        if member.flag_bits & 0x1:
            raise UnsafeInputError(f"member {shown(member.filename)} is encrypted", where=where)
        total += member.file_size
        if total > limits.total:
            raise UnsafeInputError(f"unpacks to more than {limits.total} bytes", where=where)
        seen.add(path)
    return members


def extract_member(archive: Path, member: str, target: Path, *, sha256: str, size: int, where: str) -> None:
    """Write one member of a wheel to a new file, verified while it is written.

    Raises:
        DriftError: no such member, or its bytes are not those expected; nothing is kept.
        UnsafeInputError: the wheel is broken or holds what it must not.
        NotCheckedError: the disk is full.
    """
    try:
        with _faults(where), zipfile.ZipFile(archive) as packed:
            found = {each.filename: each for each in zip_members(packed, where=where)}.get(member)
            got = _copy_member(packed, found, target, size) if found else None
        if got != (sha256, size):
            _refuse_member(member, got, sha256=sha256, size=size, where=where)
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def _copy_member(packed: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, size: int) -> tuple[str, int]:
    digest = hashlib.sha256()
    written = 0
    with packed.open(member) as source, target.open("xb") as out:
        while written <= size and (piece := source.read(CHUNK)):
            digest.update(piece)
            out.write(piece)
            written += len(piece)
    return digest.hexdigest(), written


def _refuse_member(member: str, got: tuple[str, int] | None, *, sha256: str, size: int, where: str) -> NoReturn:
    if got is None:
        raise DriftError(f"has no member {shown(member)}", where=where)
    raise DriftError(
        f"member {shown(member)} is not the file that the lock pins",
        where=where,
        why=f"expected sha256 {sha256} of {size} bytes, got {got[0]} of {got[1]}",
    )

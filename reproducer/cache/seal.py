"""The seal of a namespace: the digest of every page that was whole when it was read.

`seal.json` says how many pages there are and names the list of them by its digest; the list lies in `seal/`, one JSON
array a line: path, sha256, size. The list is written first and the seal replaced last, so a killed writer leaves the
old seal whole. Reading one checks everything about it before anything is done with what it says.
"""

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, BinaryIO, Literal, Self

from reproducer.cache.folders import FILE, FOLDER, Root, plain
from reproducer.cache.writing import PARTIAL, sweep_partial, write_in
from reproducer.canonical import content_digest
from reproducer.documents.base import Document, Sha256, Size, Text
from reproducer.errors import NotCheckedError, PennyError, UnsafeInputError
from reproducer.store.faults import writing

SEAL = "seal.json"
LISTS = "seal"
_LARGEST = 65536
_LONGEST_LINE = 32768
_MOST_DIGITS = 2**53
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_ANEW = "look at the namespace; `penny cache seal --accept-changes` seals what lies there now"


class Seal(Document):
    """What was sealed.

    Attributes:
        namespace_digest: the digest over all factors: a seal that was copied from another namespace says nothing here.
        list_sha256: digest of the list of pages, and its name.
        sha256: digest of this document without this key.
    """

    format: Literal["penny-seal/1"] = "penny-seal/1"
    namespace: Text
    namespace_digest: Sha256
    created: Text
    pages: Size
    bytes: Size
    list_sha256: Sha256
    list_size: Size
    sha256: Sha256

    def fault(self, root: Root) -> str:
        """What is wrong with it as the seal of a namespace; empty where nothing is."""
        content = self.content()
        if content.pop("sha256") != content_digest(content):
            return "its digest is not that of what it says"
        if (self.namespace, self.namespace_digest) != (root.name, root.digest):
            return "it is the seal of another namespace"
        return ""


@dataclass(frozen=True)
class Row:
    """One sealed page: its path below the folder of pages, digest and size."""

    path: str
    sha256: str
    size: int

    def line(self) -> bytes:
        """As it stands in the list; control characters and undecodable names are escaped."""
        return json.dumps([self.path, self.sha256, self.size], separators=(",", ":")).encode() + b"\n"


def read_seal(root: Root) -> Seal | None:
    """The seal of a namespace; None where it has none. The list is not read.

    Raises:
        UnsafeInputError: it is a link, no file or another user's.
        NotCheckedError: it is cut short, malformed, another namespace's, or not what its own digest says.
    """
    where = str(root.path / SEAL)
    try:
        handle = os.open(SEAL, FILE, dir_fd=root.handle)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnsafeInputError("the seal is a link or no file", where=where, todo=_ANEW) from error
    with os.fdopen(handle, "rb") as file:
        _refuse_foreign(handle, where)
        data = file.read(_LARGEST + 1)
    try:
        seal = Seal.from_json(data, where=where)
    except PennyError as error:
        raise NotCheckedError("the seal cannot be read", where=where, why=error.what, todo=_ANEW) from error
    if fault := seal.fault(root):
        raise NotCheckedError("the seal does not hold", where=where, why=fault, todo=_ANEW)
    return seal


@contextmanager
def opened_rows(root: Root, seal: Seal) -> Iterator["Rows"]:
    """The sealed pages of a namespace, after the whole list was checked.

    Raises:
        NotCheckedError: the list is missing, cut short or not the one that the seal names.
        UnsafeInputError: it is a link, or names something outside the folder of pages.
    """
    where = str(root.path / LISTS / f"{seal.list_sha256}.jsonl")
    try:
        folder = os.open(LISTS, FOLDER, dir_fd=root.handle)
        try:
            handle = os.open(f"{seal.list_sha256}.jsonl", FILE, dir_fd=folder)
        finally:
            os.close(folder)
    except FileNotFoundError as error:
        raise NotCheckedError("the list of sealed pages is missing", where=where, todo=_ANEW) from error
    except OSError as error:
        raise UnsafeInputError("the list of sealed pages is a link or no file", where=where, todo=_ANEW) from error
    with os.fdopen(handle, "rb") as file:
        _refuse_foreign(handle, where)
        rows = Rows(file, where)
        rows.check(seal)
        yield rows


def _refuse_foreign(handle: int, where: str) -> None:
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        raise UnsafeInputError("is no regular file of yours", where=where, todo=_ANEW)


class Rows:
    """A list of sealed pages, read as often as it is iterated."""

    def __init__(self, file: BinaryIO, where: str) -> None:
        self._file = file
        self._where = where

    def check(self, seal: Seal) -> None:
        """Compare the list with its seal and look at every row, before anything is done with one."""
        digest, length = hashlib.sha256(), 0
        self._file.seek(0)
        while (data := self._file.read(1 << 20)) and length <= seal.list_size:
            digest.update(data)
            length += len(data)
        if (length, digest.hexdigest()) != (seal.list_size, seal.list_sha256):
            raise NotCheckedError(
                "the list of sealed pages is not the one that the seal names",
                where=self._where,
                why=f"{length} of {seal.list_size} bytes" if length < seal.list_size else "its digest differs",
                todo=_ANEW,
            )
        count = size = 0
        for row in self:
            count += 1
            size += row.size
        if (count, size) != (seal.pages, seal.bytes):
            raise NotCheckedError("the list of sealed pages does not add up", where=self._where, todo=_ANEW)

    def __iter__(self) -> Iterator[Row]:
        self._file.seek(0)
        while line := self._file.readline(_LONGEST_LINE):
            yield self._row(line)

    def _row(self, line: bytes) -> Row:
        try:
            data: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UnsafeInputError("a line is no sealed page", where=self._where, todo=_ANEW) from error
        if (
            not isinstance(data, list)
            or [type(each) for each in data] != [str, str, int]
            or len(data[1]) != 64  # noqa: PLR2004  hex digits of a sha256
            or not 0 <= data[2] < _MOST_DIGITS
        ):
            raise UnsafeInputError("a line is no sealed page", where=self._where, todo=_ANEW)
        if not plain(data[0]):
            raise UnsafeInputError(
                f"names a page outside its folder: {data[0][:80]!r}", where=self._where, todo="nothing was changed"
            )
        return Row(*data)


class SealWriter:
    """Writes a list of pages as they come and, at the end, the seal over it."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._digest = hashlib.sha256()
        self._length = self.pages = self.size = 0
        self._partial = f".{secrets.token_hex(8)}{PARTIAL}"
        with writing(root.path, what="the seal"):
            with suppress(FileExistsError):
                os.mkdir(LISTS, 0o700, dir_fd=root.handle)
            self._folder = os.open(LISTS, FOLDER, dir_fd=root.handle)
            sweep_partial(self._folder)
            sweep_partial(root.handle)
            self._file = os.fdopen(os.open(self._partial, _NEW, 0o600, dir_fd=self._folder), "wb", buffering=1 << 18)

    def add(self, row: Row) -> None:
        """One more page."""
        line = row.line()
        self._digest.update(line)
        self._length += len(line)
        self.pages += 1
        self.size += row.size
        self._file.write(line)

    def finish(self) -> Seal:
        """Make the list durable and replace the seal.

        Raises:
            NotCheckedError: the disk is full; the old seal holds on.
        """
        content = {
            "format": "penny-seal/1",
            "namespace": self._root.name,
            "namespace_digest": self._root.digest,
            "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "pages": self.pages,
            "bytes": self.size,
            "list_sha256": self._digest.hexdigest(),
            "list_size": self._length,
        }
        seal = Seal.from_data({**content, "sha256": content_digest(content)}, where=SEAL)
        name = f"{seal.list_sha256}.jsonl"
        with writing(self._root.path, what="the seal"):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            os.rename(self._partial, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            os.fsync(self._folder)
            write_in(self._root.handle, SEAL, seal.canonical() + b"\n")
            with os.scandir(self._folder) as found:
                old = [each.name for each in found if each.name.endswith(".jsonl") and each.name != name]
            for each in old:
                os.unlink(each, dir_fd=self._folder)
        return seal

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing of a list that was not finished."""
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            os.unlink(self._partial, dir_fd=self._folder)
        os.close(self._folder)

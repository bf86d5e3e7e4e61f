"""Objects of a repository, each one hashed while it is read: its name is what it must be.

`git cat-file` finds and unpacks them; whether they are what was asked for is decided here.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any

from reproducer.documents.base import shown
from reproducer.errors import DriftError, NotCheckedError, UnsafeInputError
from reproducer.git.running import start, stop

LARGEST_TREE = 64 << 20
LARGEST_COMMIT = 8 << 20
_CHUNK = 1 << 20
_HEADER = re.compile(rb"^([0-9a-f]{40}|[0-9a-f]{64}) (commit|tree|blob|tag) ([0-9]{1,18})$")
_NAMES = {40: "sha1", 64: "sha256"}
_TREE = re.compile(rb"^tree ([0-9a-f]{40}|[0-9a-f]{64})\n")


class DamagedError(DriftError):
    """A repository in the store lacks an object, or has another one under its name."""


@dataclass(frozen=True)
class Entry:
    """One line of a tree: permission bits and kind as git writes them, a name, and the object."""

    mode: int
    name: str
    oid: str


class Blob:
    """A blob while it is read; what is read is hashed."""

    def __init__(self, pipe: Any, oid: str, kind: str, size: int, where: str) -> None:
        self.size = size
        self._pipe = pipe
        self._oid = oid
        self._left = size
        self._where = where
        self._hash = hasher(oid)
        self._hash.update(f"{kind} {size}\0".encode())

    def read(self, size: int = -1) -> bytes:
        """The next bytes; raises DriftError where the pipe ends early."""
        wanted = self._left if size < 0 else min(size, self._left)
        data: bytes = self._pipe.read(wanted) if wanted else b""
        if len(data) < wanted:
            raise DamagedError(f"object {self._oid} is cut short", where=self._where, todo="fetch it again")
        self._left -= len(data)
        self._hash.update(data)
        return data

    def finish(self) -> None:
        """Read the rest and compare.

        Raises:
            DamagedError: it is not the object of that name.
        """
        while self.read(_CHUNK):
            pass
        self._pipe.read(1)
        if self._hash.hexdigest() != self._oid:
            raise DamagedError(
                f"object {self._oid} is damaged",
                where=self._where,
                why=f"its content has the name {self._hash.hexdigest()}",
            )


def hasher(oid: str) -> Any:
    """The hash that object names of this length are made with."""
    return hashlib.new(_NAMES[len(oid)], usedforsecurity=False)


class Objects:
    """Objects of one repository, from one running git."""

    def __init__(self, git_dir: Path, process: Any) -> None:
        self.where = str(git_dir)
        self._process = process

    def open(self, oid: str, kind: str) -> Blob:
        """An object of that kind, to be read to its end with `finish` before the next one is opened.

        Raises:
            DamagedError: it is not there.
        DriftError: it is of another kind.
            NotCheckedError: git ended.
        """
        try:
            self._process.stdin.write(f"{oid}\n".encode())
            self._process.stdin.flush()
            line: bytes = self._process.stdout.readline(200).rstrip(b"\n")
        except OSError as error:
            raise NotCheckedError("git ended while objects were read", where=self.where, why=str(error)) from error
        match = _HEADER.match(line)
        if match is None or match[1].decode() != oid:
            if not line:
                raise DamagedError(f"object {oid} cannot be read", where=self.where, todo="run `penny fetch`")
            if line.endswith(b" missing"):
                raise DamagedError(f"object {oid} is not there", where=self.where, todo="run `penny fetch`")
            raise NotCheckedError("git does not say what an object is", where=self.where, why=shown(line))
        blob = Blob(self._process.stdout, oid, match[2].decode(), int(match[3]), self.where)
        if match[2].decode() != kind:
            blob.finish()
            raise DriftError(f"{oid} is a {match[2].decode()} and no {kind}", where=self.where)
        return blob

    def read(self, oid: str, kind: str, *, limit: int) -> bytes:
        """The whole of an object.

        Raises:
            UnsafeInputError: it is larger than `limit`.
            DriftError, NotCheckedError: as `open` and `finish`.
        """
        blob = self.open(oid, kind)
        if blob.size > limit:
            raise UnsafeInputError(f"the {kind} {oid} is larger than {limit} bytes", where=self.where)
        data = blob.read()
        blob.finish()
        return data

    def tree_of(self, commit: str) -> str:
        """The tree of a commit; raises as `read`."""
        data = self.read(commit, "commit", limit=LARGEST_COMMIT)
        match = _TREE.match(data)
        if match is None:
            raise DriftError(f"commit {commit} names no tree", where=self.where)
        return match[1].decode()

    def entries(self, tree: str) -> list[Entry]:
        """The lines of a tree; raises as `read`, and UnsafeInputError for names that no source tree has."""
        data = self.read(tree, "tree", limit=LARGEST_TREE)
        width = len(tree) // 2
        found: list[Entry] = []
        names: set[str] = set()
        at = 0
        while at < len(data):
            space, end = data.find(b" ", at, at + 8), data.find(b"\0", at)
            mode = data[at:space]
            if space < 0 or end < space or not re.fullmatch(rb"[0-7]{5,6}", mode) or end + 1 + width > len(data):
                raise UnsafeInputError(f"tree {tree} makes no sense", where=self.where)
            try:
                name = data[space + 1 : end].decode("utf-8")
            except UnicodeDecodeError as error:
                raise UnsafeInputError(
                    f"the name {shown(data[space + 1 : end])} is not UTF-8", where=self.where
                ) from error
            if name in names:
                raise UnsafeInputError(f"the name {shown(name)} stands twice in one tree", where=self.where)
            names.add(name)
            found.append(Entry(int(mode, 8), name, data[end + 1 : end + 1 + width].hex()))
            at = end + 1 + width
        return found


@contextmanager
def objects(git_dir: Path) -> Iterator[Objects]:
    """The objects of a repository, until the context ends; raises NotCheckedError where there is no git."""
    process = start(["cat-file", "--batch"], folder=git_dir, git_dir=git_dir, feed=PIPE)
    try:
        yield Objects(git_dir, process)
    finally:
        stop(process)

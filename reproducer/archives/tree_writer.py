"""Writing what strangers packed below one new folder: nothing leaves it, grows without bound or depends on the host.

Each member is created new below folders that this module made itself. Modes become 644 or 755 and every time becomes
the given epoch.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from reproducer.documents.base import shown
from reproducer.errors import UnsafeInputError

CHUNK = 1 << 20
_LONGEST_PATH = 1024
_LONGEST_PART = 255
_DEEPEST = 64


@dataclass(frozen=True)
class Limits:
    """How large an archive may become.

    Attributes:
        members: number of files, folders and links.
        total: unpacked bytes.
        ratio: unpacked bytes per packed byte, counted once `floor` bytes are unpacked.
        floor: bytes below which the ratio does not count.
    """

    members: int = 200_000
    total: int = 8 << 30
    ratio: int = 100
    floor: int = 64 << 20

    def allowed(self, packed: int) -> int:
        """The unpacked bytes that an archive of `packed` bytes may have."""
        return min(self.total, max(self.floor, packed * self.ratio))


DEFAULT_LIMITS = Limits()


def member_path(name: str, *, where: str) -> PurePosixPath:
    """The relative path of a member; a trailing slash and leading `./` are dropped.

    Raises:
        UnsafeInputError: absolute, leaves the folder, or holds what no path of a source tree holds.
    """
    if name.startswith("/"):
        raise UnsafeInputError(f"member {shown(name)} has an absolute path", where=where)
    if "\\" in name or any(ord(character) < ord(" ") or ord(character) == 127 for character in name):  # noqa: PLR2004  DEL
        raise UnsafeInputError(f"member {shown(name)} holds a backslash or a control character", where=where)
    try:
        name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UnsafeInputError(f"member {shown(name)} is not UTF-8", where=where) from error
    path = PurePosixPath(name)
    if ".." in path.parts:
        raise UnsafeInputError(f"member {shown(name)} leaves its folder", where=where)
    if len(name) > _LONGEST_PATH or len(path.parts) > _DEEPEST or any(len(p) > _LONGEST_PART for p in path.parts):
        raise UnsafeInputError(f"member {shown(name)} has a path that is too long", where=where)
    return path


class Source(Protocol):
    """What a file's bytes are read from."""

    def read(self, size: int = -1, /) -> bytes:
        """At most so many of the next bytes."""


class TreeWriter:
    """Writes members below one new folder and keeps count."""

    def __init__(self, folder: Path, *, where: str, epoch: int, limits: Limits, allowed: int) -> None:
        self.folder = folder
        self.where = where
        self.epoch = epoch
        self.limits = limits
        self.allowed = allowed
        self.total = 0
        self.kinds: dict[PurePosixPath, str] = {}
        self.implied: set[PurePosixPath] = set()

    def claim(self, path: PurePosixPath, kind: str) -> Path:
        """Reserve a path for one member and make the folders above it."""
        if path in self.kinds:
            raise UnsafeInputError(f"member {shown(str(path))} stands twice in the archive", where=self.where)
        if len(self.kinds) + len(self.implied) >= self.limits.members:
            raise UnsafeInputError(f"has more than {self.limits.members} members", where=self.where)
        for parent in reversed(path.parents[:-1]):
            known = self.kinds.get(parent)
            if known is None and parent not in self.implied:
                self.implied.add(parent)
                (self.folder / parent).mkdir(mode=0o755)
            elif known not in (None, "folder"):
                raise UnsafeInputError(
                    f"member {shown(str(path))} lies below {shown(str(parent))}, which is a {known}", where=self.where
                )
        target = self.folder / path
        if kind != "folder" and target.is_dir():
            raise UnsafeInputError(f"member {shown(str(path))} is both a {kind} and a folder", where=self.where)
        self.kinds[path] = kind
        return target

    def grow(self, amount: int, path: PurePosixPath) -> None:
        """Count the bytes that a member says it has; no more than that many are ever written for it."""
        self.total += amount
        if self.total > self.allowed:
            raise UnsafeInputError(
                f"grows beyond {self.allowed} bytes at member {shown(str(path))}",
                where=self.where,
                why="more than a source archive of this size unpacks to",
            )

    def directory(self, path: PurePosixPath) -> None:
        """Make a folder."""
        self.claim(path, "folder").mkdir(mode=0o755, exist_ok=path in self.implied)

    def file(self, path: PurePosixPath, source: Source, size: int, *, executable: bool) -> None:
        """Write a file of exactly this size."""
        target = self.claim(path, "file")
        self.grow(size, path)
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as out:
            left = size
            while left:
                piece = source.read(min(CHUNK, left))
                if not piece:
                    raise UnsafeInputError(f"member {shown(str(path))} is cut short", where=self.where)
                out.write(piece)
                left -= len(piece)
            os.fchmod(out.fileno(), 0o755 if executable else 0o644)

    def copy(self, path: PurePosixPath, original: PurePosixPath) -> None:
        """A hard link becomes a copy of the member that it names."""
        if self.kinds.get(original) != "file":
            raise UnsafeInputError(
                f"member {shown(str(path))} is a hard link to {shown(str(original))}, which is no earlier file",
                where=self.where,
            )
        source = self.folder / original
        with source.open("rb") as file:
            status = os.fstat(file.fileno())
            self.file(path, file, status.st_size, executable=bool(status.st_mode & stat.S_IXUSR))

    def symlink(self, path: PurePosixPath, target: str) -> None:
        """Make a link; where it leads in the end is looked at when everything is there."""
        inside = PurePosixPath(os.path.normpath(path.parent / target))
        if target.startswith("/") or ".." in inside.parts or not target:
            raise UnsafeInputError(
                f"member {shown(str(path))} is a link that leaves: {shown(target)}", where=self.where
            )
        self.claim(path, "link").symlink_to(target)

    def finish(self) -> None:
        """Check that no chain of links leaves, then give every entry mode and time, deepest first."""
        root = self.folder.resolve()
        for path, kind in self.kinds.items():
            if kind == "link" and not Path(os.path.realpath(self.folder / path)).is_relative_to(root):
                raise UnsafeInputError(f"member {shown(str(path))} is a link that leaves", where=self.where)
        settle(self.folder, self.epoch)


def settle(folder: Path, epoch: int) -> None:
    """Give everything below a folder, and the folder, normal modes (644 or 755) and one time in seconds."""
    for top, folders, files in os.walk(folder, topdown=False):
        for name in (*files, *folders):
            path = Path(top, name)
            if not path.is_symlink():
                keep = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
                path.chmod(0o755 if keep else 0o644)
            os.utime(path, (epoch, epoch), follow_symlinks=False)
    folder.chmod(0o755)
    os.utime(folder, (epoch, epoch))

"""The content-addressed store: files by sha256, folders by key; atomic, verified, safe for two processes."""

import errno
import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from reproducer.errors import DriftError, NotCheckedError, UnsafeInputError
from reproducer.progress import Reporter, Silent
from reproducer.store.durable import sync_file, sync_folder
from reproducer.store.entries import Entry
from reproducer.store.exclusive import exclusive
from reproducer.store.faults import writing
from reproducer.store.hashing import CHUNK, hash_file
from reproducer.store.layout import prepare, private_folder

_DIGEST = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


def default_root() -> Path:
    """`PENNY_STORE`, or `penny` in the user's cache folder."""
    named = os.environ.get("PENNY_STORE")
    if named:
        return Path(named).expanduser().absolute()
    from platformdirs import user_cache_path

    return user_cache_path("penny")


class Store:
    """Files and folders under one root; made on first use.

    Attributes:
        root: the absolute path of the store.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().absolute()
        self._prepared = False

    def prepare(self) -> None:
        """Make or check the layout and sweep what dead processes left; every other method does it on first use.

        Raises:
            UsageError, UnsafeInputError, NotCheckedError: as `reproducer.store.layout.prepare`.
        """
        if not self._prepared:
            prepare(self.root)
            self._prepared = True

    def blob_path(self, sha256: str) -> Path:
        """Where a file of that digest lies, whether it is there or not.

        Raises:
            UnsafeInputError: not a hex sha256.
        """
        if not _DIGEST.fullmatch(sha256):
            raise UnsafeInputError("a digest is 64 hex digits", why=f"got {sha256[:80]!r}")
        return self.root / "blobs" / sha256[:2] / sha256

    def has(self, sha256: str) -> bool:
        """Whether a file of that name is there; says nothing about its bytes."""
        self.prepare()
        path = self._own_path(sha256)
        return path.is_file() and not path.is_symlink()

    def verified(self, sha256: str, size: int, *, what: str) -> Path:
        """The path of a file whose bytes were just hashed.

        Args:
            sha256: hex digest.
            size: bytes, as the lock says.
            what: the file's name for a person.

        Raises:
            DriftError: absent; damaged (it is set aside and never served); or of another size than the lock says.
            NotCheckedError: it cannot be read.
        """
        self.prepare()
        path = self._own_path(sha256)
        got = self._state(path)
        if got is None:
            raise DriftError(f"{what} is not in the store", where=str(path), todo="run `penny fetch`")
        digest, length = got
        if digest == sha256 and length == size:
            return path
        expected = f"expected sha256 {sha256} of {size} bytes, got {digest} of {length} bytes"
        if digest == sha256:
            raise DriftError(f"{what} has another size than the lock says", where=str(path), why=expected)
        aside = self._set_aside(path, sha256)
        raise DriftError(
            f"{what} is damaged in the store",
            where=str(path),
            why=expected,
            todo=f"it was set aside as {aside}; run `penny fetch` to bring it again",
        )

    def add_file(self, path: Path, *, sha256: str, size: int, what: str) -> Path:
        """Copy a file in, verified while it is copied; one that is there already is verified instead.

        Raises:
            DriftError: its bytes are not those expected; nothing is kept.
            NotCheckedError: it cannot be read, or the disk is full.
        """
        self.prepare()
        if self.has(sha256):
            try:
                return self.verified(sha256, size, what=what)
            except DriftError:
                if self.has(sha256):
                    raise
        with self.private_folder() as folder:
            temporary = folder / "blob"
            digest, length = self._copy(path, temporary, limit=size, what=what)
            if length > size:
                raise _not_expected(what, path, sha256, size, f"more than {size} bytes")
            if (digest, length) != (sha256, size):
                raise _not_expected(what, path, sha256, size, f"{digest} of {length} bytes")
            return self.adopt(temporary, sha256=sha256, size=size)

    def add_bytes(self, data: bytes) -> str:
        """Put bytes in; returns their sha256.

        Raises:
            NotCheckedError: the disk is full or cannot be written.
        """
        self.prepare()
        sha256 = hashlib.sha256(data).hexdigest()
        path = self._own_path(sha256)
        if self._state(path) != (sha256, len(data)):
            with self.private_folder() as folder:
                temporary = folder / "blob"
                with writing(self.root, what="a file of the store", needed=len(data)):
                    temporary.write_bytes(data)
                self.adopt(temporary, sha256=sha256, size=len(data))
        return sha256

    def adopt(self, temporary: Path, *, sha256: str, size: int) -> Path:
        """Move a file on the store's disk, whose bytes the caller has just verified, to its place; atomic.

        Raises:
            NotCheckedError: the disk is full or cannot be written.
        """
        self.prepare()
        path = self._own_path(sha256)
        with (
            exclusive(self.lock_path(f"blob-{sha256}"), reporter=Silent(), what=f"storing {sha256[:12]}"),
            writing(self.root, what="a file of the store", needed=size),
        ):
            temporary.chmod(0o444)
            sync_file(temporary)
            path.parent.mkdir(exist_ok=True)
            temporary.rename(path)
            sync_folder(path.parent)
        return path

    @contextmanager
    def entry(self, kind: str, key: str, *, reporter: Reporter) -> Iterator[Entry]:
        """A folder that is built once a key; nobody else holds it while the context is open.

        Args:
            kind: what sort of folder, a short lower-case word.
            key: what it depends on, usually a digest.
            reporter: is told when another penny has to be waited for.

        Raises:
            UnsafeInputError: kind or key is no plain name.
            NotCheckedError: the store cannot be written.
        """
        for name in (kind, key):
            if not _NAME.fullmatch(name):
                raise UnsafeInputError("an entry has a plain lower-case name", why=f"got {name[:80]!r}")
        self.prepare()
        label = f"{kind} {key[:12]}"
        with (
            exclusive(self.lock_path(f"entry-{kind}-{key}"), reporter=reporter, what=f"it builds {label}"),
            ExitStack() as scope,
        ):
            yield Entry(self.root, kind, key, reporter=reporter, scope=scope)

    def private_folder(self) -> AbstractContextManager[Path]:
        """A fresh folder on the store's disk that is gone afterwards, or swept by the next run after a kill."""
        self.prepare()
        return private_folder(self.root)

    def lock_path(self, name: str) -> Path:
        """The lock file for a name of this store, for `exclusive`."""
        return self.root / "locks" / f"{name}.lock"

    def _own_path(self, sha256: str) -> Path:
        """As `blob_path`, in a folder that does not lead out of the store."""
        path = self.blob_path(sha256)
        if path.parent.is_symlink():
            raise UnsafeInputError(
                "a piece of the store is a symbolic link", where=str(path.parent), todo="remove the link"
            )
        return path

    def _state(self, path: Path) -> tuple[str, int] | None:
        """Digest and size of what lies there; None where nothing does."""
        try:
            return hash_file(path)
        except FileNotFoundError:
            return None
        except UnsafeInputError:
            return "something that is no regular file", 0
        except OSError as error:
            if error.errno == errno.ELOOP:
                return "a symbolic link", 0
            raise NotCheckedError("cannot be read", where=str(path), why=error.strerror or str(error)) from error

    def _set_aside(self, path: Path, sha256: str) -> Path:
        """Move a damaged file out of the way, unless another process has put a good one there meanwhile."""
        aside = self.root / "damaged" / f"{sha256}-{secrets.token_hex(4)}"
        with exclusive(self.lock_path(f"blob-{sha256}"), reporter=Silent(), what=f"storing {sha256[:12]}"):
            state = self._state(path)
            if state is not None and state[0] != sha256:
                with writing(self.root, what="the damaged file"):
                    path.rename(aside)
        return aside

    def _copy(self, source: Path, target: Path, *, limit: int, what: str) -> tuple[str, int]:
        """Copy at most one piece beyond `limit` bytes; digest and size of what was read."""
        digest, length = hashlib.sha256(), 0
        try:
            reader = source.open("rb", buffering=0)
        except OSError as error:
            raise NotCheckedError("cannot be read", where=str(source), why=error.strerror or str(error)) from error
        with reader, writing(self.root, what=what, needed=limit), target.open("wb", buffering=0) as writer:
            while length <= limit:
                try:
                    piece = reader.read(CHUNK)
                except OSError as error:
                    raise NotCheckedError("cannot be read", where=str(source), why=str(error.strerror)) from error
                if not piece:
                    break
                digest.update(piece)
                length += len(piece)
                write_all(writer.fileno(), piece)
        return digest.hexdigest(), length


def write_all(handle: int, data: bytes) -> None:
    """Write every byte; a full disk shows as OSError even where a part still fitted."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _not_expected(what: str, path: Path, sha256: str, size: int, got: str) -> DriftError:
    return DriftError(
        f"{what} is not the file that was expected",
        where=str(path),
        why=f"expected sha256 {sha256} of {size} bytes, got {got}",
    )

"""The folder that an engine is started with: exactly the locked files, as an entry of the store.

A snapshot in the hub's cache, or a person's own folder, can hold more than the lock names, and an engine that lists its
folder would open it. So the locked files alone are put into a sealed entry: as copies that share their blocks where the
file system can (reflinks), else as hard links, else (another disk) as copies. Before each use every file is hashed.
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from reproducer.canonical import content_digest
from reproducer.documents.built import TreeDigest
from reproducer.documents.lock import Checkpoint
from reproducer.documents.sources import HubSource
from reproducer.errors import DriftError, NotCheckedError
from reproducer.hub.listing import HubFile, check_names
from reproducer.progress import Reporter
from reproducer.store import Store
from reproducer.store.faults import free_bytes, full, writing
from reproducer.store.hashing import tree_digest

KIND = "checkpoint"
CONTENT = "checkpoint"
_FICLONE = 0x40049409
_NO_LINK = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP)


def files_of(checkpoint: Checkpoint) -> tuple[HubFile, ...]:
    """The locked files of a checkpoint, by the names under which a hub's cache keeps them.

    Raises:
        NotCheckedError: nobody knows them yet.
        UnsafeInputError: paths that cannot lie in one folder.
    """
    if checkpoint.files == "unknown":
        raise NotCheckedError(
            f"the files of checkpoint {checkpoint.name} are not known",
            why="the lock pins its revision only, so nothing says what its bytes are",
            todo="run `penny fetch`, then `penny lock`, which completes it",
        )
    check_names((file.path for file in checkpoint.listed), where=checkpoint.name)
    return tuple(HubFile(file.path, file.size, file.blob, file.sha256) for file in checkpoint.listed)


def entry_key(checkpoint: Checkpoint) -> str:
    """The entry's key: a digest over exactly the files, so that one folder serves wherever the bytes came from."""
    files = sorted([file.path, file.sha256] for file in checkpoint.listed)
    return content_digest({"kind": "checkpoint-files", "version": 1, "files": files})


def presented(store: Store, checkpoint: Checkpoint, *, reporter: Reporter) -> Path | None:
    """The folder with exactly the locked files, every one of them hashed just now; None where it is not there.

    Raises:
        NotCheckedError: the files are not known, or cannot be read.
    """
    expected = _expected(files_of(checkpoint))
    with store.entry(KIND, entry_key(checkpoint), reporter=reporter) as entry:
        if not entry.complete:
            return None
        try:
            if entry.check() == expected:
                return entry.folder / CONTENT
        except DriftError as error:
            reporter.note(f"checkpoint {checkpoint.name}: {error}")
    return None


def present(store: Store, checkpoint: Checkpoint, places: Mapping[str, Path], *, reporter: Reporter) -> Path:
    """Put the locked files into a folder of their own; every byte is hashed on the way.

    Args:
        store: where to.
        checkpoint: whose files.
        reporter: is told what had to be copied.
        places: where each file lies, by its path in the checkpoint.

    Raises:
        DriftError: a file changed since it was verified.
        NotCheckedError: the disk is full or cannot be written.
    """
    files = files_of(checkpoint)
    with store.entry(KIND, entry_key(checkpoint), reporter=reporter) as entry:
        folder = entry.work / CONTENT
        copied = 0
        for file in files:
            target = folder / file.path
            with writing(store.root, what=f"checkpoint {checkpoint.name}"):
                target.parent.mkdir(parents=True, exist_ok=True)
            copied += _put(places[file.path], target, store=store, what=f"checkpoint {checkpoint.name}")
        if copied:
            reporter.note(f"checkpoint {checkpoint.name}: {copied} files are copied, for they lie on another disk")
        entry.commit()
        if entry.check() != _expected(files):
            raise DriftError(
                f"checkpoint {checkpoint.name}: a file changed after it was verified",
                where=str(entry.folder),
                todo="run `penny fetch` again",
            )
        return entry.folder / CONTENT


def origin_of(checkpoint: Checkpoint) -> str:
    """Where a checkpoint comes from, for a person."""
    source = checkpoint.source
    return f"{source.repository} at {source.revision}" if isinstance(source, HubSource) else "a folder"


def _expected(files: tuple[HubFile, ...]) -> TreeDigest:
    from reproducer.documents.base import FileReference

    paths = {f"{CONTENT}/{file.path}": file for file in files}
    return tree_digest(
        {
            path: FileReference.model_construct(path=path, sha256=file.sha256 or "", size=file.size)
            for path, file in paths.items()
        }
    )


def _put(source: Path, target: Path, *, store: Store, what: str) -> int:
    """Give the file a second place; 1 where its bytes had to be copied."""
    with writing(store.root, what=what):
        if _cloned(source, target):
            return 0
        try:
            os.link(source, target, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
        else:
            return 0
    size = source.stat().st_size
    free = free_bytes(store.root)
    if free is not None and size > free:
        raise full(store.root, what=what, needed=size)
    with writing(store.root, what=what, needed=size):
        shutil.copyfile(source, target, follow_symlinks=False)
    return 1


def _cloned(source: Path, target: Path) -> bool:
    """A copy that shares its blocks, where the file system can."""
    with source.open("rb") as reader, target.open("xb") as writer, suppress(OSError):
        fcntl.ioctl(writer.fileno(), _FICLONE, reader.fileno())
        return True
    target.unlink()
    return False

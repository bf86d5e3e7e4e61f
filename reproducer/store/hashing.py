"""sha256 of files and trees in parallel threads: hashlib lets go of the interpreter while it computes."""

import hashlib
import mmap
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

from reproducer.canonical import content_digest
from reproducer.documents.base import FileReference, shown
from reproducer.documents.built import TreeDigest
from reproducer.errors import NotCheckedError, PennyError, UnsafeInputError
from reproducer.progress import Reporter, Silent
from reproducer.store.mapped import update_mapped

CHUNK = 1 << 20
_FILES_A_BATCH = 256
_SMALL = 256 << 10
_LARGE = 4 << 20
_STRANGE = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
_Progress = Callable[[int], None]


class LinkReference(FileReference):
    """A symbolic link, recorded and never followed; `sha256` and `size` are those of the target's text."""

    target: str


def workers_here() -> int:
    """How many threads keep this machine's processors busy; more than one a processor hides opening of files."""
    return min(2 * len(os.sched_getaffinity(0)), 32)


def hash_file(path: Path, *, progress: _Progress | None = None) -> tuple[str, int]:
    """Digest and size of one regular file, in flat memory.

    Args:
        path: the file; a symbolic link in the last place is refused with an OSError (ELOOP).
        progress: called with the bytes of every piece.

    Returns:
        Hex sha256 and size in bytes.

    Raises:
        OSError: as the operating system says it.
        UnsafeInputError: a folder, a device, a socket or a pipe.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise UnsafeInputError("is not a regular file", where=str(path))
        return _hash_handle(handle, status.st_size, progress)
    finally:
        os.close(handle)


def hash_tree(
    folder: Path, *, workers: int | None = None, reporter: Reporter | None = None
) -> dict[str, FileReference]:
    """Every file below a folder with digest and size; symbolic links as `LinkReference`, never followed.

    Args:
        folder: the tree's root.
        workers: threads; None for as many as the machine serves.
        reporter: is shown progress in bytes.

    Returns:
        References by relative path, sorted by path. Empty folders do not count.

    Raises:
        UnsafeInputError: a device, socket or pipe, or a name that no document carries.
        NotCheckedError: a file cannot be read, or changed while it was read.
    """
    found: dict[str, FileReference] = {}
    sizes: list[tuple[int, str]] = []
    try:
        for path, status in _walk(str(folder), ""):
            if status is None:
                found[path] = _link(path, str((folder / path).readlink()))
            else:
                sizes.append((status.st_size, path))
    except OSError as error:
        raise _unreadable(error, folder) from error
    total = sum(size for size, _ in sizes)
    with (
        (reporter or Silent()).task(f"hashing {folder.name}", total, "bytes") as task,
        ThreadPoolExecutor(workers or workers_here(), thread_name_prefix="hash") as pool,
    ):
        guard = Lock()

        def progress(amount: int) -> None:
            with guard:
                task.advance(amount)

        def hash_batch(batch: Sequence[tuple[int, str]]) -> list[FileReference]:
            return _hash_batch(str(folder), batch, progress)

        for references in pool.map(hash_batch, _batches(sizes)):
            found.update((reference.path, reference) for reference in references)
    return dict(sorted(found.items()))


def tree_digest(files: Mapping[str, FileReference]) -> TreeDigest:
    """One digest over a tree: sha256 over the RFC 8785 JSON of {path: sha256}.

    The value of a symbolic link is `link:` and the sha256 of its target's text, which no file's value can be.
    """
    content = {
        path: f"link:{reference.sha256}" if isinstance(reference, LinkReference) else reference.sha256
        for path, reference in files.items()
    }
    real = [reference.size for reference in files.values() if not isinstance(reference, LinkReference)]
    return TreeDigest(files=len(real), bytes=sum(real), sha256=content_digest(content))


def _walk(root: str, prefix: str) -> Iterator[tuple[str, os.stat_result | None]]:
    """Relative paths of files with their status, of links with None."""
    folders = []
    with os.scandir(f"{root}/{prefix}") as entries:
        for entry in entries:
            path = prefix + entry.name
            if _STRANGE.search(entry.name) or path.startswith("-"):
                raise UnsafeInputError(f"the name {shown(path)} cannot stand in a document", where=root)
            if entry.is_symlink():
                yield path, None
            elif entry.is_dir(follow_symlinks=False):
                folders.append(path)
            elif entry.is_file(follow_symlinks=False):
                yield path, entry.stat(follow_symlinks=False)
            else:
                raise UnsafeInputError(f"{shown(path)} is neither file, folder nor link", where=root)
    for path in folders:
        yield from _walk(root, f"{path}/")


def _batches(sizes: list[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Large files first and alone, so that no thread ends up with the last one; small ones by the hundred."""
    ordered = sorted(sizes, reverse=True)
    small = next((index for index, (size, _) in enumerate(ordered) if size < _SMALL), len(ordered))
    for item in ordered[:small]:
        yield [item]
    for start in range(small, len(ordered), _FILES_A_BATCH):
        yield ordered[start : start + _FILES_A_BATCH]


def _hash_batch(root: str, batch: Sequence[tuple[int, str]], progress: _Progress) -> list[FileReference]:
    references = []
    done = 0
    for size, path in batch:
        try:
            handle = os.open(f"{root}/{path}", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                digest, got = _hash_handle(handle, size, progress if size >= _SMALL else None)
            finally:
                os.close(handle)
        except OSError as error:
            raise _unreadable(error, Path(root) / path) from error
        if got != size:
            raise NotCheckedError("changed while it was read", where=f"{root}/{path}", why=f"{size} bytes, then {got}")
        # The walk checked the path; validating 30,000 of them again would cost more than hashing them.
        references.append(FileReference.model_construct(path=path, sha256=digest, size=size))
        if size < _SMALL:
            done += size
    if done:
        progress(done)
    return references


def _hash_handle(handle: int, expected: int, progress: _Progress | None) -> tuple[str, int]:
    if expected < CHUNK:
        data = os.read(handle, expected + 1)
        if len(data) == expected:
            if progress:
                progress(expected)
            return hashlib.sha256(data).hexdigest(), expected
        digest, size = hashlib.sha256(data), len(data)
    else:
        digest, size = hashlib.sha256(), 0
        if expected >= _LARGE and (size := update_mapped(digest, handle, expected, progress)):
            os.lseek(handle, size, os.SEEK_SET)
    # A whole page at its start: the kernel copies five times as slowly to where a bytearray of this size may begin.
    with mmap.mmap(-1, CHUNK) as buffer, memoryview(buffer) as view:
        while count := os.readv(handle, [view]):
            with view[:count] as piece:
                digest.update(piece)
            size += count
            if progress:
                progress(count)
    return digest.hexdigest(), size


def _link(path: str, target: str) -> LinkReference:
    if _STRANGE.search(target):
        raise UnsafeInputError(f"the link {shown(path)} has a target that cannot stand in a document", where=path)
    data = target.encode()
    digest = hashlib.sha256(data).hexdigest()
    return LinkReference.model_construct(path=path, sha256=digest, size=len(data), target=target)


def _unreadable(error: OSError, path: Path) -> PennyError:
    return NotCheckedError("cannot be read", where=str(path), why=error.strerror or str(error))

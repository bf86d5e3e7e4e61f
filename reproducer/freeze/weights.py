"""The checkpoint folders of a running server: which revision of which repository they are, verified, or just files.

What a hub's client noted when it downloaded is used to say which file is which, and then every file is hashed: metadata
that the bytes contradict says nothing.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from reproducer.documents.base import shown
from reproducer.documents.lock import Checkpoint, CheckpointFile, Role
from reproducer.documents.sources import FolderSource, HubSource
from reproducer.errors import DriftError, NotCheckedError, UnsafeInputError, UsageError
from reproducer.freeze.notes_on_disk import small_file
from reproducer.progress import Reporter, Task
from reproducer.store.hashing import hash_file, workers_here

_SNAPSHOT = re.compile(r"models--([A-Za-z0-9._-]+?)--([A-Za-z0-9._-]+)/snapshots/([0-9a-f]{40})/?$")
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9_][A-Za-z0-9._-]*")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_DOWNLOADED = (".cache", "huggingface", "download")
_MOST_FILES = 20_000
_SMALL = 64 << 20
_LARGEST_NOTE = 4096
_GIT, _LFS = 40, 64


@dataclass(frozen=True)
class Weights:
    """One checkpoint as it lies there.

    Attributes:
        folder: where it lies.
        stated: what the lock says of it.
        doubts: what could not be known, and why.
    """

    folder: Path
    stated: Checkpoint
    doubts: tuple[str, ...]


@dataclass(frozen=True)
class Named:
    """What an argument names: a folder, and the repository where it names one.

    Attributes:
        repository: `owner/name` on a hub; None for a folder.
    """

    folder: Path
    repository: str | None


def resolve(text: str, *, revision: str | None, cwd: Path, environ: Mapping[str, str], since: float) -> Named:
    """The folder that a server reads its checkpoint from.

    Args:
        text: the argument: a folder, or a repository of a hub.
        revision: the argument that names one; None without.
        cwd: of the server.
        environ: of the server, which says where a hub's cache lies.
        since: when the server started (seconds since the epoch).

    Raises:
        NotCheckedError: it is not there, or the cache does not say which revision was read.
    """
    folder = Path(os.path.normpath(cwd / text))
    if folder.is_dir():
        return Named(folder, None)
    if not _REPOSITORY.fullmatch(text):
        raise NotCheckedError("the checkpoint is not there any more", where=shown(text))
    repository = _cache(environ) / f"models--{text.replace('/', '--')}"
    snapshots = repository / "snapshots"
    wanted = revision or "main"
    if not _COMMIT.fullmatch(wanted):
        wanted = _reference(repository, wanted, since)
    found = snapshots / wanted
    if not found.is_dir():
        raise NotCheckedError(
            f"{text} at {wanted} is not in the hub's cache",
            where=str(snapshots),
            todo="name the folder with --checkpoint target=FOLDER",
        )
    return Named(found, text)


def _cache(environ: Mapping[str, str]) -> Path:
    if place := environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(place)
    if home := environ.get("HF_HOME"):
        return Path(home) / "hub"
    cache = environ.get("XDG_CACHE_HOME") or f"{environ.get('HOME', str(Path.home()))}/.cache"
    return Path(cache) / "huggingface" / "hub"


def _reference(repository: Path, name: str, since: float) -> str:
    """The commit that a branch meant when the server started.

    Raises:
        NotCheckedError: the cache does not know it, or it has moved since and nothing says what it was.
    """
    path = repository / "refs" / name
    try:
        moved = path.stat().st_mtime > since
        commit = (small_file(path, _LARGEST_NOTE) or b"").decode("ascii", "replace").strip()
        kept = [each.name for each in (repository / "snapshots").iterdir()]
    except OSError as error:
        raise NotCheckedError("the hub's cache cannot be read", where=str(path), why=error.strerror or "") from error
    if not _COMMIT.fullmatch(commit):
        raise NotCheckedError("the hub's cache does not say which revision it holds", where=str(path))
    if moved and kept != [commit]:
        raise NotCheckedError(
            f"{shown(name)} was moved in the hub's cache after the server started",
            where=str(path),
            why=f"the server may have read any of {len(kept)} revisions",
            todo="name the folder with --checkpoint target=FOLDER",
        )
    return commit


def read(named: Named, *, name: str, role: Role, trust_remote_code: bool, reporter: Reporter) -> Weights:
    """Hash every file of a checkpoint and say what it is.

    Raises:
        UsageError: there is nothing in it.
        UnsafeInputError: a name that no lock carries, a link that leads elsewhere.
        NotCheckedError: a file cannot be read.
    """
    folder = named.folder
    snapshot = _SNAPSHOT.search(str(folder))
    inside = folder.parent.parent if snapshot is not None else folder
    paths = sorted(_files(folder, inside))
    if not paths:
        raise UsageError("the checkpoint's folder holds no files", where=str(folder))
    noted = dict(_noted(folder, paths, snapshot is not None))
    with (
        reporter.task(f"hashing {name}", sum((folder / each).stat().st_size for each in paths), "bytes") as task,
        ThreadPoolExecutor(workers_here(), thread_name_prefix="hash") as pool,
    ):
        advance = _guarded(task)
        files = tuple(pool.map(lambda path: _hashed(folder, path, noted.get(path), advance), paths))
    doubts: list[str] = []
    source: HubSource | FolderSource = FolderSource()
    others = sorted(path for path, note in noted.items() if not _is(next(f for f in files if f.path == path), note))
    revisions = {note.commit for note in noted.values()} | ({snapshot[3]} if snapshot is not None else set())
    repository = f"{snapshot[1]}/{snapshot[2]}" if snapshot is not None else named.repository
    unnoted = sorted(set(paths) - noted.keys())
    if others:
        doubts.append(f"files are not those that the hub served: {', '.join(map(shown, others[:4]))}")
    elif unnoted and (snapshot is not None or noted):
        doubts.append(f"no hub's client noted these files: {', '.join(map(shown, unnoted[:4]))}")
    elif noted and len(revisions) > 1:
        doubts.append("its files come from several revisions")
    elif noted and repository is None:
        doubts.append(f"its files are those of revision {next(iter(revisions))} of a repository that nothing names")
    elif noted and repository is not None:
        source = HubSource(repository=repository, revision=next(iter(revisions)))
    else:
        doubts.append("nothing says where its files come from; they are known by their digests")
    stated = Checkpoint(
        name=name, role=role, source=source, trust_remote_code=trust_remote_code, files=_without_foreign(files, noted)
    )
    return Weights(folder, stated, tuple(doubts))


@dataclass(frozen=True)
class _Note:
    """What a client noted of a file: the revision, and the digest that names its content on the hub."""

    commit: str
    etag: str


def _files(folder: Path, inside: Path) -> Iterator[str]:
    """Relative paths of all files; links only where they stay inside."""
    count = 0
    root = inside.resolve()
    for top, folders, files in os.walk(folder):
        below = Path(top).relative_to(folder)
        folders[:] = sorted(each for each in folders if each != ".git" and (below.parts or each != ".cache"))
        for name in sorted(files):
            target = Path(top, name)
            count += 1
            if count > _MOST_FILES:
                raise NotCheckedError(f"holds more than {_MOST_FILES} files", where=str(folder))
            if target.is_symlink() and not target.resolve().is_relative_to(root):
                raise UnsafeInputError(f"{shown(name)} is a link that leads out of the checkpoint", where=str(folder))
            yield (below / name).as_posix()


def _noted(folder: Path, paths: list[str], is_snapshot: bool) -> Iterator[tuple[str, _Note]]:  # noqa: FBT001  one caller
    for path in paths:
        if is_snapshot:
            target = folder / path
            if target.is_symlink() and (target.resolve().parent.name == "blobs"):
                yield path, _Note(folder.name, target.resolve().name)
            continue
        note = folder.joinpath(*_DOWNLOADED, f"{path}.metadata")
        lines = (small_file(note, _LARGEST_NOTE) or b"").decode("ascii", "replace").splitlines()
        if len(lines) > 1 and _COMMIT.fullmatch(lines[0].strip()):
            yield path, _Note(lines[0].strip(), lines[1].strip())


def _guarded(task: Task) -> Callable[[int], None]:
    """Progress that several threads may tell."""
    guard = Lock()

    def advance(amount: int) -> None:
        with guard:
            task.advance(amount)

    return advance


def _hashed(folder: Path, path: str, note: _Note | None, advance: Callable[[int], None]) -> CheckpointFile:
    target = (folder / path).resolve()
    try:
        digest, size = hash_file(target, progress=advance)
        blob = None
        if note is not None and len(note.etag) == _GIT and size <= _SMALL:
            data = target.read_bytes()
            blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    except OSError as error:
        raise NotCheckedError("cannot be read", where=str(target), why=error.strerror or str(error)) from error
    return CheckpointFile(path=path, sha256=digest, size=size, blob=blob)


def _is(file: CheckpointFile, note: _Note) -> bool:
    """Whether a file's bytes are those that the note names."""
    return note.etag in (file.sha256, file.blob)


def _without_foreign(files: tuple[CheckpointFile, ...], noted: Mapping[str, _Note]) -> tuple[CheckpointFile, ...]:
    """Blob names only where the hub itself keeps the file in git."""
    return tuple(
        each if each.path in noted and len(noted[each.path].etag) == _GIT else each.model_copy(update={"blob": None})
        for each in files
    )


def verify(folder: Path, checkpoint: Checkpoint, *, reporter: Reporter) -> Path:
    """A checkpoint's folder, every listed file of it hashed just now.

    Raises:
        DriftError: files are missing, others, or more than the lock lists; names them.
    """
    snapshot = _SNAPSHOT.search(str(folder))
    try:
        paths = set(_files(folder, folder.parent.parent if snapshot is not None else folder))
    except OSError as error:
        raise NotCheckedError("cannot be read", where=str(folder), why=error.strerror or str(error)) from error
    expected = {each.path: each for each in checkpoint.listed}
    faults = [f"{path} is missing" for path in sorted(expected.keys() - paths)]
    faults += [f"{path} is not in the lock" for path in sorted(paths - expected.keys())]
    present = sorted(expected.keys() & paths)
    with (
        reporter.task(f"hashing {checkpoint.name}", sum(expected[each].size for each in present), "bytes") as task,
        ThreadPoolExecutor(workers_here(), thread_name_prefix="hash") as pool,
    ):
        advance = _guarded(task)
        for file in pool.map(lambda path: _hashed(folder, path, None, advance), present):
            if file.sha256 != expected[file.path].sha256:
                faults.append(f"{file.path} has sha256 {file.sha256}, not {expected[file.path].sha256}")
    if faults:
        raise DriftError(
            f"checkpoint {checkpoint.name} is not the one of the lock",
            where=str(folder),
            why="; ".join(faults[:20]),
            todo="name the right folder with --checkpoint",
        )
    return folder

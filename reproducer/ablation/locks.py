"""Locks of a plan: whether each is one, and its files, written into a folder of its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reproducer.ablation.groups import Between
from reproducer.documents.arguments import ArgumentSchema
from reproducer.documents.base import FileReference
from reproducer.documents.lock import Lock
from reproducer.documents.opened import OpenedLock, read_reference, references
from reproducer.documents.toml import write_atomically
from reproducer.engines.argument_check import check_arguments
from reproducer.errors import DriftError, PennyError, UsageError

LOCK = "penny.lock.toml"
_HEADER = (
    "Written by `penny ablate`: a lock between two locks, to measure and not to keep.",
    "The lock digest is the sha256 of this content as RFC 8785 JSON: layout and comments do not count.",
)


@dataclass(frozen=True)
class Mixed:
    """One lock of a plan.

    Attributes:
        row: which groups are as in B.
        lock: None where there is no such lock.
        faults: why there is none.
        files: the bytes of every file that it names, by path.
    """

    row: tuple[bool, ...]
    lock: Lock | None
    faults: tuple[str, ...]
    files: Mapping[str, bytes]


def mixed(between: Between, row: tuple[bool, ...], first: OpenedLock, second: OpenedLock) -> Mixed:
    """A lock with some groups as in B, checked as any other: consistency, arguments that its engine takes, files.

    Raises:
        UnsafeInputError: a file that a lock names leads out of its folder.
    """
    try:
        lock = Lock.from_data(between.mixed(row), where="a lock between the two")
    except PennyError as error:
        return Mixed(row, None, (str(error),), {})
    files: dict[str, bytes] = {}
    pinned: dict[str, str] = {}
    faults: list[str] = []
    for each in references(lock):
        if pinned.setdefault(each.path, each.sha256) != each.sha256:
            faults.append(f"{each.path} would have to be two files")
            continue
        try:
            files[each.path] = _read(each, first, second)
        except DriftError as error:
            faults.append(str(error))
    schema = lock.engine.arguments
    if schema is not None and schema.path in files:
        taken = ArgumentSchema.from_json(files[schema.path], where=schema.path)
        faults += check_arguments(taken, lock.launch.arguments)
    return Mixed(row, None if faults else lock, tuple(faults), files)


def _read(reference: FileReference, first: OpenedLock, second: OpenedLock) -> bytes:
    """A file from the folder of whichever lock has it."""
    try:
        return read_reference(first.folder, reference, where=str(first.path))
    except DriftError:
        return read_reference(second.folder, reference, where=str(second.path))


def write(each: Mixed, folder: Path) -> OpenedLock:
    """Write a lock with every file that it names; what lies there already must be the same lock.

    Raises:
        UsageError: another lock lies there.
        NotCheckedError: it cannot be written.
    """
    from reproducer.documents.opened import open_lock
    from reproducer.locking.render import render_lock

    if each.lock is None:
        msg = "there is no such lock"
        raise ValueError(msg)
    path = folder / LOCK
    if path.exists() and open_lock(path).digest != each.lock.digest:
        raise UsageError("another lock lies here", where=str(path), todo="name an empty folder with --output")
    for name, data in each.files.items():
        write_atomically(_parent(folder / name), data)
    write_atomically(_parent(path), render_lock(each.lock, header=_HEADER))
    return open_lock(path)


def _parent(path: Path) -> Path:
    from reproducer.store.faults import writing

    with writing(path.parent, what="the folder of a lock"):
        path.parent.mkdir(parents=True, exist_ok=True)
    return path

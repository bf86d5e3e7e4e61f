"""The locks that are known to use a namespace: noted in its root when it is opened for a launch.

Notes are local: an absolute path on this machine, and no evidence. A root without notes is valid: nobody knows its
lock.
"""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from reproducer.cache.folders import FILE, FOLDER
from reproducer.cache.model import KnownLock, LockState
from reproducer.cache.writing import write_in
from reproducer.documents.base import Document, Sha256, Text
from reproducer.documents.opened import OpenedLock, open_lock
from reproducer.errors import InvalidDocumentError, PennyError
from reproducer.identity.policy import COMMIT, Policy, derive_under
from reproducer.store.faults import writing

LOCKS = "locks"
_LARGEST = 1 << 20
_MOST = 1000


class LockNote(Document):
    """A lock that was launched in this namespace.

    Attributes:
        policy: under which it derives this namespace.
    """

    format: Literal["penny-lock-note/1"] = "penny-lock-note/1"
    name: Text
    lock_digest: Sha256
    path: Text
    policy: Text


def note_lock(root: Path, handle: int, opened: OpenedLock, policy: Policy) -> None:
    """Note in an open root that a lock is launched in it.

    Raises:
        NotCheckedError: the disk is full or the root cannot be written.
    """
    note = LockNote(
        name=opened.lock.name, lock_digest=opened.digest, path=str(opened.path.absolute()), policy=str(policy)
    )
    name = f"{opened.digest}.json"
    with writing(root, what="the note of the lock"):
        with suppress(FileExistsError):
            os.mkdir(LOCKS, 0o700, dir_fd=handle)
        folder = os.open(LOCKS, FOLDER, dir_fd=handle)
        try:
            write_in(folder, name, note.canonical() + b"\n")
        finally:
            os.close(folder)


class Locks:
    """Locks by the namespace they derive; each file is read once.

    Raises:
        PennyError: a lock that was named cannot be read: what it uses would look as if nobody did.
    """

    def __init__(self, named: Iterable[Path] = ()) -> None:
        self._read: dict[tuple[str, str], tuple[str, str]] = {}
        self._named: dict[str, list[KnownLock]] = {}
        for path in named:
            opened = open_lock(path)
            derived = derive_under(COMMIT, opened).name
            place = str(path.absolute())
            self._named.setdefault(derived, []).append(KnownLock(opened.lock.name, place, "uses"))

    def of(self, name: str, root: int) -> tuple[KnownLock, ...]:
        """The known locks of a namespace: those that were named first, then those noted in its open root."""
        found = {lock.path: lock for lock in self._named.get(name, ())}
        for note in _notes(root):
            if isinstance(note, KnownLock):
                found.setdefault(note.path, note)
                continue
            state = self._state(note, name)
            if note.path not in found or state == "uses":
                found[note.path] = KnownLock(note.name, note.path, state)
        return tuple(found.values())

    def _state(self, note: LockNote, name: str) -> LockState:
        key = note.path, note.policy
        if key not in self._read:
            self._read[key] = _derived(note)
        state, derived = self._read[key]
        if state == "gone":
            return "gone"
        if state == "unreadable":
            return "unreadable"
        return "uses" if derived == name else "other"


def _derived(note: LockNote) -> tuple[str, str]:
    """What a noted lock derives now: `read` and the namespace, or `gone`, or `unreadable`."""
    try:
        if not stat.S_ISREG(Path(note.path).stat().st_mode):
            return "unreadable", ""
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return "gone", ""
    except OSError:
        return "unreadable", ""
    try:
        return "read", derive_under(Policy.parse(note.policy), open_lock(Path(note.path))).name
    except PennyError:
        return "unreadable", ""


def _notes(root: int) -> list[LockNote | KnownLock]:
    """The notes in an open root; one that cannot be read keeps the namespace, for it may name a lock."""
    try:
        folder = os.open(LOCKS, FOLDER, dir_fd=root)
    except FileNotFoundError:
        return []
    except OSError:
        return [KnownLock("", LOCKS, "unreadable")]
    try:
        with os.scandir(folder) as found:
            names = sorted(each.name for each, _ in zip(found, range(_MOST + 1), strict=False))
        if len(names) > _MOST:
            return [KnownLock("", LOCKS, "unreadable")]
        return [_note(folder, name) for name in names if not name.startswith(".")]
    finally:
        os.close(folder)


def _note(folder: int, name: str) -> LockNote | KnownLock:
    unreadable = KnownLock("", f"{LOCKS}/{name}", "unreadable")
    try:
        handle = os.open(name, FILE, dir_fd=folder)
    except OSError:
        return unreadable
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return unreadable
        data = file.read(_LARGEST + 1)
    try:
        note = LockNote.from_json(data, where=name)
    except InvalidDocumentError:
        return unreadable
    return note if Path(note.path).is_absolute() and name == f"{note.lock_digest}.json" else unreadable

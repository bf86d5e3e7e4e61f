"""A private folder in somebody else's folder: gone at the end, after a kill by the next run, and nothing else with it.

Its name carries a random token and a proof derived from it, so that no folder of anybody else is taken for one of ours,
and beside it lies a lock file that its owner holds a flock on. The probe inherits that lock: as long as either lives,
nobody sweeps.
"""

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from reproducer.progress import Silent
from reproducer.store.exclusive import exclusive, release, take
from reproducer.store.faults import writing
from reproducer.store.layout import remove_tree

_NAME = re.compile(r"\.penny-doctor-([0-9a-f]{16})-([0-9a-f]{16})(\.lock)?")
_WHAT = "the probe's files"


@dataclass(frozen=True)
class Scratch:
    """An empty folder of this run, and the descriptor of the lock that says so."""

    folder: Path
    lock: int


@contextmanager
def scratch(place: Path) -> Iterator[Scratch]:
    """A fresh folder in `place`; what dead runs left there is removed first.

    Raises:
        NotCheckedError: the folder cannot be written, is full, or knows no flock.
    """
    with writing(place, what=_WHAT):
        sweep(place)
    token = secrets.token_hex(8)
    folder = place / f".penny-doctor-{token}-{_proof(token)}"
    # A sweep of another penny may hold the new lock file for a moment, so it is waited for.
    with exclusive(_lock_of(folder), reporter=Silent(), what=_WHAT) as handle:
        try:
            with writing(place, what=_WHAT):
                folder.mkdir(mode=0o700)
            yield Scratch(folder, handle)
        finally:
            with suppress(OSError):
                remove_tree(folder)


def sweep(place: Path) -> None:
    """Remove the folders of dead runs; raises OSError where `place` cannot be read."""
    for name in sorted(os.listdir(place)):  # noqa: PTH208  names only
        match = _NAME.fullmatch(name)
        if match is None or match[2] != _proof(match[1]):
            continue
        folder = place / name.removesuffix(".lock")
        if not (_is_ours(folder, stat.S_ISDIR) and _is_ours(_lock_of(folder), stat.S_ISREG)):
            continue
        handle = take(_lock_of(folder))
        if handle is None:
            continue
        with suppress(OSError):
            remove_tree(folder)
        release(_lock_of(folder), handle)


def _proof(token: str) -> str:
    """What only penny puts behind a token."""
    return hashlib.sha256(f"penny-doctor/1 {token}".encode()).hexdigest()[:16]


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


def _is_ours(path: Path, is_kind: Callable[[int], bool]) -> bool:
    """Whether this is absent, or of that kind and this user's; a symbolic link is neither."""
    try:
        status = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return True
    return is_kind(status.st_mode) and status.st_uid == os.geteuid()

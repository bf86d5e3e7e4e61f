"""Folders of unfinished runs: an interrupted `penny reproduce` is taken up again, a running one is left alone."""

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reproducer.errors import NotCheckedError


@dataclass(frozen=True)
class Run:
    """A private folder for the partial results of one run; `resumed` where an interrupted run left some."""

    folder: Path
    resumed: bool


@contextmanager
def run_folder(parent: Path) -> Iterator[Run]:
    """Hold one run's folder below `parent`; it vanishes when the run ends well and stays when it does not.

    A folder is owned by the process that holds the kernel's lock on it, which ends with the process however it ends.

    Raises:
        NotCheckedError: the folder cannot be made.
    """
    try:
        parent.mkdir(parents=True, exist_ok=True)
        run, handle = _interrupted(parent) or _fresh(parent)
    except OSError as error:
        raise NotCheckedError("no folder for this run", where=str(parent), why=error.strerror or str(error)) from error
    try:
        yield run
        shutil.rmtree(run.folder)
    finally:
        os.close(handle)


def _interrupted(parent: Path) -> tuple[Run, int] | None:
    """A folder whose owner is gone, now ours."""
    for folder in sorted(parent.iterdir()):
        handle = _claim(folder)
        if handle is not None:
            return Run(folder, resumed=any(folder.iterdir())), handle
    return None


def _fresh(parent: Path) -> tuple[Run, int]:
    """A new folder of ours."""
    while True:
        folder = parent / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        handle = _claim(folder)
        if handle is not None:
            return Run(folder, resumed=False), handle


def _claim(folder: Path) -> int | None:
    """The open handle that holds the kernel's lock on a folder; None where somebody else holds it or it is gone."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_ino == folder.stat().st_ino:
            return handle
    except OSError:
        pass
    os.close(handle)
    return None

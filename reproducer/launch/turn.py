"""One server at a time in a namespace: the kernel's lock on a file beside the namespace's folder.

The supervisor inherits the lock and holds it until the last process of the server has ended, so it outlives penny and
never outlives the server. The file says for whom others wait, and is removed with the lock.
"""

import fcntl
import json
import os
import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproducer.documents.base import shown
from reproducer.errors import NotCheckedError
from reproducer.launch.processes import sweep
from reproducer.launch.supervisor import remove_folder
from reproducer.progress import Reporter

_POLL_S = 0.1
_LARGEST = 65536
_TOKEN = re.compile(r"[0-9a-f]{32}")
_LAST_RESORT = Path("/tmp")  # noqa: S108  the folder made in it is private and has a random name
_LONGEST_TEMPORARY = 40  # the engine makes Unix sockets below it, and their paths end at 107 bytes


@dataclass
class Turn:
    """The lock on a namespace; whoever holds `handle` (or a copy of it) has the turn."""

    path: Path
    handle: int

    def describe(self, **facts: Any) -> None:
        """Say in the file who has the turn, and what a successor must clean up if nobody else can."""
        data = json.dumps(facts).encode()
        os.ftruncate(self.handle, 0)
        os.pwrite(self.handle, data, 0)

    def hand_over(self) -> None:
        """Close our copy: the supervisor of a detached server has its own."""
        os.close(self.handle)

    def release(self) -> None:
        """Give the turn back; the file is removed if it is still this one, and not a successor's."""
        if _is_at(self.handle, self.path):
            self.path.unlink(missing_ok=True)
        os.close(self.handle)


def take_turn(root: Path, *, reporter: Reporter) -> Turn:
    """Wait until no server runs in the namespace of folder `root`, and hold it.

    What a server whose supervisor was killed left behind is ended first.

    Raises:
        NotCheckedError: the lock file cannot be made.
    """
    path = root.parent / f".{root.name}.server"
    announced = ""
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise NotCheckedError(
                "no server can be started in this namespace", where=str(path), why=error.strerror or str(error)
            ) from error
        try:
            if _locked(handle, path):
                _clean_up_after(_facts(handle))
                return Turn(path, handle)
            holder = _holder(_facts(handle))
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        if holder != announced:
            reporter.note(f"waiting: namespace {root.name} is in use by {holder}")
            announced = holder
        time.sleep(_POLL_S)


def end_all(parent: Path, *, reporter: Reporter) -> None:
    """End what killed launches left in every namespace below `parent`; waits for servers that are ending.

    Raises:
        NotCheckedError: as `take_turn`.
    """
    for path in sorted(parent.glob(".*.server")):
        take_turn(parent / path.name.removeprefix(".").removesuffix(".server"), reporter=reporter).release()


def tidy(root: Path, token: str) -> None:
    """Clean up after one launch in the namespace of folder `root`, if nobody had the turn since."""
    path = root.parent / f".{root.name}.server"
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    turn = Turn(path, handle)
    facts = _facts(handle)
    if facts.get("token") == token and _locked(handle, path):
        _clean_up_after(facts)
        turn.release()
    else:
        turn.hand_over()


def _locked(handle: int, path: Path) -> bool:
    """Whether this handle now holds the lock of the file that lies at `path`."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return _is_at(handle, path)


def _is_at(handle: int, path: Path) -> bool:
    """Whether the open file is the one that lies at `path`."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def _facts(handle: int) -> dict[str, Any]:
    """What the file says; empty where that is not readable."""
    try:
        facts = json.loads(os.pread(handle, _LARGEST, 0))
    except (ValueError, OSError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _holder(facts: dict[str, Any]) -> str:
    if not isinstance(facts.get("url"), str):
        return "another penny"
    how = "a detached server, `penny stop` ends it" if facts.get("detached") is True else "a server of another penny"
    return f"{how} ({shown(facts['url'])}, pid {shown(facts.get('pid'))})"


def _clean_up_after(facts: dict[str, Any]) -> None:
    """End and remove what a launch left whose supervisor was killed before it could.

    Only the token is taken from the file, and only if it has the form of one: where the private folder lies follows
    from the token, so nothing that a file says can name a folder that is removed.
    """
    token, log = facts.get("token"), facts.get("log")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        return
    sweep(token, Path(log) if isinstance(log, str) else None)
    for parent in {private_parent(), _LAST_RESORT}:
        remove_folder(str(private_folder(parent, token)))


def private_parent() -> Path:
    """The folder that private folders are made in: the temporary folder, unless its path is too long for a socket."""
    parent = tempfile.gettempdir()
    return _LAST_RESORT if len(os.fsencode(parent)) > _LONGEST_TEMPORARY else Path(parent)


def private_folder(parent: Path, token: str) -> Path:
    """The private folder of a launch; its name carries the token, so no other folder is ever removed.

    Raises:
        ValueError: `token` is not 32 hex digits.
    """
    if not _TOKEN.fullmatch(token):
        raise ValueError(token)
    return parent / f"penny-{token}"

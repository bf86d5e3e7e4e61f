"""Who uses a namespace: the server that has its turn, or another penny that works on its pages.

A server's turn is the kernel's lock on a file beside the root (`launch/turn.py`); its supervisor holds it until the
last process of the server has ended, however penny ended. Where the supervisor was killed too, the processes that carry
the launch's token are what still counts. What seals, checks or removes pages holds the kernel's lock on the root.
"""

import fcntl
import json
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reproducer.cache.folders import FILE, FOLDER
from reproducer.cache.model import Holder
from reproducer.launch.processes import living
from reproducer.launch.turn import tidy
from reproducer.progress import Reporter
from reproducer.store.exclusive import release, take

_LARGEST = 65536
_TOKEN = re.compile(r"[0-9a-f]{32}")
_PAUSE_S = 0.05
_QUIET_S = 0.3


def turn_name(name: str) -> str:
    """The file beside a namespace's root that its server holds."""
    return f".{name}.server"


def holder(kv: int, name: str) -> Holder | None:
    """Who uses a namespace now; None where nobody does. It looks and changes nothing."""
    return _server(kv, name) or _worker(kv, name)


def _server(kv: int, name: str) -> Holder | None:
    """The server that runs in a namespace, or what still lives of one whose supervisor was killed."""
    try:
        handle = os.open(turn_name(name), FILE, dir_fd=kv)
    except FileNotFoundError:
        return None
    except OSError:
        return Holder("server")  # something is in the way of every launch: nobody can say that it is free
    try:
        held = not _shared(handle)
        facts = _facts(handle)
    finally:
        os.close(handle)
    pids = _living(facts)
    if not held and not pids:
        return None
    url = facts.get("url")
    told = facts.get("pid")
    pid = pids[0] if pids else told if isinstance(told, int) else None
    return Holder("server", pid, url if isinstance(url, str) else None)


def _worker(kv: int, name: str) -> Holder | None:
    """A penny that seals, checks or removes."""
    try:
        handle = os.open(name, FOLDER, dir_fd=kv)
    except OSError:
        return None
    try:
        return None if _shared(handle) else Holder("penny")
    finally:
        os.close(handle)


def _shared(handle: int) -> bool:
    """Whether a lock beside others' could be had; it is given back with the handle, or at once by the caller."""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(handle, fcntl.LOCK_UN)
    return True


def _facts(handle: int) -> dict[str, Any]:
    """What the file of a turn says; empty where that is not readable."""
    try:
        facts = json.loads(os.pread(handle, _LARGEST, 0))
    except (ValueError, OSError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _token(facts: dict[str, Any]) -> str | None:
    token = facts.get("token")
    return token if isinstance(token, str) and _TOKEN.fullmatch(token) else None


def _living(facts: dict[str, Any]) -> list[int]:
    """The pids of a launch's processes, the server's own first: the supervisor only shares its log."""
    token, log = _token(facts), facts.get("log")
    if token is None:
        return []
    path = Path(log) if isinstance(log, str) and "\0" not in log else None
    try:
        regular = path is not None and stat.S_ISREG(path.stat().st_mode)
    except OSError:
        regular = False
    own = living(token, None)
    found = own or living(token, path if regular else None)
    return [each.pid for each in sorted(found, key=lambda each: (each.start_ticks, each.pid))]


@contextmanager
def work(root: int, name: str, *, reporter: Reporter) -> Iterator[None]:
    """Work on a namespace's pages alone; another penny that does is waited for, a running server is not."""
    begun, announced = time.monotonic(), False
    while not alone(root):
        if not announced and time.monotonic() - begun > _QUIET_S:
            reporter.note(f"waiting for another penny: it works on the pages of {name}")
            announced = True
        time.sleep(_PAUSE_S)
    try:
        yield
    finally:
        fcntl.flock(root, fcntl.LOCK_UN)


def alone(root: int) -> bool:
    """Try once to take the lock of an open root."""
    try:
        fcntl.flock(root, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def nobody_else(kv: Path, handle: int, name: str, root: int) -> Iterator[Holder | None]:
    """Keep every server and every other penny out of a namespace; gives who is in it already, without waiting.

    A server that died with its supervisor is not ended here: as long as a process of it lives it uses the namespace.
    """
    if (using := _server(handle, name)) is not None:
        yield using
        return
    path = kv / turn_name(name)
    if (token := _left_token(handle, name)) is not None:
        tidy(kv / name, token)  # nothing of that launch lives: only its private folder is left to remove
    turn = take(path)
    if turn is None:
        yield _server(handle, name) or Holder("server")
        return
    try:
        if pids := _living(_facts(turn)):
            yield Holder("server", pids[0])
        elif not alone(root):
            yield Holder("penny")
        else:
            yield None
    finally:
        if _token(_facts(turn)) is None:
            release(path, turn)
        else:
            os.close(turn)  # it says what is left of a launch; its successor cleans up


def _left_token(kv: int, name: str) -> str | None:
    """The token of a launch that ended without giving its turn back."""
    try:
        handle = os.open(turn_name(name), FILE, dir_fd=kv)
    except OSError:
        return None
    try:
        return _token(_facts(handle))
    finally:
        os.close(handle)

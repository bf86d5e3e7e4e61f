"""A folder of namespaces whose pages are named as SGLang names them."""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from reproducer.documents.lock import Lock
from reproducer.documents.opened import OpenedLock, open_lock
from reproducer.identity.namespace import Namespace, derive
from reproducer.identity.root import open_root, pages_of
from tests.identity.factory import make_lock
from tests.terminal import seen

PAGE = 4096


def key(number: int) -> str:
    """The key of a page, as SGLang makes one."""
    return hashlib.sha256(str(number).encode()).hexdigest()


@dataclass(frozen=True)
class Place:
    """A folder of namespaces."""

    kv: Path

    def namespace(self, name: str = "first") -> Namespace:
        """The namespace of a lock that differs from others by its served name."""
        return derive(self.lock(name))

    def lock(self, name: str = "first") -> Lock:
        """A lock of its own namespace."""
        return make_lock(lambda data: data["launch"]["arguments"].update({"served-model-name": name}))

    def opened(self, name: str = "first") -> OpenedLock:
        """The same lock, in a file."""
        path = self.kv.parent / f"{name}.lock.toml"
        path.write_text(tomlkit.dumps(self.lock(name).content()), encoding="utf-8")
        return open_lock(path)

    def root(self, name: str = "first", pages: int = 0, age_s: float = 1000.0) -> Path:
        """The root of a namespace with that many pages, keys and values in files of their own."""
        root = open_root(self.kv, self.namespace(name))
        for number in range(pages):
            for half in "kv":
                self.page(root, number, half, age_s=age_s)
        return root

    def page(self, root: Path, number: int, half: str, *, age_s: float = 1000.0) -> Path:
        """One file of a page; its bytes follow from its name."""
        path = self.path(root, number, half)
        path.write_bytes(hashlib.sha256(path.name.encode()).digest() * (PAGE // 32))
        then = time.time() - age_s
        os.utime(path, (then, then))
        return path

    def path(self, root: Path, number: int, half: str) -> Path:
        """Where a file of a page lies."""
        return pages_of(root) / f"{key(number)}_model_0_1_{half}"

    def penny(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """`penny cache` in a process of its own, on this folder."""
        return subprocess.run(
            [*command(), *arguments, "--kv", str(self.kv)],
            cwd=self.kv.parent,
            env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "PENNY_STORE": str(self.kv.parent / "store")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def seen(self, *arguments: str) -> list[str]:
        """The lines of `penny cache` in a terminal of 80 columns."""
        environment = {**os.environ, "PENNY_STORE": str(self.kv.parent / "store")}
        line = [*command(), *arguments, "--kv", str(self.kv)]
        return seen(line, folder=self.kv.parent, environment=environment)[1]

    def json(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """What `penny cache --json` says; its exit code is checked."""
        ended = self.penny(*arguments, "--json")
        assert ended.returncode == code, ended.stderr + ended.stdout
        said: dict[str, Any] = json.loads(ended.stdout)
        return said


def command() -> list[str]:
    """`penny cache` as a list of arguments."""
    return [sys.executable, "-m", "reproducer", "cache"]


def spoil(path: Path) -> None:
    """Change one byte and neither size nor times."""
    status = path.stat()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder with its bytes; None for what is no regular file."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in sorted(folder.rglob("*"))
    }


def wait_until(there: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.002)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """An empty folder of namespaces."""
    kv = tmp_path / "kv"
    kv.mkdir()
    return Place(kv)

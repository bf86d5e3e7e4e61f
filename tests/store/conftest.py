"""A store in a fresh folder and real child processes."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reproducer.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store that does not exist yet."""
    return Store(tmp_path / "store")


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts Python code in another process; whatever still runs at the end is killed."""
    running: list[subprocess.Popen[str]] = []

    def run(code: str, *arguments: object, prefix: tuple[str, ...] = ()) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [*prefix, sys.executable, "-c", code, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield run
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()

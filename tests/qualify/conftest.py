"""Every test takes its turns at measuring in a folder of its own: it waits for no penny at work on this machine."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from reproducer.progress import Task, Unit


class _Counter:
    def __init__(self) -> None:
        self.done = 0

    def advance(self, amount: int) -> None:
        self.done += amount


@dataclass
class Told:
    """A Reporter that keeps what it was told."""

    notes: list[str] = field(default_factory=list)

    def note(self, message: str) -> None:
        """Keep a note."""
        self.notes.append(message)

    def detail(self, message: str) -> None:
        """Keep a detail."""
        self.notes.append(message)

    @contextmanager
    def task(self, label: str, total: int | None, unit: Unit) -> Iterator[Task]:
        """Keep how much was done when the task ended."""
        counter = _Counter()
        yield counter
        self.notes.append(f"{label}: {counter.done} of {total} {unit}")


@pytest.fixture(autouse=True)
def private_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A temporary folder of the test's own."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))


@pytest.fixture
def told() -> Told:
    """Where notes go."""
    return Told()

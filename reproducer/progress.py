"""How long work tells a person where it is. The library calls a Reporter; the command line shows it on stderr."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, Protocol

Unit = Literal["bytes", "files", "packages", "tokens", "samples", "seconds"]


class Task(Protocol):
    """One piece of long work."""

    def advance(self, amount: int) -> None:
        """Say that `amount` more units are done."""


class Reporter(Protocol):
    """Where notes and progress go."""

    def note(self, message: str) -> None:
        """One line a person wants to see: what was reused, what is being waited for."""

    def detail(self, message: str) -> None:
        """One line that is shown with --verbose only."""

    def task(self, label: str, total: int | None, unit: Unit) -> AbstractContextManager[Task]:
        """Show progress of `total` units (None where unknown) while the context is open."""


class _SilentTask:
    def advance(self, amount: int) -> None:
        """Nothing to show."""


class Silent:
    """A Reporter that shows nothing."""

    def note(self, message: str) -> None:
        """Nothing to show."""

    def detail(self, message: str) -> None:
        """Nothing to show."""

    @contextmanager
    def task(self, label: str, total: int | None, unit: Unit) -> Iterator[Task]:  # noqa: ARG002  the protocol's shape
        """Nothing to show."""
        yield _SilentTask()

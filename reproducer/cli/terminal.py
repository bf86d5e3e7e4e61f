"""What a person sees: notes and progress on stderr, results on stdout."""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from reproducer.cli.front import discard
from reproducer.progress import Task, Unit

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress, ProgressColumn, TaskID
    from rich.progress import Task as Row

    from reproducer.cli.console import PlainConsole
    from reproducer.cli.live import LiveView
    from reproducer.qualify.flight import Flight
    from reproducer.qualify.plan import Step
    from reproducer.qualify.watching import Finished, Pace


class _Counted:
    """One row of the progress display."""

    def __init__(self, progress: "Progress", row: "TaskID") -> None:
        self._progress = progress
        self._row = row

    def advance(self, amount: int) -> None:
        """Move the bar."""
        self._progress.advance(self._row, amount)


class _Plain:
    """Counts where there is no terminal to draw in."""

    def __init__(self) -> None:
        self.done = 0

    def advance(self, amount: int) -> None:
        """Count."""
        self.done += amount


class Terminal:
    """A Reporter for a person: bars in a terminal, a line a task elsewhere. It watches suites, and shows a live view.

    Attributes:
        finished: called with each finished step of a suite, beside what is shown.
    """

    def __init__(self, *, quiet: bool = False, verbose: bool = False) -> None:
        self.quiet = quiet
        self.verbose = verbose
        self.finished: Callable[[Finished], None] | None = None
        self._progress: Progress | None = None
        self._open = 0
        self._lock = threading.Lock()
        self._view: LiveView | None = None
        self._samples: _Plain | None = None
        self._expected = 0

    @cached_property
    def console(self) -> "PlainConsole":
        """Where notes and progress go; made with the first of them, because most light commands have none."""
        from reproducer.cli.console import PlainConsole

        return PlainConsole(stderr=True, endless=not sys.stderr.isatty())

    def note(self, message: str) -> None:
        """A line, unless --quiet."""
        if not self.quiet:
            from rich.text import Text

            self.line(Text(message, overflow="fold"))

    def line(self, shown: "RenderableType") -> None:
        """Print; a log that cannot be written (its disk is full) ends no run, a reader that went away does."""
        try:
            if self._view is not None:
                self._view.erase()
            self.console.print(shown)
        except BrokenPipeError:
            raise
        except OSError:
            discard(sys.stderr)

    def detail(self, message: str) -> None:
        """A dim line with --verbose."""
        if self.verbose and not self.quiet:
            from rich.text import Text

            self.line(Text(message, style="dim", overflow="fold"))

    @contextmanager
    def task(self, label: str, total: int | None, unit: Unit) -> Iterator[Task]:
        """A bar while the context is open; without a terminal one line at its end. Samples have a view of their own."""
        if self.quiet:
            yield _Plain()
        elif unit == "samples" and self._draws:
            yield from self._viewed(total or 0)
        elif not self.console.is_terminal:
            plain, start = _Plain(), time.monotonic()
            yield plain
            self.detail(f"{label}: {_amount(plain.done, unit)} in {time.monotonic() - start:.1f} s")
        else:
            if self._view is not None:
                self._view.erase()
            progress = self._acquire()
            row = progress.add_task(label, total=total, unit=unit)
            try:
                yield _Counted(progress, row)
            finally:
                progress.remove_task(row)
                self._release()

    @property
    def _draws(self) -> bool:
        return self.console.is_terminal and not self.console.is_dumb_terminal

    def _viewed(self, total: int) -> Iterator[Task]:
        from reproducer.cli.live import LiveView

        self._samples, self._expected, self._view = _Plain(), total, LiveView(self.console)
        try:
            yield self._samples
        finally:
            self._view.close()
            self._samples = self._view = None

    @cached_property
    def _pace(self) -> "Pace":
        from reproducer.qualify.watching import Pace

        return Pace()

    def planned(self, steps: "Iterable[tuple[str, Step]]") -> None:
        """Know how long the rest will take."""
        self._pace.planned(steps)

    def begins(self, name: str, step: "Step", flight: "Flight") -> None:
        """Show what is measured, how far it is and what arrives."""
        self._pace.begins(step)
        if self._view is not None and self._samples is not None:
            heading = f"{name}  {step_words(step, self._pace.total[name])}"
            self._view.show(heading, self._samples.done, self._expected, flight, self._pace.left())

    def drops(self, name: str) -> None:
        """Know that the rest of a measure takes no time."""
        self._pace.drops(name)

    def ends(self, finished: "Finished") -> None:
        """Say what came of it: a line where nothing is drawn, a detail where something is."""
        self._pace.ends(finished.name, finished.seconds)
        if self._view is not None:
            self._view.erase()
        if self.finished is not None:
            self.finished(finished)
        said = f"{finished.name} {step_words(finished.step)}{_values(finished)} ({seconds_text(finished.seconds)})"
        if self._draws:
            self.detail(said)
        else:
            self.note(said)

    def _acquire(self) -> "Progress":
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        with self._lock:
            if self._progress is None:
                self._progress = Progress(
                    TextColumn("  {task.description}", markup=False),
                    BarColumn(bar_width=16),
                    _done_column(),
                    TimeRemainingColumn(compact=True),
                    console=self.console,
                    transient=True,
                )
                self._progress.start()
            self._open += 1
            return self._progress

    def _release(self) -> None:
        with self._lock:
            self._open -= 1
            if self._open == 0 and self._progress is not None:
                self._progress.stop()
                self._progress = None


def _done_column() -> "ProgressColumn":
    """Done of total in the task's own unit, with the rate."""
    from rich.progress import ProgressColumn
    from rich.text import Text

    class Done(ProgressColumn):
        def render(self, task: "Row") -> Text:
            unit: Unit = task.fields["unit"]
            text = _amount(int(task.completed), unit)
            if task.total:
                text = f"{text} of {_amount(int(task.total), unit)}"
            if task.speed and unit == "bytes":
                text += f", {_amount(int(task.speed), unit)}/s"
            return Text(text)

    return Done()


def step_words(step: "Step", total: int = 0) -> str:
    """Which sample of its measure a step takes, and in which boot."""
    of = f" of {total}" if total else ""
    part = "" if step.part == "whole" else f" ({step.part})"
    return f"{'warm-up' if step.warmup else 'sample'} {step.index + 1}{of}{part}, boot {step.slot}"


def _values(finished: "Finished") -> str:
    """The first value of a sample; what all samples have is in the table at the end."""
    if finished.reason:
        return ": invalid"
    from statistics import median

    for name, (found, unit) in finished.values.items():
        return f": {name} {median(found):.4g}" + (f" {unit}" if unit in ("tok/s", "s", "tokens", "nats") else "")
    return ""


def _amount(count: int, unit: Unit) -> str:
    """A count as a person reads it."""
    if unit != "bytes":
        return f"{count} {unit}"
    return bytes_text(count)


def bytes_text(count: int) -> str:
    """Bytes in decimal units."""
    size = float(count)
    for name in ("B", "kB", "MB", "GB"):
        if size < 1000 or name == "GB":  # noqa: PLR2004  decimal units
            return f"{size:.0f} {name}" if name == "B" else f"{size:.1f} {name}"
        size /= 1000
    raise AssertionError


def seconds_text(seconds: float) -> str:
    """A duration as a person reads it."""
    if seconds < 60:  # noqa: PLR2004  seconds in a minute
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"

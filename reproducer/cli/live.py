"""The live view of a suite in a terminal: two lines, which measure and how far, and what comes in just now.

The first line is drawn between samples. While one is taken only the second is written again, twice a second: from
counters that the client keeps anyway, a short line and one write, so that the client is not kept waiting.
"""

import threading
import time
from typing import TYPE_CHECKING

from reproducer.cli.console import PlainConsole
from reproducer.qualify.flight import Flight

if TYPE_CHECKING:
    from rich.console import RenderableType

_EVERY_S = 0.5
_WINDOW_S = 3.0
_CLEAR = "\r\x1b[2K"
_UP = "\x1b[1A"
_BAR = 16


class LiveView:
    """Two lines at the end of the terminal; `erase` takes them away, so that others can write there."""

    def __init__(self, console: PlainConsole) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._shown = False
        self._flight = Flight()
        self._since = 0.0
        self._left: float | None = None
        self._seen: list[tuple[float, int]] = []

    def show(self, heading: str, done: int, total: int, flight: Flight, left: float | None) -> None:
        """Draw both lines, and keep the second one up to date until `erase`.

        Args:
            heading: the measure, and which of its samples.
            done: how many samples there are.
            total: how many there will be.
            flight: what arrives.
            left: seconds until everything is done, if known.
        """
        self.erase()
        with self._lock:
            self._flight, self._left, self._since, self._seen = flight, left, time.monotonic(), []
            self._console.print(_first_line(heading, done, total, self._console.width))
            self._write(self._second_line())
            self._shown = True
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep_up, name="live view", daemon=True)
            self._thread.start()

    def erase(self) -> None:
        """Take both lines away."""
        with self._lock:
            if self._shown:
                self._write(_CLEAR + _UP + _CLEAR)
                self._shown = False

    def close(self) -> None:
        """Take them away for good."""
        self.erase()
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _keep_up(self) -> None:
        while not self._over.wait(_EVERY_S):
            with self._lock:
                if self._shown:
                    self._write(_CLEAR + self._second_line())

    def _second_line(self) -> str:
        """What has come, how fast it comes now, for how long, and how long everything will take yet."""
        now = time.monotonic()
        seconds = now - self._since
        tokens, pieces = self._flight.tokens, self._flight.pieces
        parts = [f"{seconds:.0f} s"]
        if tokens is not None:
            while self._seen and now - self._seen[0][0] > _WINDOW_S:
                del self._seen[0]
            self._seen.append((now, tokens))
            (since, before), span = self._seen[0], now - self._seen[0][0]
            parts.insert(0, f"{tokens} tokens" + (f", {(tokens - before) / span:.1f} tok/s" if since < now else ""))
        elif pieces:
            parts.insert(0, f"{pieces} pieces")
        if self._left is not None:
            parts.append(f"about {_duration(max(self._left - seconds, 0.0))} left")
        return ("  " + ", ".join(parts))[: self._console.width - 1]

    def _write(self, text: str) -> None:
        try:
            self._console.file.write(text)
            self._console.file.flush()
        except (OSError, ValueError):  # nobody can look at it any more: that ends no measurement
            self._over.set()


def _first_line(heading: str, done: int, total: int, width: int) -> "RenderableType":
    """The measure, a bar, and how many samples there are; a long name gives way to the rest."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    said, counted = Text(f"  {heading}"), f"{done} of {total} samples"
    said.truncate(max(width - _BAR - len(counted) - 2, 1), overflow="ellipsis")
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(width=_BAR)
    grid.add_column(no_wrap=True)
    grid.add_row(said, ProgressBar(total=max(total, 1), completed=done, width=_BAR), counted)
    return grid


def _duration(seconds: float) -> str:
    """A time in one unit, or two."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    if minutes:
        return f"{minutes} min {rest:02} s"
    return f"{rest} s"

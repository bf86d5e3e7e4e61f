"""What a suite tells while it measures: which sample is taken, what has arrived of it, what came of it.

Nothing is told between two pieces of an answer. Whoever wants to know more meanwhile looks at the `Flight`.
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Protocol, runtime_checkable

from reproducer.qualify.flight import Flight
from reproducer.qualify.plan import Launching, Step


@dataclass(frozen=True)
class Finished:
    """One step that was taken.

    Attributes:
        name: the measure's name in the suite.
        reason: why the sample is invalid; empty where it is valid.
        values: of a valid sample, by name: all of them, and their unit; none where the step is only a part of a sample.
    """

    name: str
    step: Step
    seconds: float
    reason: str = ""
    values: Mapping[str, tuple[tuple[float, ...], str]] = field(default_factory=dict)


@runtime_checkable
class Watcher(Protocol):
    """Whoever watches a suite; a Reporter that is one is told."""

    def planned(self, steps: Iterable[tuple[str, Step]]) -> None:
        """These steps, each with the name of its measure, are still to be taken."""

    def begins(self, name: str, step: Step, flight: Flight) -> None:
        """A step begins; its answers can be seen in `flight`."""

    def ends(self, finished: Finished) -> None:
        """It was taken."""

    def drops(self, name: str) -> None:
        """A measure is skipped: its other steps are not taken."""


class Unwatched:
    """Nobody watches."""

    def planned(self, steps: Iterable[tuple[str, Step]]) -> None:
        """Nothing to show."""

    def begins(self, name: str, step: Step, flight: Flight) -> None:
        """Nothing to show."""

    def ends(self, finished: Finished) -> None:
        """Nothing to show."""

    def drops(self, name: str) -> None:
        """Nothing to show."""


class Pace:
    """How long the rest will take, from how long what is done took: each measure by its own samples, and the boots."""

    def __init__(self) -> None:
        self.total: Counter[str] = Counter()
        self._open: Counter[str] = Counter()
        self._boots = 0
        self._boot: Launching | None = None
        self._seconds: dict[str, list[float]] = {}
        self._starts: list[float] = []
        self._since = time.monotonic()

    def planned(self, steps: Iterable[tuple[str, Step]]) -> None:
        """These are still to be taken."""
        known = list(steps)
        self.total.update(name for name, _ in known)
        self._open.update(name for name, _ in known)
        self._boots += len({step.launching for _, step in known})

    def begins(self, step: Step) -> None:
        """A step begins; what went before it in a new boot was the start of that."""
        if step.launching != self._boot:
            self._boot, self._boots = step.launching, max(self._boots - 1, 0)
            self._starts.append(time.monotonic() - self._since)

    def ends(self, name: str, seconds: float) -> None:
        """It was taken."""
        self._open[name] -= 1
        self._seconds.setdefault(name, []).append(seconds)
        self._since = time.monotonic()

    def drops(self, name: str) -> None:
        """The rest of a measure is not taken."""
        del self._open[name]

    def left(self) -> float | None:
        """Seconds until all is done, with the step that is being taken; None while nothing says how long one takes."""
        if not self._seconds:
            return None
        usual = fmean(seconds for each in self._seconds.values() for seconds in each)
        steps = sum(
            count * (fmean(self._seconds[name]) if name in self._seconds else usual)
            for name, count in self._open.items()
            if count > 0
        )
        return steps + self._boots * fmean(self._starts or [0.0])

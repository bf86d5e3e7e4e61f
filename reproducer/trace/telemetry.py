"""Telemetry windows: what an engine says of a span of its own choice, by running requests and by context.

A window counts the tokens of all running requests over the time since the last line, idle time included. It is no rate
of a request, and it never stands beside one.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest
from operator import itemgetter

from reproducer.documents.traces import Distribution, Place, Prefills, Window
from reproducer.documents.traces import Windows as TracedWindows
from reproducer.trace.bands import Bands
from reproducer.trace.distribution import HUNDREDTHS, Budget, Spectrum

MOST_SHOWN = 10
_SINGLE = 4
SHARES = 10_000
_AT_ONCE = 4096
_MOST = 2**53 - 1


@dataclass(frozen=True)
class Windows:
    """Windows of decoding, one entry each in every column; -1 of what a line does not say.

    Attributes:
        rate: tokens per second, in hundredths.
        tokens: what the engine holds in its KV cache.
        length: tokens accepted a step, in hundredths.
        share: accepted of the drafted tokens, in ten-thousandths.
    """

    rate: list[int]
    running: list[int]
    queued: list[int]
    tokens: list[int]
    length: list[int]
    share: list[int]


@dataclass(frozen=True, order=True)
class _Strong:
    """A window among the strongest: of two with one rate, the one that came first."""

    rate: int
    source: int
    line: int
    at: bytes
    running: int
    queued: int
    tokens: int
    length: int
    share: int


@dataclass
class Telemetry:
    """Windows of decoding as they come; memory stays the same however many there are."""

    bands: Bands
    budget: Budget = field(default_factory=Budget)
    _prompts: Spectrum | None = None
    _groups: dict[tuple[int, int], tuple[Spectrum, Spectrum, Spectrum]] = field(default_factory=dict)
    _new: dict[tuple[int, int], tuple[list[int], list[int], list[int]]] = field(default_factory=dict)
    _strongest: list[_Strong] = field(default_factory=list)

    def add(self, windows: Windows, source: int, lines: Callable[[int], int], stamps: Sequence[bytes]) -> None:
        """Take windows.

        Args:
            windows: their numbers.
            source: the index of the file.
            lines: gives the number of the line of a window, by its place here.
            stamps: of their lines.
        """
        groups, new, lows = self._groups, self._new, self.bands.lows
        for running, tokens, rate, length, share in zip(
            windows.running, windows.tokens, windows.rate, windows.length, windows.share, strict=True
        ):
            name = _slot(running), bisect_right(lows, tokens // running) - 1 if tokens >= 0 and running > 0 else -1
            found = new.get(name)
            if found is None:
                groups[name] = Spectrum(self.budget), Spectrum(self.budget), Spectrum(self.budget, SHARES)
                found = new[name] = [], [], []
            found[0].append(rate)
            if length >= 0:
                found[1].append(length)
                found[2].append(share)
        self._count()
        floor = self._strongest[-1].rate if len(self._strongest) == MOST_SHOWN else -1
        if max(windows.rate, default=-1) > floor:
            self._take_strongest(windows, source, lines, stamps)

    def _count(self) -> None:
        """Count what came since the last time: many values at once take a fraction of the time."""
        for name, columns in self._new.items():
            for spectrum, values in zip(self._groups[name], columns, strict=True):
                spectrum.add(values)
                values.clear()

    def _take_strongest(
        self, windows: Windows, source: int, lines: Callable[[int], int], stamps: Sequence[bytes]
    ) -> None:
        best = nlargest(MOST_SHOWN, range(len(windows.rate)), key=windows.rate.__getitem__)
        found = [
            _Strong(
                windows.rate[at],
                -source,
                -lines(at),
                stamps[at],
                windows.running[at],
                windows.queued[at],
                windows.tokens[at],
                windows.length[at],
                windows.share[at],
            )
            for at in best
        ]
        self._strongest = sorted([*self._strongest, *found], reverse=True)[:MOST_SHOWN]

    def accept(self, source: int, line: int, running: int, length: int, share: int) -> None:
        """What a later line says of the acceptance in a window that was added without it."""
        _, lengths, shares = self._groups[_slot(running), -1]
        lengths.add((length,))
        shares.add((share,))
        self._strongest = [
            replace(each, length=length, share=share) if (each.source, each.line) == (-source, -line) else each
            for each in self._strongest
        ]

    def prompt(self, rate: int) -> None:
        """What one window says of the rate at which prompts were computed, in whole hundredths."""
        if self._prompts is None:
            self._prompts = Spectrum(self.budget)
        self._prompts.add((rate,))

    def prompts(self) -> Distribution | None:
        """The rates at which prompts were computed; None where no window says one."""
        return None if self._prompts is None else self._prompts.told()

    def windows(self) -> tuple[TracedWindows, ...]:
        """The groups, few running requests and short contexts first."""
        found = []
        for (slot, band), (rates, lengths, shares) in sorted(self._groups.items(), key=itemgetter(0)):
            told = rates.told()
            if told is None:
                continue
            low, high = (slot, slot) if slot <= _SINGLE else (2 ** (slot - 3) + 1, 2 ** (slot - 2))
            found.append(
                TracedWindows(
                    running_low=low,
                    running_high=high,
                    band=None if band < 0 else self.bands.edges[band].name,
                    tok_s=told,
                    accept_length=lengths.told(),
                    accept_rate=shares.told(),
                )
            )
        return tuple(found)

    def strongest(self) -> tuple[Window, ...]:
        """The windows with the most tokens per second, the strongest first."""
        return tuple(
            Window(
                place=Place(source=-each.source, line=-each.line),
                at=each.at.decode("ascii", "replace") or None,
                tok_s=each.rate / HUNDREDTHS,
                running=each.running,
                queued=None if each.queued < 0 else each.queued,
                tokens=None if each.tokens < 0 else each.tokens,
                accept_length=None if each.length < 0 else each.length / HUNDREDTHS,
                accept_rate=None if each.share < 0 else each.share / SHARES,
            )
            for each in self._strongest
        )


def _slot(running: int) -> int:
    """Which range of running requests: 0 to 4 one by one, then 5 to 8, 9 to 16 and so on."""
    return running if running <= _SINGLE else _SINGLE - 2 + (running - 1).bit_length()


@dataclass
class Prefilling:
    """Prefill batches, summed up."""

    budget: Budget
    batches: int = 0
    computed: int = 0
    cached: int = 0
    _new: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rates = Spectrum(self.budget)

    def add(self, computed: int, cached: int, rate: int) -> bool:
        """One batch; `rate` in whole hundredths, -1 where the line does not say it.

        False where the sum is more than a document holds; the batch is not taken then.
        """
        if max(self.computed + computed, self.cached + cached) > _MOST:
            return False
        self.batches += 1
        self.computed += computed
        self.cached += cached
        if rate >= 0:
            self._new.append(rate)
            if len(self._new) == _AT_ONCE:
                self._count()
        return True

    def _count(self) -> None:
        self._rates.add(self._new)
        self._new.clear()

    def told(self) -> Prefills | None:
        """As it stands in a document; None where there is no batch."""
        if not self.batches:
            return None
        self._count()
        return Prefills(
            batches=self.batches,
            computed_tokens=self.computed,
            cached_tokens=self.cached,
            tok_s=self._rates.told(),
        )

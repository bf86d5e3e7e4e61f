"""Telemetry windows: what an engine says of a span of its own choice, by running requests and by context.

A window counts the tokens of all running requests over the time since the last line, idle time included. It is no rate
of a request, and it never stands beside one.
"""

from dataclasses import dataclass, field
from heapq import heappush, heapreplace

from reproducer.documents.traces import Distribution, Place, Prefills, Window, Windows
from reproducer.trace.bands import Bands
from reproducer.trace.distribution import HUNDREDTHS, Budget, Spectrum

MOST_SHOWN = 10
_SINGLE = 4
SHARES = 10_000
Values = tuple[int, int, int, int, int, int]
"""Of one window: tokens per second in hundredths, running and queued requests, tokens that the engine holds in its KV
cache, accepted length in hundredths, accepted share in ten-thousandths; -1 of what the line does not say."""


@dataclass
class Telemetry:
    """Windows of decoding as they come; memory stays the same however many there are."""

    bands: Bands
    budget: Budget = field(default_factory=Budget)
    _prompts: Spectrum | None = None
    _groups: dict[tuple[int, int], list[Spectrum]] = field(default_factory=dict)
    _strongest: list[tuple[int, int, int, bytes, Values]] = field(default_factory=list)

    def add(self, window: Values, place: tuple[int, int], at: bytes) -> None:
        """One window.

        Args:
            window: its numbers.
            place: index of the source and number of the line.
            at: the stamp of the line.
        """
        rate, running, _, tokens, length, share = window
        key = self._key(running, tokens)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = [Spectrum(self.budget), Spectrum(self.budget), Spectrum(self.budget, SHARES)]
        group[0].add(rate)
        if length >= 0:
            group[1].add(length)
            group[2].add(share)
        strongest = self._strongest
        if len(strongest) < MOST_SHOWN:
            heappush(strongest, (rate, -place[0], -place[1], at, window))
        elif rate > strongest[0][0]:
            heapreplace(strongest, (rate, -place[0], -place[1], at, window))

    def _key(self, running: int, tokens: int) -> tuple[int, int]:
        """Which group a window belongs to: its range of running requests and its band, -1 where that is not known."""
        slot = running if running <= _SINGLE else _SINGLE + (running - 1).bit_length() - 2
        return slot, self.bands.index(tokens // running) if tokens >= 0 and running > 0 else -1

    def accept(self, place: tuple[int, int], length: int, rate: int, running: int) -> None:
        """What a later line says of the acceptance in a window that was added without it."""
        group = self._groups[self._key(running, -1)]
        group[1].add(length)
        group[2].add(rate)
        for index, each in enumerate(self._strongest):
            if (each[1], each[2]) == (-place[0], -place[1]):
                self._strongest[index] = (*each[:4], (*each[4][:4], length, rate))

    def prompt(self, rate: int) -> None:
        """What one window says of the rate at which prompts were computed, in whole hundredths."""
        if self._prompts is None:
            self._prompts = Spectrum(self.budget)
        self._prompts.add(rate)

    def prompts(self) -> Distribution | None:
        """The rates at which prompts were computed; None where no window says one."""
        return None if self._prompts is None else self._prompts.told()

    def windows(self) -> tuple[Windows, ...]:
        """The groups, few running requests and short contexts first."""
        found = []
        for (slot, band), group in sorted(self._groups.items()):
            told = [each.told() for each in group]
            if told[0] is None:
                raise AssertionError
            low, high = (slot, slot) if slot <= _SINGLE else (2 ** (slot - 3) + 1, 2 ** (slot - 2))
            found.append(
                Windows(
                    running_low=low,
                    running_high=high,
                    band=None if band < 0 else self.bands.edges[band].name,
                    tok_s=told[0],
                    accept_length=told[1],
                    accept_rate=told[2],
                )
            )
        return tuple(found)

    def strongest(self) -> tuple[Window, ...]:
        """The windows with the most tokens per second, the strongest first."""
        strongest = sorted(self._strongest, reverse=True)
        return tuple(
            Window(
                place=Place(source=-source, line=-line),
                at=at.decode("ascii", "replace") or None,
                tok_s=rate / HUNDREDTHS,
                running=running,
                queued=None if queued < 0 else queued,
                tokens=None if tokens < 0 else tokens,
                accept_length=None if length < 0 else length / HUNDREDTHS,
                accept_rate=None if share < 0 else share / SHARES,
            )
            for _, source, line, at, (rate, running, queued, tokens, length, share) in sorted(
                self._strongest, reverse=True
            )
        )


@dataclass
class Prefilling:
    """Prefill batches, summed up."""

    budget: Budget
    batches: int = 0
    computed: int = 0
    cached: int = 0
    _rates: Spectrum | None = None

    def add(self, computed: int, cached: int, rate: int) -> None:
        """One batch; `rate` in whole hundredths, -1 where the line does not say it."""
        self.batches += 1
        self.computed += computed
        self.cached += cached
        if rate >= 0:
            if self._rates is None:
                self._rates = Spectrum(self.budget)
            self._rates.add(rate)

    def told(self) -> Prefills | None:
        """As it stands in a document; None where there is no batch."""
        if not self.batches:
            return None
        return Prefills(
            batches=self.batches,
            computed_tokens=self.computed,
            cached_tokens=self.cached,
            tok_s=None if self._rates is None else self._rates.told(),
        )

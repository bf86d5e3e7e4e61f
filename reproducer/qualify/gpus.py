"""The GPUs while a sample is taken: the power limit that was set and the one that holds, clocks, and what slowed them.

A limit that was asked for and never read back says nothing, and a card that throttled looks fine again once it idles:
so the driver is asked on a thread of its own for as long as the sample lasts.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from reproducer.documents.measured import GpuConditions
from reproducer.gpus import Card, Cards, look
from reproducer.gpus.nvml import from_nvml

_LIBRARY_PERIOD_S = 0.5
_PROGRAM_PERIOD_S = 5.0
_LONGEST_READING_S = 35.0
_RANGES = (
    *("power_requested_w", "power_enforced_w", "clock_sm_mhz", "clock_memory_mhz"),
    *("temperature_c", "power_w", "utilisation_percent"),
)


@dataclass
class GpuWatch:
    """Readings of every GPU, one a period, from its beginning to its end."""

    ask: Callable[[], Cards]
    period_s: float
    readings: list[tuple[Card, ...]] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @classmethod
    def begin(cls) -> "GpuWatch | None":
        """Begin to watch; None on a machine whose driver shows no GPU."""
        asked = from_nvml()
        if asked is not None and asked.found:
            watch = cls(lambda: from_nvml() or Cards(), _LIBRARY_PERIOD_S)
        elif (asked := look(state=True)).found:
            watch = cls(partial(look, state=True), _PROGRAM_PERIOD_S)
        else:
            return None
        watch.readings.append(asked.found)
        watch.start()
        return watch

    def start(self) -> None:
        """Ask on a thread until the end."""
        self._thread = threading.Thread(target=self._run, name="gpus", daemon=True)
        self._thread.start()

    def end(self) -> tuple[GpuConditions, ...]:
        """Stop asking; what was seen of each GPU."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(_LONGEST_READING_S)
        return seen(list(self.readings))

    def _run(self) -> None:
        while not self._ended.wait(self.period_s):
            if found := self.ask().found:
                self.readings.append(found)


def seen(readings: Sequence[tuple[Card, ...]]) -> tuple[GpuConditions, ...]:
    """What readings say of each GPU, in the driver's order."""
    count = max((len(cards) for cards in readings), default=0)
    return tuple(_of([cards[place] for cards in readings if place < len(cards)]) for place in range(count))


def together(parts: Iterable[tuple[GpuConditions, ...] | None]) -> tuple[GpuConditions, ...] | None:
    """The conditions of several samples as one; None where one of them says nothing of GPUs."""
    found = list(parts)
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    count = max(len(each) for each in known)
    return tuple(_merged([each[place] for each in known if place < len(each)]) for place in range(count))


def _of(cards: Sequence[Card]) -> GpuConditions:
    """One GPU over several readings."""
    return _merged(
        [
            GpuConditions(
                name=card.name,
                driver=card.driver or "unknown",
                compute_capability=card.compute_capability or "unknown",
                memory_bytes=card.memory_bytes,
                power_requested_w=_range(card.power_requested_w),
                power_enforced_w=_range(card.power_enforced_w),
                reasons=None if card.reasons is None else tuple(sorted(card.reasons)),
                clock_sm_mhz=_range(card.clock_sm_mhz),
                clock_memory_mhz=_range(card.clock_memory_mhz),
                temperature_c=_range(card.temperature_c),
                power_w=_range(card.power_w),
                utilisation_percent=_range(card.utilisation_percent),
                readings=1,
            )
            for card in cards
        ]
    )


def _merged(parts: Sequence[GpuConditions]) -> GpuConditions:
    """Ranges and reasons of all; a reading that says nothing leaves the whole unknown."""
    reasons = [part.reasons for part in parts if part.reasons is not None]
    return parts[0].model_copy(
        update={
            "name": " or ".join(dict.fromkeys(part.name for part in parts)),
            "driver": " or ".join(dict.fromkeys(part.driver for part in parts)),
            **{name: _ranges([getattr(part, name) for part in parts]) for name in _RANGES},
            "reasons": tuple(sorted({each for one in reasons for each in one})) if len(reasons) == len(parts) else None,
            "readings": sum(part.readings for part in parts),
        }
    )


def _range(value: float | None) -> tuple[float, float] | None:
    return None if value is None else (value, value)


def _ranges(ranges: Sequence[tuple[float, float] | None]) -> tuple[float, float] | None:
    known = [each for each in ranges if each is not None]
    if len(known) < len(ranges) or not known:
        return None
    return min(low for low, _ in known), max(high for _, high in known)

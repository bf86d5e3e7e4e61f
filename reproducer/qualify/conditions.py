"""Under which conditions samples were taken: load of the machine, and processor time that others used meanwhile."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reproducer.documents.base import Part
from reproducer.documents.lock import Scalar
from reproducer.documents.measured import Conditions, GpuConditions
from reproducer.host import host_facts
from reproducer.qualify.gpus import GpuWatch, together

if TYPE_CHECKING:
    import psutil


class Surroundings(Part):
    """What went on while one sample was taken.

    Attributes:
        load_before: one-minute load average when it began.
        load_after: the same when it ended.
        wall_s: how long it took.
        other_cpu_s: processor seconds of processes that are neither the server nor penny; None where unreadable.
        gpus: every GPU that the driver shows; None where there is none.
    """

    load_before: float
    load_after: float
    wall_s: float
    other_cpu_s: float | None
    gpus: tuple[GpuConditions, ...] | None = None


@dataclass(frozen=True)
class Watch:
    """The counters when a sample begins."""

    server: int
    load: float
    since: float
    others: float | None
    gpus: GpuWatch | None = None

    @classmethod
    def begin(cls, server: int) -> "Watch":
        """Read the counters; `server` is the pid of the server's first process."""
        gpus = GpuWatch.begin()
        return cls(server, os.getloadavg()[0], time.monotonic(), _others(server), gpus)

    def end(self) -> Surroundings:
        """Read them again."""
        after = _others(self.server)
        used = None if self.others is None or after is None else max(after - self.others, 0.0)
        return Surroundings(
            load_before=self.load,
            load_after=os.getloadavg()[0],
            wall_s=time.monotonic() - self.since,
            other_cpu_s=used,
            gpus=None if self.gpus is None else self.gpus.end(),
        )


def conditions(
    surroundings: Sequence[Surroundings],
    folder: Path,
    cache_state: str,
    *,
    sampling: dict[str, Scalar] | None = None,
) -> Conditions:
    """The conditions of a measure: load before its first sample and after its last, processor time of others over all.

    Args:
        surroundings: those of its samples, in the order they were taken.
        folder: a place whose filesystem is stated.
        cache_state: what the measure says about the cache.
        sampling: how the requests of the measure have tokens chosen.
    """
    known = [(each.other_cpu_s, each.wall_s) for each in surroundings if each.other_cpu_s is not None]
    wall = sum(seconds for _, seconds in known)
    return Conditions(
        host=host_facts(folder),
        load_average=(surroundings[0].load_before, surroundings[-1].load_after) if surroundings else (0.0, 0.0),
        other_cpu_percent=round(100 * sum(used for used, _ in known) / wall, 1) if wall > 0 else None,
        cache_state=cache_state,
        sampling=sampling,
        gpus=together(each.gpus for each in surroundings),
    )


def _others(server: int) -> float | None:
    """Processor seconds used on this machine so far by everything but the server's processes and this one."""
    import psutil

    try:
        times = psutil.cpu_times()
        busy = times.user + times.nice + times.system + getattr(times, "irq", 0.0) + getattr(times, "softirq", 0.0)
        ours = _used(psutil.Process())
        first = psutil.Process(server)
        if server != os.getpid():
            ours += _used(first) + sum(_used(each) for each in first.children(recursive=True))
    except (psutil.Error, OSError):
        return None
    return float(busy - ours)


def _used(process: "psutil.Process") -> float:
    times = process.cpu_times()
    return float(times.user + times.system)

"""Completed requests as they come out of sources, in columns: 90 bytes or so each, however long the log is."""

from array import array
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from reproducer.documents.traces import ClockKind

Mode = Literal["unified", "prefill", "decode"]
UNKNOWN = -1
_SAME_CLOCK = 5_000_000
_HEALTH = b"HEALTH_CHECK"


class Report(NamedTuple):
    """One report of a completed request; times in microseconds, what it does not say is UNKNOWN.

    Attributes:
        rid: the request's name in the log; empty where it has none.
        clock: which clock `entered` is read from.
        stamp: when the line was written, in microseconds of local time; it tells one process clock from another.
        overlapping: as a table states it.
    """

    rid: bytes
    input_tokens: int
    output_tokens: int
    cached_tokens: int = UNKNOWN
    mode: Mode = "unified"
    clock: ClockKind = "none"
    resolution: int = 0
    entered: int = UNKNOWN
    queue: int = UNKNOWN
    prefill: int = UNKNOWN
    post_prefill: int = UNKNOWN
    forward: int = UNKNOWN
    stamp: int = UNKNOWN
    overlapping: int = UNKNOWN


class Finish(NamedTuple):
    """What the server's request logger says of a finished request; times in microseconds since 1970."""

    rid: bytes
    input_tokens: int
    output_tokens: int
    cached_tokens: int = UNKNOWN
    queue: int = UNKNOWN
    forward_entry: int = UNKNOWN
    prefill_end: int = UNKNOWN
    end: int = UNKNOWN


@dataclass
class _Clock:
    kind: ClockKind
    resolution: int
    offset: int


def _column() -> "array[int]":
    return array("q")


@dataclass
class Collected:
    """The requests so far, one entry in each column.

    Attributes:
        clocks: kind and resolution of each clock that `clock` counts.
        health_checks: reports of the server's own probes.
        prefill_halves: reports of prefill servers.
    """

    clock: "array[int]" = field(default_factory=_column)
    entered: "array[int]" = field(default_factory=_column)
    queue: "array[int]" = field(default_factory=_column)
    prefill: "array[int]" = field(default_factory=_column)
    post_prefill: "array[int]" = field(default_factory=_column)
    forward: "array[int]" = field(default_factory=_column)
    input_tokens: "array[int]" = field(default_factory=_column)
    cached_tokens: "array[int]" = field(default_factory=_column)
    output_tokens: "array[int]" = field(default_factory=_column)
    stated: "array[int]" = field(default_factory=_column)
    clocks: list[_Clock] = field(default_factory=list)
    health_checks: int = 0
    prefill_halves: int = 0
    _by_rid: dict[int, int] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set)
    _waiting: dict[int, Finish] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.output_tokens)

    def add(self, report: Report) -> bool:
        """Take a report; False where the very same one came before."""
        if report.rid.startswith(_HEALTH):
            self.health_checks += 1
            return True
        if report.rid:
            name = hash(report.rid)
            same = hash((name, report.entered, report.forward, report.output_tokens, report.mode))
            known = len(self._seen)
            self._seen.add(same)
            if len(self._seen) == known:
                return False
        if report.mode == "prefill":
            self.prefill_halves += 1
            return True
        self._append(report)
        if report.rid:
            self._by_rid[name] = len(self) - 1
            if self._waiting and (finish := self._waiting.pop(name, None)) is not None:
                self._complete(len(self) - 1, finish)
        return True

    def finish(self, finish: Finish) -> None:
        """Take what the request logger says: it completes the report of that request, before or after it."""
        if finish.rid.startswith(_HEALTH):
            return
        index = self._by_rid.pop(hash(finish.rid), None)
        if index is None:
            self._waiting[hash(finish.rid)] = finish
        else:
            self._complete(index, finish)

    def close(self) -> None:
        """Requests that only the request logger told of become requests of their own."""
        for finish in self._waiting.values():
            entered = UNKNOWN
            if finish.forward_entry >= 0:
                entered = finish.forward_entry - max(finish.queue, 0)
            self._append(
                Report(
                    rid=b"",
                    input_tokens=finish.input_tokens,
                    output_tokens=finish.output_tokens,
                    clock="wall clock" if entered >= 0 else "none",
                    resolution=1_000,
                    entered=entered,
                    queue=finish.queue if entered >= 0 else UNKNOWN,
                    forward=_between(finish.forward_entry, finish.end),
                )
            )
            self._complete(len(self) - 1, finish)
        self._waiting.clear()
        self._by_rid.clear()
        self._seen.clear()

    def _append(self, report: Report) -> None:
        self.clock.append(self._clock(report))
        _, prompt, output, cached, mode, _, _, entered, queue, prefill, post_prefill, forward, _, stated = report
        self.entered.append(entered)
        self.queue.append(queue)
        self.prefill.append(prefill)
        self.post_prefill.append(forward if mode == "decode" else post_prefill)
        self.forward.append(forward)
        self.input_tokens.append(prompt)
        self.cached_tokens.append(cached)
        self.output_tokens.append(output)
        self.stated.append(stated)

    def _complete(self, index: int, finish: Finish) -> None:
        """Fill what the report of a request does not say."""
        if self.cached_tokens[index] < 0 and finish.cached_tokens <= self.input_tokens[index]:
            self.cached_tokens[index] = finish.cached_tokens
        if self.prefill[index] < 0:
            self.prefill[index] = _between(finish.forward_entry, finish.prefill_end)
        if self.post_prefill[index] < 0:
            self.post_prefill[index] = _between(finish.prefill_end, finish.end)

    def _clock(self, report: Report) -> int:
        """The index of a report's clock.

        A process clock counts from the start of its machine. Two reports are of one such clock where the stamps of
        their lines lie as far apart as its times do.
        """
        offset = 0
        if report.clock == "process clock" and report.stamp >= 0:
            ended = report.entered + max(report.queue, 0) + max(report.forward, 0)
            offset = report.stamp - ended
        for index in range(len(self.clocks) - 1, -1, -1):
            clock = self.clocks[index]
            if clock.kind == report.clock and -_SAME_CLOCK <= clock.offset - offset <= _SAME_CLOCK:
                clock.offset = offset
                clock.resolution = max(clock.resolution, report.resolution)
                return index
        self.clocks.append(_Clock(report.clock, report.resolution, offset))
        return len(self.clocks) - 1


def _between(start: int, end: int) -> int:
    return end - start if 0 <= start <= end else UNKNOWN

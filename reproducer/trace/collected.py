"""Completed requests as they come out of sources, in columns: 90 bytes or so each, however long the log is."""

from array import array
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from reproducer.documents.traces import ClockKind, DamageKind

Mode = Literal["unified", "prefill", "decode"]
UNKNOWN = -1
# what one request can be, so that every sum, rate and span of requests fits its place in a document
MOST_TOKENS = 10**9
LONGEST_TIME = 10**15
MOST_CLOCKS = 100
_MOST = 2**53 - 1
_SAME_CLOCK = 5_000_000
_DAY = 86_400_000_000
# the parts of a request and the whole of it are read from clocks at other moments
_SLACK = 100_000
_HEALTH = b"HEALTH_CHECK"


class UnreadableError(ValueError):
    """A report that is none; `kind` says how."""

    def __init__(self, kind: DamageKind = "malformed") -> None:
        super().__init__(kind)
        self.kind = kind


class Report(NamedTuple):
    """One report of a completed request; times in microseconds, what it does not say is UNKNOWN.

    Attributes:
        rid: the request's name in the log; empty where it has none.
        clock: which clock `entered` is read from.
        stamp: when the line was written, in microseconds of local time; it tells one process clock from another.
        overlapping: as a table states it.
        day: tells one table's time of day from another's; 0 of every other clock.
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
    day: int = 0


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
    _waiting: dict[int, list[Finish]] = field(default_factory=dict)
    _tokens: int = 0
    _time: int = 0

    def __len__(self) -> int:
        return len(self.output_tokens)

    def add(self, report: Report) -> bool:
        """Take a report; False where the very same one came before.

        Raises:
            UnreadableError: no request has such numbers, or all of them together are more than a document holds.
        """
        if report.rid.startswith(_HEALTH):
            self.health_checks += 1
            return True
        self._fits(report.input_tokens, report.output_tokens, report.entered, report.queue, report.forward)
        if report.prefill > LONGEST_TIME or report.post_prefill > LONGEST_TIME:
            raise UnreadableError("out of range")
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
            if self._waiting and name in self._waiting:
                finishes = self._waiting[name]
                self._complete(len(self) - 1, finishes.pop(0))
                if not finishes:
                    del self._waiting[name]
        return True

    def finish(self, finish: Finish) -> bool:
        """Take what the request logger says: it completes the report of that request, before or after it.

        Returns False where it said the very same before.

        Raises:
            UnreadableError: as of `add`.
        """
        if finish.rid.startswith(_HEALTH):
            return True
        name, same = hash(finish.rid), hash((finish, "finish"))
        if same in self._seen:
            return False
        index = self._by_rid.pop(name, None)
        if index is None:
            forward = _between(finish.forward_entry, finish.end)
            self._fits(finish.input_tokens, finish.output_tokens, finish.forward_entry, finish.queue, forward)
            self._waiting.setdefault(name, []).append(finish)
        else:
            self._complete(index, finish)
        self._seen.add(same)
        return True

    def _fits(self, prompt: int, output: int, entered: int, queue: int, forward: int) -> None:
        """Whether a request's numbers can be, and the sums over all requests still fit a document.

        Raises:
            UnreadableError: they cannot, or do not.
        """
        tokens = self._tokens + prompt + output
        time = self._time + max(queue, 0) + max(forward, 0)
        if (
            prompt > MOST_TOKENS
            or output > MOST_TOKENS
            or entered > _MOST
            or queue > LONGEST_TIME
            or forward > LONGEST_TIME
            or tokens > _MOST
            or time > _MOST
        ):
            raise UnreadableError("out of range")
        self._tokens, self._time = tokens, time

    def close(self) -> None:
        """Requests that only the request logger told of become requests of their own."""
        for finish in (each for finishes in self._waiting.values() for each in finishes):
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
        clock = self._clock(report)
        if clock is None:
            report = report._replace(clock="none", entered=UNKNOWN)
            clock = self._clock(report) or 0
        self.clock.append(clock)
        _, prompt, output, cached, mode, _, _, entered, queue, prefill, post_prefill, forward, _, stated, _ = report
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
        """Fill what the report of a request does not say; a part of its time is not longer than all of it."""
        whole = self.forward[index] + _SLACK if self.forward[index] >= 0 else LONGEST_TIME
        if self.cached_tokens[index] < 0 and finish.cached_tokens <= self.input_tokens[index]:
            self.cached_tokens[index] = finish.cached_tokens
        if self.prefill[index] < 0 and (prefill := _between(finish.forward_entry, finish.prefill_end)) <= whole:
            self.prefill[index] = prefill
        if self.post_prefill[index] < 0 and (rest := _between(finish.prefill_end, finish.end)) <= whole:
            self.post_prefill[index] = rest

    def _clock(self, report: Report) -> int | None:
        """The index of a report's clock; None where there are so many that they cannot be clocks.

        A process clock counts from the start of its machine. Two reports are of one such clock where the stamps of
        their lines lie as far apart as its times do.
        """
        offset = report.day * _DAY
        if report.clock == "process clock" and report.stamp >= 0:
            ended = report.entered + max(report.queue, 0) + max(report.forward, 0)
            offset = report.stamp - ended
        for index in range(len(self.clocks) - 1, -1, -1):
            clock = self.clocks[index]
            if clock.kind == report.clock and -_SAME_CLOCK <= clock.offset - offset <= _SAME_CLOCK:
                clock.offset = offset
                clock.resolution = max(clock.resolution, report.resolution)
                return index
        if len(self.clocks) >= MOST_CLOCKS and report.clock != "none":
            return None
        self.clocks.append(_Clock(report.clock, report.resolution, offset))
        return len(self.clocks) - 1


def _between(start: int, end: int) -> int:
    return end - start if 0 <= start <= end else UNKNOWN

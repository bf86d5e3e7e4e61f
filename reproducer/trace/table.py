"""A plain CSV of completed requests: one a row, a header that names the columns."""

import csv
import difflib
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime

from reproducer.documents.base import shown
from reproducer.documents.traces import ClockKind
from reproducer.errors import InvalidDocumentError
from reproducer.trace.collected import UNKNOWN, Collected, Report, UnreadableError
from reproducer.trace.damage import Tally
from reproducer.trace.lines import Piece

COLUMNS = (
    "finished_at",
    "input_len",
    "cached_input_len",
    "output_len",
    "queue_ms",
    "prefill_ms",
    "post_prefill_ms",
    "forward_ms",
    "overlapping",
)
REQUIRED = ("input_len", "output_len")
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_MOST = 2**53
_LONGEST = 4_096
_COUNT = re.compile(r"[0-9]{1,15}")
_TIME = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
_OF_DAY = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]{1,6})?")
_EPOCH = re.compile(r"[0-9]{9,11}(\.[0-9]{1,9})?")
_DATED = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(?:Z|[+-][0-9]{2}:[0-9]{2})?"
)


def is_table(start: bytes) -> bool:
    """Whether a file that begins like this is a table of requests."""
    first = start.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0]
    names = {name.strip(b'\xef\xbb\xbf" \r').decode("utf-8", "replace") for name in first.split(b",")}
    return len(first) <= _LONGEST and len(names & set(COLUMNS)) > 1


@dataclass
class TableReader:
    """Reads one table.

    Attributes:
        where: the file, for errors.
        requests: rows that are requests.
        damaged: rows that are none.
        others: the header, and empty lines.
    """

    where: str
    source: int
    collected: Collected
    tally: Tally
    requests: int = 0
    damaged: int = 0
    others: int = 0
    _header: tuple[str, ...] = ()
    _days: int = 0
    _last: int = field(default=UNKNOWN)

    def read(self, piece: Piece) -> None:
        """Read whole lines.

        Raises:
            InvalidDocumentError: the header names a column that is not known, or not those that every request has.
        """
        for number, line in enumerate(piece.lines(), piece.first):
            if not line.strip():
                self.others += 1
            elif not self._header:
                self._header = self._names(line)
                self.others += 1
            else:
                try:
                    report = self._row(line, piece)
                    self.collected.add(report)
                except UnreadableError as error:
                    self.damaged += 1
                    self.tally.add(error.kind, self.source, number, line)
                    continue
                self.requests += 1
                if report.entered >= 0:
                    ended = report.entered + max(report.queue, 0) + report.forward
                    if ended < self._last:
                        self.tally.add("backwards", self.source, number, line)
                    self._last = ended

    def _names(self, line: bytes) -> tuple[str, ...]:
        try:
            names = tuple(name.strip() for name in _cells(line.removeprefix(b"\xef\xbb\xbf")))
        except UnreadableError as error:
            raise InvalidDocumentError("has a header that is no CSV", where=self.where) from error
        for name in names:
            if name not in COLUMNS:
                near = difflib.get_close_matches(name[:100], COLUMNS, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known columns: {', '.join(COLUMNS)}"
                raise InvalidDocumentError(f"unknown column {shown(name)}, {hint}", where=self.where)
        if len(set(names)) != len(names):
            raise InvalidDocumentError("names a column twice", where=self.where)
        missing = [name for name in REQUIRED if name not in names]
        if missing:
            raise InvalidDocumentError(f"has no column {missing[0]}", where=self.where)
        return names

    def _row(self, line: bytes, piece: Piece) -> Report:
        """The request of a row.

        Raises:
            UnreadableError: it is none.
        """
        if piece.cut:
            raise UnreadableError("truncated")
        if piece.long or len(line) > _LONGEST:
            raise UnreadableError("too long")
        cells = _cells(line)
        if len(cells) != len(self._header):
            raise UnreadableError("malformed")
        row = dict(zip(self._header, cells, strict=True))
        tokens, cached = _count(row["input_len"]), _optional(row, "cached_input_len")
        queue, forward = _duration(row, "queue_ms"), _duration(row, "forward_ms")
        prefill, post_prefill = _duration(row, "prefill_ms"), _duration(row, "post_prefill_ms")
        if cached > tokens or (forward >= 0 and max(prefill, post_prefill) > forward + _SECOND // 1_000):
            raise UnreadableError("contradictory")
        clock, ended, resolution = self._moment(row.get("finished_at", ""))
        entered = UNKNOWN
        if ended >= 0 and forward >= 0:
            entered = ended - forward - max(queue, 0)
            if entered < 0:
                raise UnreadableError("out of range")
        return Report(
            rid=b"",
            input_tokens=tokens,
            output_tokens=_count(row["output_len"]),
            cached_tokens=cached,
            clock=clock if entered >= 0 else "none",
            resolution=resolution,
            entered=entered,
            queue=queue,
            prefill=prefill,
            post_prefill=post_prefill,
            forward=forward,
            overlapping=_optional(row, "overlapping"),
            day=self.source if clock == "time of day" else 0,
        )

    def _moment(self, text: str) -> tuple[ClockKind, int, int]:
        """When a request ended, and what the clock resolves."""
        if not text:
            return "none", UNKNOWN, 0
        if match := _OF_DAY.fullmatch(text):
            return "time of day", self._of_day(match), _resolution(match[4])
        if match := _EPOCH.fullmatch(text):
            return "wall clock", round(float(text) * _SECOND), _resolution(match[1])
        if match := _DATED.fullmatch(text):
            try:
                moment = datetime.fromisoformat(text)
            except ValueError as error:
                raise UnreadableError("out of range") from error
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
            past = moment - datetime(1970, 1, 1, tzinfo=UTC)
            if past.days < 0:
                raise UnreadableError("out of range")
            return "wall clock", past.days * _DAY + past.seconds * _SECOND + past.microseconds, _resolution(match[1])
        raise UnreadableError("malformed")

    def _of_day(self, match: "re.Match[str]") -> int:
        """A time of day after the first midnight; one that falls by more than half a day is past another midnight."""
        hour, minute, second = int(match[1]), int(match[2]), int(match[3])
        if hour > 23 or minute > 59 or second > 59:  # noqa: PLR2004  a clock's face
            raise UnreadableError("out of range")
        found = ((hour * 60 + minute) * 60 + second) * _SECOND + round(float(match[4] or "0") * _SECOND)
        found += (self._days + 1) * _DAY  # the span of the first request may begin before midnight
        if self._last - found > _DAY // 2:
            self._days += 1
            found += _DAY
        return found


def _cells(line: bytes) -> list[str]:
    try:
        text = line.decode("utf-8").rstrip("\r")
        return next(csv.reader([text], strict=True))
    except (UnicodeDecodeError, csv.Error, StopIteration) as error:
        raise UnreadableError("not text") from error


def _count(text: str) -> int:
    if _COUNT.fullmatch(text) is None:
        raise UnreadableError("malformed")
    return int(text)


def _optional(row: dict[str, str], name: str) -> int:
    text = row.get(name, "")
    return _count(text) if text else UNKNOWN


def _duration(row: dict[str, str], name: str) -> int:
    text = row.get(name, "")
    if not text:
        return UNKNOWN
    if _TIME.fullmatch(text) is None:
        raise UnreadableError("malformed")
    found = round(float(text) * 1_000)
    if found >= _MOST:
        raise UnreadableError("out of range")
    return found


def _resolution(fraction: str | None) -> int:
    """What a time of so many decimals resolves, in microseconds."""
    return int(_SECOND // 10 ** min(len(fraction) - 1, 6)) if fraction else _SECOND

"""A server's log, line by line: which lines report, what they report, and which of those cannot be believed.

Reports that begin with SGLang's own stamp are taken at once. Everything else is looked at again only where a piece of
the log holds the words of a report at all: lines behind another program's prefix, vLLM's lines, and damaged ones.
"""

import json
import re
from dataclasses import dataclass, field
from itertools import accumulate

from reproducer.documents.traces import DamageKind
from reproducer.trace import sglang, vllm
from reproducer.trace.collected import Collected, UnreadableError
from reproducer.trace.damage import Tally
from reproducer.trace.lines import Piece
from reproducer.trace.telemetry import Prefilling, Telemetry, Windows

_WORDS = rb"(?:Decode batch|Prefill batch|Req ?Time ?Stats\(|Finish: obj=)"
_START = re.compile(sglang.STAMP + rb"(?=" + _WORDS + rb")")
_STAMPED = re.compile(sglang.STAMP)
_PREFIX = re.compile(rb"[^\[\]'\"=(\x00]{0,160}(?:\[[0-9]{1,10}\]: )?")
_VLLM = re.compile(
    rb"(?:[^\[\]'\"=(\x00]{0,160}(?:\[[0-9]{1,10}\]: )?)?(?:\([A-Za-z0-9_ .:=-]{1,80}\) )?"
    rb"(?:INFO )?([0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}) (?:\[[^\]]{1,80}\]|[a-z_]{1,40}\.py:[0-9]{1,6}\]) "
)
_AVERAGE = re.compile(rb"(?:[^:]{1,40}: )?Avg prompt throughput: ")
INSIDE = re.compile(sglang.STAMP + _WORDS)
_BARE = re.compile(_WORDS)
# a whole line in which SGLang logs what a client sent: whatever stands in it is quoted
_RECEIVED = re.compile(sglang.STAMP + rb"Receive(?: OpenAI)?: obj=.*\)", re.DOTALL)
_ANSI = re.compile(rb"\x1b(?:\[[0-9;?]{0,16}[A-Za-z]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[()][0-9A-Z]|[=>78])")
_MARKS = (b"Decode batch,", b"Prefill batch,", b"TimeStats(rid=", b"Time Stats(rid=", b"Finish: obj=", b" throughput: ")
_MORE = (b'"request.finished"', b"SpecDecoding metrics: ", b"Decode batch [", b"Prefill batch [")
_ALL = (*_MARKS, *_MORE)
_DOCKER = b'{"log":"'
_BACK = 2_000_000
_LEAP = b"2000-"
_D, _P, _R = b"DPR"


@dataclass
class Stamps:
    """The stamps of the last report, of the last window of SGLang and of the last line of vLLM's engine."""

    report: bytes = b""
    window: bytes = b""
    engine: bytes = b""


@dataclass
class LogReader:
    """Reads the pieces of one log after the other into what all of them fill.

    Attributes:
        sglang: how many reports of SGLang were read.
        vllm: how many of vLLM.
        stamps: the last ones, of this log and of those that were written before it.
        damaged: how many lines carry a report that was not read.
    """

    source: int
    collected: Collected
    telemetry: Telemetry
    prefilling: Prefilling
    tally: Tally
    requests: int = 0
    windows: int = 0
    prefills: int = 0
    damaged: int = 0
    sglang: int = 0
    vllm: int = 0
    stamps: Stamps = field(default_factory=Stamps)
    _second: tuple[bytes, int] = (b"", 0)
    _window: tuple[int, int] | None = None

    def read(self, piece: Piece) -> None:
        """Read whole lines: the telemetry of decoding out of all of them at once, the rest line by line."""
        text = piece.text if piece.long or piece.cut else self._decodes(piece)
        others: list[tuple[int, bytes]] = []
        start = _START.match
        for number, line in enumerate(Piece(text, piece.first, piece.long, piece.cut).lines(), piece.first):
            if not line:
                continue
            begun = start(line)
            if begun is None:
                others.append((number, line))
            else:
                self._stamped(number, line, begun[1], begun.end(), piece)
        if others:
            self._look_again(others, piece)

    def _decodes(self, piece: Piece) -> bytes:
        """Take the telemetry of decoding out of whole lines; in what is left, its lines are empty."""
        parts = sglang.DECODES.split(piece.text)
        if len(parts) == 1:
            return piece.text
        texts, stamps = parts[:: sglang.GROUPS], parts[1 :: sglang.GROUPS]
        if stamps[0] < self.stamps.window or stamps != sorted(stamps):
            return piece.text  # a clock that was set back: line by line, so that each such line is shown
        windows = sglang.windows([parts[group :: sglang.GROUPS] for group in range(2, sglang.GROUPS)])
        before: list[int] = []

        def number(at: int) -> int:
            if not before:
                before.extend(accumulate(text.count(b"\n") for text in texts))
            return piece.first + before[at]

        self.telemetry.add(windows, self.source, number, stamps)
        self.stamps.window = stamps[-1]
        self.windows += len(stamps)
        self.sglang += len(stamps)
        return b"".join(texts)

    def _stamped(self, number: int, line: bytes, stamp: bytes, at: int, piece: Piece) -> None:
        """A report behind SGLang's stamp."""
        if piece.long or piece.cut:
            self._damage("too long" if piece.long else "truncated", number, line)
            return
        if b"\x1b" in line:
            line = _ANSI.sub(b"", line)
        if line.endswith(b"\r"):
            line = line[:-1]
        try:
            self._report(number, line, stamp, at)
        except UnreadableError as error:
            self._damage(_kind(line, at, error.kind), number, line)
            return
        self.sglang += 1
        last = self.stamps.window if line[at] == _D else self.stamps.report
        if stamp < last:
            self._check_back(stamp, last, number, line)
        if line[at] == _D:
            self.stamps.window = stamp
        else:
            self.stamps.report = stamp

    def _report(self, number: int, line: bytes, stamp: bytes, at: int) -> None:
        """Take one report.

        Raises:
            UnreadableError: it is none.
        """
        letter = line[at]
        if letter == _R:
            if (found := sglang.USUAL.fullmatch(line, at)) is not None:
                request = sglang.usual_request(found, self._microseconds(stamp))
            elif (found := sglang.REQUEST.fullmatch(line, at)) is not None:
                request = sglang.request(found, self._microseconds(stamp))
            else:
                raise UnreadableError
            self._request(number, line, new=self.collected.add(request))
        elif letter == _D:
            found = sglang.DECODE.fullmatch(line, at)
            if found is None:
                raise UnreadableError
            window = sglang.windows([(group,) for group in found.groups()])
            self.telemetry.add(window, self.source, lambda _: number, (stamp,))
            self.windows += 1
        elif letter == _P:
            found = sglang.PREFILL.fullmatch(line, at)
            if found is None:
                raise UnreadableError
            computed, cached, rate = found.groups()
            rate_ = -1 if rate is None else int(rate.replace(b".", b""))
            if not self.prefilling.add(int(computed), int(cached), rate_):
                raise UnreadableError("out of range")
            self.prefills += 1
        else:
            self._request(number, line, new=self.collected.finish(sglang.finish_text(line)))

    def _request(self, number: int, line: bytes, *, new: bool) -> None:
        """Count a line that says of a request what is new, or what a line before it said."""
        self.requests += 1
        if not new:
            self.tally.add("repeated", self.source, number, line)

    def _look_again(self, others: list[tuple[int, bytes]], piece: Piece) -> None:
        """Lines that begin with no stamped report: most hold no word of one, and a whole piece is asked at once."""
        text = b"\n".join([line for _, line in others])
        marks = [mark for mark in _ALL if mark in text]
        if piece.holds and INSIDE.search(text) is None:
            self._damage("too long", *others[0])  # a report stands in it, behind what was kept of the line
            return
        if not marks:
            return
        for number, line in others:
            if any(mark in line for mark in marks):
                self._odd(number, line, piece)

    def _odd(self, number: int, line: bytes, piece: Piece) -> None:
        """A line that holds the words of a report and does not begin like one."""
        text = line[:-1] if line.endswith(b"\r") else line
        if text.startswith(_DOCKER):
            text = _undocked(text)
        if b"\x1b" in text:
            text = _ANSI.sub(b"", text)
        text = text[text.rfind(b"\r") + 1 :]
        if text.startswith(b"{"):
            self._json(number, text, piece)
            return
        engine = _VLLM.match(text)
        if engine is not None:
            self._engine(number, text, engine[1], engine.end(), piece)
            return
        prefix = _PREFIX.match(text)
        begun = _START.match(text, prefix.end() if prefix is not None else 0)
        if begun is not None:
            self._stamped(number, text, begun[1], begun.end(), piece)
            return
        self._quoted(number, text, piece)

    def _quoted(self, number: int, text: bytes, piece: Piece) -> None:
        """A line of something else that holds the words: it quotes a text, or two lines ran together."""
        if not piece.long and not piece.cut and _RECEIVED.fullmatch(text) is not None:
            return
        stamped = _STAMPED.match(text)
        if INSIDE.search(text, stamped.end() if stamped is not None else 0) is not None:
            kind: DamageKind = "too long" if piece.long else "not text" if b"\x00" in text else "interleaved"
            self._damage(kind, number, text)
        elif stamped is None and _BARE.match(text) is not None:
            self._damage("truncated" if piece.cut else "malformed", number, text)

    def _json(self, number: int, text: bytes, piece: Piece) -> None:
        if b'"request.finished"' not in text:
            return
        if piece.long or piece.cut:
            self._damage("too long" if piece.long else "truncated", number, text)
            return
        try:
            finish = sglang.finish_json(text)
            if finish is not None:
                self._request(number, text, new=self.collected.finish(finish))
                self.sglang += 1
        except UnreadableError as error:
            self._damage(_kind(text, 0, error.kind), number, text)

    def _engine(self, number: int, text: bytes, stamp: bytes, at: int, piece: Piece) -> None:
        """A line of vLLM's engine."""
        accepted = text.startswith(b"SpecDecoding metrics: ", at)
        if not accepted and _AVERAGE.match(text, at) is None:
            return
        if piece.cut or piece.long:
            self._damage("truncated" if piece.cut else "too long", number, text)
            return
        if accepted:
            self._accepted(number, text, at)
            return
        found = vllm.STATS.fullmatch(text, at)
        if found is None:
            self._damage(_kind(text, at, "malformed"), number, text)
            return
        prompt, prompt_, rate, rate_, running, waiting = found.groups()
        window = Windows([int(rate + rate_) * 10], [int(running)], [int(waiting)], [-1], [-1], [-1])
        self.telemetry.add(window, self.source, lambda _: number, (stamp,))
        self.telemetry.prompt(int(prompt + prompt_) * 10)
        self._window = number, int(running)
        self.windows += 1
        self.vllm += 1
        self._check_engine(stamp, number, text)

    def _accepted(self, number: int, text: bytes, at: int) -> None:
        """What vLLM says of acceptance in the window of the line before."""
        found = vllm.ACCEPTED.fullmatch(text, at)
        if found is None or self._window is None:
            self._damage(_kind(text, at, "malformed"), number, text)
            return
        length, length_, share, share_ = found.groups()
        line, running = self._window
        self.telemetry.accept(self.source, line, running, int(length + length_), int(share + share_) * 10)
        self._window = None
        self.windows += 1
        self.vllm += 1

    def _damage(self, kind: DamageKind, number: int, line: bytes) -> None:
        self.damaged += 1
        self.tally.add(kind, self.source, number, line)

    def _check_back(self, stamp: bytes, last: bytes, number: int, line: bytes) -> None:
        """A stamp before the last one; processes that share a log may be a second apart."""
        before, now = sglang.local_microseconds(last), sglang.local_microseconds(stamp)
        if before - now >= _BACK:
            self.tally.add("backwards", self.source, number, line)

    def _check_engine(self, stamp: bytes, number: int, line: bytes) -> None:
        """The same of a stamp that names no year: from December to January is no way back."""
        last, self.stamps.engine = self.stamps.engine, stamp
        if stamp < last and (last[:2], stamp[:2]) != (b"12", b"01"):
            self._check_back(_LEAP + stamp, _LEAP + last, number, line)

    def _microseconds(self, stamp: bytes) -> int:
        if self._second[0] != stamp:
            self._second = stamp, sglang.local_microseconds(stamp)
        return self._second[1]


def _kind(line: bytes, at: int, kind: str) -> DamageKind:
    """What is wrong with a report: another one begins inside, or it holds what is no text, or it is as it is."""
    if kind == "contradictory":
        return "contradictory"
    if kind == "out of range":
        return "out of range"
    if _STAMPED.search(line, at) is not None:
        return "interleaved"
    if b"\x00" in line or not _is_text(line):
        return "not text"
    return "malformed"


def _is_text(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _undocked(line: bytes) -> bytes:
    """The line that Docker's JSON log holds; as it is where it holds none."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return line
    text = data.get("log") if isinstance(data, dict) else None
    return text.rstrip("\r\n").encode("utf-8", "replace").replace(b"\n", b" ") if isinstance(text, str) else line

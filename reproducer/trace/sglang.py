"""The lines in which SGLang 0.5.7 to 0.5.23 reports; `docs/trace.md` says which release writes which.

What a client names a request and what it asks for stand in some of these lines. So a report must stand at the start of
its line, right after the stamp, and must match to the line's end.
"""

import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from reproducer.trace.collected import UNKNOWN, Finish, Mode, Report, UnreadableError
from reproducer.trace.telemetry import Windows

STAMP = rb"\[([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.[0-9]{3})?(?: [A-Z_]{2,10}[0-9]{1,6}){0,8}\] "
_ITEM = rb"[^\[\],:\n]{1,49}+: [^\[\],:\n]{1,24}+"
_DECODE = (
    rb"Decode batch(?: \[[0-9]{1,18}\])?, #running-req: ([0-9]{1,9})(?:, #(?:full )?token: ([0-9]{1,15}))?"
    rb"(?:, (?!accept len|gen )" + _ITEM + rb"){0,10}+"
    rb"(?:, accept len: ([0-9]{1,6}\.[0-9]{2}), accept rate: ([0-9]{1,6}\.[0-9]{2}))?"
    rb"(?:, (?!accept len|gen )" + _ITEM + rb"){0,16}+"
    rb", gen throughput \(token/s\): ([0-9]{1,12}\.[0-9]{2})(?:, #queue-req: ([0-9]{1,9}))?"
    rb"(?:, " + _ITEM + rb"){0,10}+(?:, )?"
)
DECODE = re.compile(_DECODE)
DECODES = re.compile(rb"^" + STAMP + _DECODE + rb"$", re.MULTILINE)
GROUPS = DECODES.groups + 1
PREFILL = re.compile(
    rb"Prefill batch(?: \[[0-9]{1,18}\])?, #new-seq: [0-9]{1,9}, #new-token: ([0-9]{1,12}), "
    rb"#cached-token: ([0-9]{1,12})(?:, (?!input )" + _ITEM + rb"){0,16}+"
    rb"(?:, input throughput \(token/s\): ([0-9]{1,12}\.[0-9]{2})(?:, " + _ITEM + rb"){0,10}+)?(?:, )?"
)
REQUEST = re.compile(
    rb"Req ?Time ?Stats\(rid=(.{1,1024}), (?:bootstrap_room=-?[0-9]{1,20}, )?"
    rb"input[ _]len=([0-9]{1,12})(?:, cached_input_len=([0-9]{1,12}))?, output[ _]len=([0-9]{1,12})"
    rb"(?:, attempts=[0-9]{1,9})?, type=(unified|prefill|decode)\): (.{1,1024})",
    re.DOTALL,
)
_PARTS = re.compile(
    rb"(?:(?P<name>[a-z_#]{1,40})(?:=(?P<value>-?[0-9]{1,15}\.[0-9]{1,6}|[0-9]{1,9})(?P<unit> ?[A-Za-z]{1,2}(?:/s)?)?"
    rb"|\((?P<inner>-?[0-9]{1,15}\.[0-9]{1,6})ms\)(?: = [a-z_() 0-9.+m-]{1,200}?)?)(?:[,;] |$))"
)
USUAL = re.compile(
    rb"Req ?Time ?Stats\(rid=(.{1,1024}), input[ _]len=([0-9]{1,12})(?:, cached_input_len=([0-9]{1,12}))?, "
    rb"output[ _]len=([0-9]{1,12})(?:, attempts=[0-9]{1,9})?, type=unified\): "
    rb"queue_duration=([0-9]{1,12}\.[0-9]{2})ms, (?:initial_prefill_elapsed=([0-9]{1,12}\.[0-9]{2})ms, "
    rb"post_prefill_elapsed=([0-9]{1,12}\.[0-9]{2})ms, )?forward_duration=([0-9]{1,12}\.[0-9]{2})ms, "
    rb"(entry_time|start_time)=([0-9]{1,10}\.[0-9]{3})",
    re.DOTALL,
)
_MILLISECOND = 1_000
_SECOND = 1_000_000
_MOST = 2**53
# a moment before 2001 is one of a clock that counts from the start of its machine
_DATED = 10**15
_META = b"'meta_info': {"
_TEXT_FIELDS = re.compile(
    rb"'(prompt_tokens|completion_tokens|cached_tokens|queue_time|forward_entry_time|prefill_finished_time"
    rb"|prefill_finished_ts|decode_finished_ts|request_finished_ts)': "
    rb"([0-9]{1,15}(?:\.[0-9]{1,20})?(?:e-[0-9]{1,2})?)[,}]"
)
_TEXT_ID = re.compile(rb"'id': '([^']{1,1024})'")


def windows(columns: Sequence[Sequence[bytes | None]]) -> Windows:
    """The telemetry windows of many decode lines, by the groups of `DECODE`, a column each."""
    running, tokens, length, share, rate, queued = map(_whole, columns)
    return Windows(rate, running, queued, tokens, length, [each * 100 if each >= 0 else each for each in share])


def _whole(column: Sequence[bytes | None]) -> list[int]:
    """Numbers without their points; UNKNOWN where there is none."""
    told = [each for each in column if each is not None]
    numbers = list(map(int, b" ".join(told).replace(b".", b"").split()))
    if len(told) == len(column):
        return numbers
    following = iter(numbers)
    return [UNKNOWN if each is None else next(following) for each in column]


def usual_request(match: "re.Match[bytes]", stamp: int) -> Report:
    """The request that a line of time statistics reports in the usual form, which takes a third of the time.

    Raises:
        UnreadableError: its numbers contradict each other.
    """
    rid, prompt, cached, output, queue, prefill, rest, forward, clock, entered = match.groups()
    tokens, held = int(prompt), UNKNOWN if cached is None else int(cached)
    whole = int(forward.replace(b".", b"")) * 10
    first = UNKNOWN if prefill is None else int(prefill.replace(b".", b"")) * 10
    post_prefill = UNKNOWN if rest is None else int(rest.replace(b".", b"")) * 10
    if held > tokens or post_prefill > whole + _MILLISECOND or first > whole + _MILLISECOND:
        raise UnreadableError("contradictory")
    return Report(
        rid,
        tokens,
        int(output),
        held,
        "unified",
        "wall clock" if clock == b"entry_time" else "process clock",
        _MILLISECOND,
        int(entered.replace(b".", b"")) * 1_000,
        int(queue.replace(b".", b"")) * 10,
        first,
        post_prefill,
        whole,
        stamp,
    )


def request(match: "re.Match[bytes]", stamp: int) -> Report:
    """The request that a line of time statistics reports.

    Raises:
        UnreadableError: its times cannot be read or contradict each other.
    """
    rid, prompt, cached, output, mode, tail = match.groups()
    times = _times(tail)
    kind: Mode = "prefill" if mode == b"prefill" else "decode" if mode == b"decode" else "unified"
    forward, queue = times.get(b"forward_duration", UNKNOWN), times.get(b"queue_duration", UNKNOWN)
    if b"entry_time" in times:
        clock, entered, resolution = "wall clock", times[b"entry_time"], _MILLISECOND
    elif (found := times.get(b"start_time", times.get(b"start", UNKNOWN))) >= 0:
        clock, entered, resolution = "process clock", found, _MILLISECOND
    else:
        raise UnreadableError
    if forward < 0 or queue < 0:
        raise UnreadableError
    prefill = times.get(b"initial_prefill_elapsed", UNKNOWN)
    post_prefill = times.get(b"post_prefill_elapsed", UNKNOWN)
    tokens, held = int(prompt), UNKNOWN if cached is None else int(cached)
    if held > tokens or post_prefill > forward + _MILLISECOND or prefill > forward + _MILLISECOND:
        raise UnreadableError("contradictory")
    before = sum(times.get(name, 0) for name in _BEFORE) if kind == "decode" else 0
    return Report(
        rid=rid,
        input_tokens=tokens,
        output_tokens=int(output),
        cached_tokens=held,
        mode=kind,
        clock="wall clock" if clock == "wall clock" else "process clock",
        resolution=resolution,
        entered=entered,
        queue=queue + before,
        prefill=prefill,
        post_prefill=post_prefill,
        forward=forward,
        stamp=stamp,
    )


_BEFORE = (
    b"prealloc_queue_duration",
    b"bootstrap_duration",
    b"alloc_wait_duration",
    b"transfer_duration",
)
_MOMENTS = frozenset({b"entry_time", b"start_time", b"start", b"bootstrap_done_time"})


def _times(tail: bytes) -> dict[bytes, int]:
    """The times of a report in microseconds, by name; every byte of it must be understood.

    Raises:
        UnreadableError: something in it is no time, or one is below zero or beyond all clocks.
    """
    found: dict[bytes, int] = {}
    at = 0
    while at < len(tail):
        match = _PARTS.match(tail, at)
        if match is None or match["name"] in found:
            raise UnreadableError
        at = match.end()
        name, value = match["name"], float(match["value"] or match["inner"])
        if name in _MOMENTS:
            time = round(value * _SECOND)
        elif match["inner"] is not None or match["unit"] == b"ms":
            time = round(value * _MILLISECOND)
        else:
            continue
        if not 0 <= time < _MOST:
            raise UnreadableError("out of range")
        found[name] = time
    return found


def finish_text(line: bytes) -> Finish:
    """What a `Finish: obj=..., out=...` line says.

    The texts of a request stand before its `meta_info`, with their quotes escaped, so the last one is the engine's.

    Raises:
        UnreadableError: it has no such part, or not whole.
    """
    start = line.rfind(_META)
    if start < 0 or not line.endswith(b"}}"):
        raise UnreadableError
    part = line[start:]
    name = _TEXT_ID.search(part)
    found = {match[1].decode(): float(match[2]) for match in _TEXT_FIELDS.finditer(part)}
    if name is None:
        raise UnreadableError
    return _finish(name[1], found)


def finish_json(line: bytes) -> Finish | None:
    """What a line `{"event": "request.finished", ...}` says; None of a line of another event.

    Raises:
        UnreadableError: it is not such an object.
    """
    try:
        data = json.loads(line)
        if data.get("event") != "request.finished":
            return None
        meta = data["out"]["meta_info"]
        return _finish(str(meta.get("id", data.get("rid"))).encode("utf-8", "backslashreplace"), meta)
    except UnreadableError:
        raise
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableError from error


def _finish(rid: bytes, found: dict[str, Any]) -> Finish:
    ended = found.get("request_finished_ts", found.get("decode_finished_ts"))
    prefilled = _moment(found.get("prefill_finished_time", found.get("prefill_finished_ts")))
    began = _moment(found.get("forward_entry_time"))
    finish = Finish(
        rid=rid,
        input_tokens=_count(found.get("prompt_tokens")),
        output_tokens=_count(found.get("completion_tokens")),
        cached_tokens=_count(found.get("cached_tokens")),
        queue=_moment(found.get("queue_time")),
        forward_entry=began if began >= _DATED else UNKNOWN,
        prefill_end=prefilled if prefilled >= _DATED else UNKNOWN,
        end=_moment(ended),
    )
    if finish.input_tokens < 0 or finish.output_tokens < 0:
        raise UnreadableError
    moments = [each for each in (finish.forward_entry, finish.prefill_end, finish.end) if each >= 0]
    if finish.cached_tokens > finish.input_tokens or moments != sorted(moments):
        raise UnreadableError("contradictory")
    return finish


def _count(value: object) -> int:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST or value != int(value):
        raise UnreadableError("out of range")
    return int(value)


def _moment(value: object) -> int:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value * _SECOND < _MOST:
        raise UnreadableError("out of range")
    return round(value * _SECOND)


def local_microseconds(stamp: bytes) -> int:
    """A stamp `YYYY-MM-DD HH:MM:SS` as microseconds of local time; UNKNOWN where there is no such day."""
    try:
        moment = datetime.fromisoformat(stamp[:19].decode("ascii"))
    except ValueError:
        return UNKNOWN
    return (moment.toordinal() * 86_400 + moment.hour * 3_600 + moment.minute * 60 + moment.second) * _SECOND

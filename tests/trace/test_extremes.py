"""Logs and tables made to break the reader: numbers without bound, files named twice, clocks and ids without number."""

import gzip
import json
import time
from pathlib import Path

import pytest

from reproducer.documents.traces import Trace
from reproducer.errors import UsageError
from reproducer.trace.collected import MOST_CLOCKS
from reproducer.trace.tracing import trace
from tests.trace.written import DECODE, PREFILL, REQUEST, STAMP, damage, listed, request, traced

CSV = "finished_at,input_len,output_len,post_prefill_ms,forward_ms\n"
VLLM = (
    "INFO 12-%s 00:11:13 [loggers.py:335] Engine 000: Avg prompt throughput: 16.5 tokens/s, Avg generation throughput: "
    "41.8 tokens/s, Running: 3 reqs, Waiting: 1 reqs, GPU KV cache usage: 0.2%%, Prefix cache hit rate: 27.9%%"
)


def finished(rid: str, *, cached: int = 8, began: float = 1787601371.001, ended: float = 1787601371.401) -> str:
    """What the request logger says of a request."""
    meta = {
        "id": rid,
        "prompt_tokens": 10,
        "completion_tokens": 30,
        "cached_tokens": cached,
        "forward_entry_time": began,
        "prefill_finished_time": 1787601371.101,
        "request_finished_ts": ended,
    }
    return json.dumps({"event": "request.finished", "rid": rid, "out": {"meta_info": meta}})


def _many(line: str, times: int) -> str:
    return "\n".join(line.replace("rid=a1", f"rid=a{number}") for number in range(times))


EXTREMES = {
    "more tokens than any prompt has": REQUEST.replace("input_len=472", f"input_len={'9' * 12}"),
    "a rate beyond all engines": REQUEST.replace("output_len=364", f"output_len={'9' * 12}"),
    "times that sum up to centuries": _many(
        REQUEST.replace("queue_duration=1.64", f"queue_duration={'9' * 12}.99"), 20
    ),
    "a moment beyond all clocks": REQUEST.replace("entry_time=1787601371", f"entry_time={'9' * 10}"),
    "batches whose sum is none": _many(PREFILL.replace("#new-token: 64", f"#new-token: {'9' * 12}"), 10_000),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_numbers_that_no_document_holds(name: str, tmp_path: Path) -> None:
    """They are counted as out of range, what is sound around them is read, and the trace is a valid document."""
    found = traced(tmp_path, request("first", 1787601371.0, 1.0), EXTREMES[name], DECODE)
    assert damage(found)["out of range"] >= 1
    assert listed(found).output_tokens[0] == 10
    assert found.lines.windows == 1
    assert Trace.from_data(json.loads(found.canonical()), where="it").digest == found.digest


def test_counters_and_rows_that_no_document_holds(tmp_path: Path) -> None:
    """Labels whose sum is beyond all counters, and a row beyond all requests, are out of range, too."""
    page, table = tmp_path / "metrics.txt", tmp_path / "requests.csv"
    page.write_text("# TYPE vllm:a counter\n" + 'vllm:a_total{x="1"} 1e15\n' * 3, encoding="utf-8")
    found = trace([page]).trace
    assert (damage(found), found.counters[0].total) == ({"out of range": 2}, 1e15)
    rows = (
        f"10:00:00,{'9' * 15},1,1,1",
        f"10:00:00,1,{'9' * 15},0.001,1",
        f"10:00:00,1,1,1,{'9' * 12}",
        "1969-12-31T23:59:59Z,1,1,1,1",
    )
    table.write_text(CSV + "\n".join(rows) + "\n", encoding="utf-8")
    found = trace([table]).trace
    assert (damage(found), found.requests.completed.requests) == ({"out of range": 4}, 0)


def test_a_file_that_is_named_twice(tmp_path: Path) -> None:
    """The same text twice, packed or not, would be counted twice: it is refused by name."""
    plain, packed, table = tmp_path / "a.log", tmp_path / "a.log.1.gz", tmp_path / "b.csv"
    text = f"{REQUEST}\n{DECODE}\n"
    plain.write_text(text, encoding="utf-8")
    packed.write_bytes(gzip.compress(text.encode()))
    table.write_text(CSV + "10:00:00,1,1,1,1\n", encoding="utf-8")
    for paths in ([plain, packed], [plain, plain], [table, plain, table]):
        with pytest.raises(UsageError, match="the same text as another file"):
            trace(paths)


def test_files_in_the_wrong_order(tmp_path: Path) -> None:
    """A file that goes on before the one that was read first is shown as a clock that went back, of either engine."""
    late, early = tmp_path / "late.log", tmp_path / "early.log"
    for lines in ((REQUEST, DECODE), (VLLM % "03",)):
        early.write_text("\n".join(lines) + "\n", encoding="utf-8")
        late.write_text(
            "\n".join(lines).replace("02:05:14", "03:05:14").replace("12-03", "12-04").replace("=a1", "=b1") + "\n",
            encoding="utf-8",
        )
        assert damage(trace([early, late]).trace) == {}
        assert damage(trace([late, early]).trace) == {"backwards": len(lines)}


def test_the_turn_of_a_year_is_no_way_back(tmp_path: Path) -> None:
    """VLLM's stamps name no year: from December to January time goes on."""
    assert damage(traced(tmp_path, VLLM % "31", (VLLM % "01").replace("12-01", "01-01"))) == {}
    assert damage(traced(tmp_path, VLLM % "31", VLLM % "01")) == {"backwards": 1}


def test_what_the_request_logger_says_twice(tmp_path: Path) -> None:
    """The same line again is repeated, before and after its report; another request of the same name is one more."""
    report = request("x", 1787601371.0, 1.0, output=30)
    for lines in ((report, finished("x"), finished("x")), (finished("x"), finished("x"), report)):
        found = traced(tmp_path, *lines)
        assert (found.requests.completed.requests, damage(found)) == (1, {"repeated": 1})
    found = traced(tmp_path, finished("x"), finished("x", ended=1787601399.0))
    assert (found.requests.completed.requests, damage(found)) == (2, {})


def test_what_the_request_logger_cannot_mean(tmp_path: Path) -> None:
    """More in the cache than the prompt holds and an end before the beginning are shown; another clock is not used."""
    report = request("x", 1787601371.0, 1.0, output=30)
    for wrong in (finished("x", cached=11), finished("x", ended=1787601371.0)):
        found = traced(tmp_path, report, wrong)
        assert (damage(found), listed(found).post_prefill_us) == ({"contradictory": 1}, (None,))
    found = traced(tmp_path, report, finished("x", began=123.4))
    assert (listed(found).prefill_us, listed(found).post_prefill_us) == ((None,), (300_000,))
    short = traced(tmp_path, request("x", 1787601371.0, 0.1, output=30), finished("x"))
    assert listed(short).post_prefill_us == (None,)


def test_ids_that_are_no_text_stay_apart(tmp_path: Path) -> None:
    """Two halves of characters are two names."""
    found = traced(tmp_path, finished("\ud800"), finished("\udfff", ended=1787601372.0))
    assert (found.requests.completed.requests, damage(found)) == (2, {})


def test_clocks_without_number(tmp_path: Path) -> None:
    """Reports on a clock each take linear time; beyond a hundred clocks a span is not known, and shown so."""
    lines = [
        request(f"r{number}", (number * 7919) % 10**6 * 100, 1.0).replace("entry_time", "start_time")
        for number in range(6_000)
    ]
    began = time.process_time()
    found = traced(tmp_path, *lines)
    assert time.process_time() - began < 8
    assert len(found.requests.clocks) == MOST_CLOCKS + 1
    assert (found.requests.completed.requests, found.requests.without_span) == (6_000, 6_000 - MOST_CLOCKS)


def test_two_tables_with_times_of_day(tmp_path: Path) -> None:
    """Ten o'clock in one file is not ten o'clock in another: their spans are never laid over each other."""
    paths = [tmp_path / "monday.csv", tmp_path / "tuesday.csv"]
    for count, path in enumerate(paths, 1):
        path.write_text(f"{CSV}10:00:00,{count},1,1,5000\n", encoding="utf-8")
    found = trace(paths).trace.requests
    assert (found.alone.requests, found.overlapping.requests, len(found.clocks)) == (2, 0, 2)


def test_a_table_that_is_cut(tmp_path: Path) -> None:
    """A last row without its end may have lost digits: it gives no number. Empty lines before a header are none."""
    path = tmp_path / "requests.csv"
    path.write_text(f"\n\n{CSV}10:00:00,1,1,1,5\n10:00:01,1,1,1,5", encoding="utf-8")
    found = trace([path]).trace
    assert (found.lines.requests, damage(found)) == (1, {"truncated": 1})


def test_a_prefill_longer_than_all_of_it(tmp_path: Path) -> None:
    """It contradicts the whole, in a log and in a table."""
    path = tmp_path / "requests.csv"
    path.write_text("input_len,output_len,prefill_ms,forward_ms\n1,1,900,5\n", encoding="utf-8")
    assert damage(trace([path]).trace) == {"contradictory": 1}
    long = REQUEST.replace("initial_prefill_elapsed=85.09", "initial_prefill_elapsed=9985.09")
    assert damage(traced(tmp_path, long)) == {"contradictory": 1}
    assert damage(traced(tmp_path, long.replace("attempts=0, ", "") + ", x=1")) == {"contradictory": 1}


def test_a_report_behind_a_line_without_end(tmp_path: Path) -> None:
    """A line too long to be read is damaged where a report stands in it anywhere, also across two reads of the file."""
    for length in ((5 << 20) + 9, (6 << 20) - 40, 12 << 20):
        found = traced(tmp_path, "x" * length + REQUEST, REQUEST)
        assert (damage(found), found.lines.requests, found.lines.others) == ({"too long": 1}, 1, 0)
    found = traced(tmp_path, "x" * (9 << 20), REQUEST)
    assert (damage(found), found.lines.requests, found.lines.others) == ({}, 1, 1)


def test_codes_of_terminals(tmp_path: Path) -> None:
    """Codes that colour, clear and name a window are read through, before a report and behind it."""
    lines = (f"\x1b[32m{REQUEST}\x1b[0K", f"\x1b]0;title\x07{DECODE}", f"{DECODE}\x1b[0m", f"\x1b[?25l{PREFILL}\x1b(B")
    found = traced(tmp_path, *lines)
    assert damage(found) == {}
    assert (found.lines.requests, found.lines.windows, found.lines.prefills) == (1, 2, 1)


def test_a_log_that_begins_with_zero_bytes(tmp_path: Path) -> None:
    """As where a log was cut while its server wrote on: the line is shown as no text, and what follows is read."""
    found = traced(tmp_path, b"\0" * 5_000 + REQUEST.encode(), f"{STAMP} {'x' * 10}", DECODE)
    assert (damage(found), found.lines.windows) == ({"not text": 1}, 1)


def test_a_request_that_quotes_a_report(tmp_path: Path) -> None:
    """What a client sent is no report and damages no line; a line that another one broke off is damaged as ever."""
    received = f"{STAMP} Receive: obj=GenerateReqInput(rid='a', text='{DECODE}')"
    found = traced(tmp_path, received, DECODE)
    assert (damage(found), found.lines.others, found.lines.windows) == ({}, 1, 1)
    assert damage(traced(tmp_path, received[:80] + DECODE, DECODE)) == {"interleaved": 1}

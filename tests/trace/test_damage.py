"""Damaged, interleaved, truncated, rotated and hostile logs: each line is counted once, none is dropped silently."""

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from reproducer.cli.app import app
from reproducer.documents.traces import Lines, Trace
from reproducer.errors import InvalidDocumentError, UnsafeInputError, UsageError
from reproducer.trace.tracing import trace
from tests.trace.written import DECODE, OTHER, PREFILL, REQUEST, STAMP, damage, listed, request, traced

TAIL = REQUEST[len(STAMP) + 1 :]
BROKEN = {
    "cut in the middle": (REQUEST[:120], "malformed"),
    "a name that is none": (REQUEST.replace("output_len", "output_lem"), "malformed"),
    "two reports in one line": (REQUEST[:90] + DECODE, "interleaved"),
    "a report inside another line": (OTHER[:30] + REQUEST, "interleaved"),
    "two reports one after the other": (DECODE + PREFILL, "interleaved"),
    "zero bytes": (REQUEST.replace("post_prefill", "post\0prefill"), "not text"),
    "more in the cache than there is": (
        REQUEST.replace("cached_input_len=192", "cached_input_len=473"),
        "contradictory",
    ),
    "decoding longer than all of it": (REQUEST.replace("2270.33", "9270.33"), "contradictory"),
    "a time below zero": (REQUEST.replace("entry_time=", "entry_time=-"), "out of range"),
    "a rate that is none": (DECODE.replace("61.48", "nan"), "malformed"),
    "numbers without end": (DECODE.replace("341", "9" * 400), "malformed"),
    "no stamp": (TAIL, "malformed"),
    "vLLM's numbers": (
        "INFO 12-03 00:11:13 [loggers.py:335] Engine 000: Avg prompt throughput: x tokens/s, Avg gener",
        "malformed",
    ),
}


def total(lines: Lines) -> int:
    """How many lines are accounted for."""
    return sum(lines.model_dump().values())


@pytest.mark.parametrize("name", BROKEN)
def test_a_damaged_line(name: str, tmp_path: Path) -> None:
    """It is counted by its kind, with its place, and the lines around it are read as ever."""
    line, kind = BROKEN[name]
    found = traced(tmp_path, REQUEST, line, DECODE, OTHER)
    assert damage(found) == {kind: 1}
    assert [(each.source, each.line) for each in found.damage[0].examples] == [(0, 2)]
    assert found.lines == Lines(requests=1, windows=1, prefills=0, metrics=0, others=1, damaged=1)


def test_a_truncated_end(tmp_path: Path) -> None:
    """A last line without its end gives no number, even where it reads like a whole one."""
    found = traced(tmp_path, DECODE, REQUEST, end=b"")
    assert (found.lines.windows, found.lines.requests, damage(found)) == (1, 0, {"truncated": 1})
    assert found.sources[0].lines == 2


def test_a_line_without_end(tmp_path: Path) -> None:
    """A line longer than four mebibytes is one damaged line, wherever it ends, and what follows is read."""
    found = traced(tmp_path, REQUEST + "x" * (9 << 20), DECODE)
    assert (found.sources[0].lines, found.lines.windows, damage(found)) == (2, 1, {"too long": 1})


def test_repeated_and_backwards(tmp_path: Path) -> None:
    """The same report twice counts once and is shown; a clock set back is shown, and its line still read."""
    back = DECODE.replace("02:05:14", "01:00:00")
    found = traced(tmp_path, REQUEST, REQUEST, DECODE, back)
    assert found.requests.completed.requests == 1
    assert (found.lines.requests, found.lines.windows) == (2, 2)
    assert damage(found) == {"repeated": 1, "backwards": 1}


def test_what_a_client_wrote_is_no_report(tmp_path: Path) -> None:
    """A prompt that quotes a report, in a logged request or an access line, never becomes a number."""
    quoted = (
        f"{STAMP} Receive: obj=GenerateReqInput(text='ReqTimeStats(rid=x, input_len=1, output_len=9999)')",
        f'{STAMP} INFO:     127.0.0.1:1 - "Decode batch, #running-req: 1, gen throughput (token/s): 9.99 HTTP/1.1"',
        f"{STAMP} text='{DECODE}'",
    )
    found = traced(tmp_path, *quoted)
    assert (found.lines.requests, found.lines.windows, total(found.lines)) == (0, 0, 3)
    assert damage(found) == {"interleaved": 1}


def test_prefixes_of_other_programs(tmp_path: Path) -> None:
    """Lines behind docker's, systemd's and a terminal's marks are read, and so are those that end like a DOS file's."""
    found = traced(
        tmp_path,
        f"Dec 01 02:05:14 host sglang[812]: {DECODE}",
        f"server-1  | {DECODE}",
        json.dumps({"log": DECODE + "\n", "stream": "stderr"}, separators=(",", ":")),
        f"\x1b[32m{DECODE}\x1b[0m",
        DECODE + "\r",
        REQUEST.replace("] Req", " TP0] Req", 1),
    )
    assert (found.lines.windows, found.lines.requests, damage(found)) == (5, 1, {})


def test_rotated_and_packed(tmp_path: Path) -> None:
    """Rotated files, packed or not, are one log: a request of the one overlaps one of the other."""
    old, new = tmp_path / "server.log.1.gz", tmp_path / "server.log"
    old.write_bytes(gzip.compress(f"{request('a', 1000.0, 10.0)}\n{request('b', 2000.0, 10.0)}\n".encode()))
    new.write_text(f"{request('c', 1005.0, 10.0)}\n{request('a', 1000.0, 10.0)}\n", encoding="utf-8")
    found = trace([old, new]).trace
    assert listed(found).overlapping == (1, 0, 1)
    assert damage(found) == {"repeated": 1}
    assert [(each.name, each.lines, each.whole) for each in found.sources] == [
        ("server.log.1.gz", 2, True),
        ("server.log", 2, True),
    ]


def test_a_packed_file_that_is_cut(tmp_path: Path) -> None:
    """What can be unpacked is read, the file is not whole, and the command says that not all was looked at."""
    path = tmp_path / "server.log.gz"
    text = "".join(f"{request(str(number), 1000.0 + number, 0.1)}\n" for number in range(20_000))
    path.write_bytes(gzip.compress(text.encode())[:-2_000])
    found = trace([path]).trace
    assert 0 < found.requests.completed.requests < 20_000
    assert (found.sources[0].whole, damage(found)["not unpacked"]) == (False, 1)
    assert CliRunner().invoke(app, ["trace", str(path), "--json"]).exit_code == 64 + 32


def test_a_packed_file_without_end(tmp_path: Path) -> None:
    """No more than may be unpacked is read."""
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(64 << 20)))
    found = trace([path], most_unpacked=4 << 20).trace
    assert (found.sources[0].whole, found.sources[0].unpacked <= 4 << 20) == (False, True)


def test_what_is_no_plain_file(tmp_path: Path) -> None:
    """A FIFO, a folder and a missing file are refused at once."""
    os.mkfifo(tmp_path / "fifo")
    for name, error in (("fifo", UnsafeInputError), ("", UnsafeInputError), ("gone", UsageError)):
        with pytest.raises(error):
            trace([tmp_path / name])


def test_a_hostile_name_and_line_are_shown_escaped(tmp_path: Path) -> None:
    """Control characters of a file's name and of a damaged line reach no terminal."""
    path = tmp_path / "a\x1b]0;owned\x07.log"
    path.write_bytes(f"{REQUEST[:100]}\x1b[2J\x07\n".encode())
    told = CliRunner().invoke(app, ["trace", str(path)])
    assert "malformed" in told.output
    assert not {"\x1b", "\x07"} & set(told.output)


def test_tables(tmp_path: Path) -> None:
    """A table's damaged rows are counted by kind; a column that nobody knows is refused with the nearest one."""
    path = tmp_path / "requests.csv"
    path.write_text(
        "finished_at,input_len,output_len,post_prefill_ms,forward_ms\n"
        "10:00:02,10,10,1000,1500\n10:00:03,10,x,1000,1500\n10:00:03,10\n25:00:00,10,10,1,2\n10:00:04,1,1,9,2\n",
        encoding="utf-8",
    )
    found = trace([path]).trace
    assert damage(found) == {"malformed": 2, "out of range": 1, "contradictory": 1}
    assert (found.lines.requests, found.lines.others, found.lines.damaged) == (1, 1, 4)
    path.write_text("input_len,queue_ms,outptu_len\n1,1,1\n", encoding="utf-8")
    with pytest.raises(InvalidDocumentError, match="did you mean 'output_len'"):
        trace([path])


def test_rates_and_overlap_of_a_table(tmp_path: Path) -> None:
    """Rates are over the requests that have one; an overlap that a table states holds, and is shown to be ruled out."""
    path = tmp_path / "requests.csv"
    path.write_text(
        "finished_at,input_len,output_len,post_prefill_ms,forward_ms,overlapping\n"
        "10:00:02.000,10,10,1000,1500,0\n10:00:12.000,10,60,2000,2500,1\n10:00:22.000,10,500,,2500,0\n",
        encoding="utf-8",
    )
    found = trace([path]).trace.requests
    assert found.completed.decode is not None
    assert (found.completed.requests, found.completed.decode.requests) == (3, 2)
    assert (found.completed.decode.median, found.completed.decode.token_weighted) == (20.0, 70 / 3)
    assert (found.alone.requests, found.overlapping.requests, found.contradicted) == (2, 1, 1)


PIECES = st.sampled_from((DECODE, PREFILL, REQUEST, OTHER, STAMP, "\0", "\r", "\xff", "{", '{"log":"', "]", ", ", ""))


@given(
    lines=st.lists(st.lists(PIECES, max_size=4).map("".join), max_size=12),
    more=st.binary(max_size=40),
    cut=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_every_line_is_counted_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], more: bytes, *, cut: bool
) -> None:
    """Whatever stands in a log, each of its lines is in exactly one count, and the trace is a valid document."""
    path = tmp_path_factory.mktemp("log") / "server.log"
    path.write_bytes("\n".join(lines).encode("latin-1") + b"\n" + more + (b"" if cut else b"\n"))
    found = trace([path]).trace
    data = path.read_bytes()
    assert total(found.lines) == found.sources[0].lines == data.count(b"\n") + (not data.endswith(b"\n"))
    assert Trace.from_data(json.loads(found.canonical()), where="it").digest == found.digest


def test_the_command_line(tmp_path: Path) -> None:
    """`--output` writes the trace that `--json` tells; a file that says nothing known is no success."""
    log, out = tmp_path / "server.log", tmp_path / "trace.json"
    log.write_text(f"{REQUEST}\n{DECODE}\n", encoding="utf-8")
    told = CliRunner().invoke(app, ["trace", str(log), "--json", "--output", str(out), "--bands", "0-300,300-"])
    assert told.exit_code == 0
    said = json.loads(told.stdout)
    written = Trace.from_data(json.loads(out.read_bytes()), where=str(out))
    assert (said["digest"], said["trace"]) == (written.digest, str(out))
    assert [(band["name"], band["completed"]["requests"]) for band in said["bands"]] == [("0-300", 0), ("300-", 1)]
    log.write_text("nothing of a server\n", encoding="utf-8")
    assert CliRunner().invoke(app, ["trace", str(log), "--json"]).exit_code == 64 + 32

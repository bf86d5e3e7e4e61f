"""Traces side by side: requests by context and overlap; telemetry windows are never request rates."""

from pathlib import Path

import pytest

from reproducer.comparison.comparing import compare_sides
from reproducer.comparison.numbers import NotComparableError
from reproducer.comparison.sides import Side, read_side
from reproducer.trace.tracing import trace
from tests.end_to_end.newcomer import ROOT

HEADER = "input_len,output_len,prefill_ms,post_prefill_ms,overlapping\n"
WINDOW = (
    "[2026-08-24 15:56:13] Decode batch, #running-req: 1, #token: 100, token usage: 0.01, "
    "cuda graph: True, gen throughput (token/s): {rate}, #queue-req: 0\n"
)


def table(folder: Path, name: str, rows: str) -> Side:
    """A trace of a table of requests, written and read again."""
    path = folder / f"{name}.csv"
    path.write_text(HEADER + rows)
    document = folder / f"{name}.json"
    document.write_bytes(trace([path]).trace.canonical())
    return read_side(document)


def test_requests_by_context_and_overlap(tmp_path: Path) -> None:
    """Each group stands with its like, n is the number of its requests, and one trace alone has no noise floor."""
    first = table(tmp_path, "a", "100,50,10,1000,0\n100,60,10,1000,0\n100,10,10,1000,1\n")
    second = table(tmp_path, "b", "100,500,10,1000,0\n")
    found = compare_sides(first, second)
    rates = {
        (each.before.parameters["requests"], each.before.statistic): each
        for each in found.deltas
        if each.before.value.startswith("decode") and each.before.parameters["context_below"] == "all"
    }
    alone = rates["alone", "median of requests"]
    assert (alone.difference.before, alone.difference.after) == (55, 500)
    assert alone.before.observations.values == (50, 60)
    assert alone.content()["n"] == [2, 1]
    assert alone.content()["boots"] == [None, None]
    assert rates["completed", "token-weighted"].difference.before == 40
    assert ("overlapping", "median of requests") not in rates
    assert any("requests='overlapping'" in each and each.endswith("only in A") for each in found.not_compared)
    back = compare_sides(second, first)
    assert any("requests='overlapping'" in each and each.endswith("only in B") for each in back.not_compared)
    assert {each.difference.conclusion for each in found.deltas} == {"no difference shown"}
    assert found.kind == "directional"
    assert {"host and GPUs", "what the requests asked for"} <= {each.name for each in found.differing}


def test_a_window_is_no_request(tmp_path: Path) -> None:
    """A telemetry window against the rate of a request is refused, in one trace as between two."""
    log = tmp_path / "server.log"
    log.write_text(WINDOW.format(rate="300.50"))
    windows = tmp_path / "windows.json"
    windows.write_bytes(trace([log]).trace.canonical())
    requests, other = table(tmp_path, "a", "100,50,10,1000,0\n"), read_side(windows)
    assert [each.kind for each in other.numbers] == ["telemetry window"]
    with pytest.raises(NotComparableError, match="a completed-request rate is not a telemetry window"):
        compare_sides(requests, other, pairs=[("decode median", "window tok_s")])
    with pytest.raises(NotComparableError, match="only in A"):
        compare_sides(requests, other)


def test_a_trace_is_no_claim(tmp_path: Path) -> None:
    """Ordinary use against a published number is refused."""
    claim = read_side(ROOT / "evidence" / "claims" / "qwen38-27b-dflash2-agentic-trace.json")
    with pytest.raises(NotComparableError, match="nobody chose its requests"):
        compare_sides(table(tmp_path, "a", "100,50,10,1000,0\n"), claim)

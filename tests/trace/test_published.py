"""The public trace of two hours: every figure that was published of it comes out, to its last digit."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.traces import Group, Trace
from reproducer.trace.tracing import trace

DATA = Path(__file__).parents[3] / "shared" / "data"
TABLE = DATA / "agentic-trace-2026-08-24.csv"
pytestmark = pytest.mark.skipif(not TABLE.is_file(), reason="../shared/data, with the published table, is not here")


@pytest.fixture(scope="module", name="published")
def _published() -> dict[str, Any]:
    facts = tomllib.loads((DATA / "published-qwen38-dflash2.toml").read_text(encoding="utf-8"))
    found: dict[str, Any] = facts["agentic_trace"]
    return found


@pytest.fixture(scope="module", name="found")
def _found() -> Trace:
    return trace([TABLE]).trace


def figures(group: Group) -> tuple[int, float, float]:
    """Requests, median and token-weighted rate, with the digits that were published."""
    assert group.decode is not None
    return group.requests, round(group.decode.median, 2), round(group.decode.token_weighted, 2)


def test_requests_and_rates(found: Trace, published: dict[str, Any]) -> None:
    """124 requests, 117 of them alone and 7 overlapping, their tokens and both rates of each, and the fastest one."""
    for group, name in (
        (found.requests.completed, "completed"),
        (found.requests.alone, "without_overlap"),
        (found.requests.overlapping, "with_overlap"),
    ):
        said = published[name]
        assert figures(group) == (said["requests"], said["median_tok_s"], said["token_weighted_tok_s"])
    completed = found.requests.completed
    assert completed.output_tokens == published["completed"]["output_tokens"] == 85_156
    assert completed.decode is not None
    assert round(completed.decode.highest, 2) == published["fastest_completed_request_tok_s"]


def test_every_band(found: Trace, published: dict[str, Any]) -> None:
    """Each published band of requests alone; the bands between them hold none that is alone."""
    bands = {band.name: band.alone for band in found.bands if band.alone.requests}
    said = {name: (count, median, weighted) for name, count, median, weighted in published["bands_without_overlap"]}
    assert {name: figures(group) for name, group in bands.items()} == said
    assert sum(band.completed.requests for band in found.bands) == 124


def test_spans_agree_with_the_stated_overlap(found: Trace, tmp_path: Path) -> None:
    """Without the column that states it, the sweep separates the same 7 requests; with it, no span contradicts it."""
    assert (found.requests.overlap, found.requests.contradicted) == ("stated", 0)
    bare = tmp_path / "bare.csv"
    bare.write_text(
        "".join(line.rpartition(",")[0] + "\n" for line in TABLE.read_text(encoding="utf-8").splitlines()),
        encoding="utf-8",
    )
    swept = trace([bare]).trace
    assert swept.requests.overlap == "swept"
    assert swept.requests.alone == found.requests.alone
    assert swept.requests.overlapping == found.requests.overlapping
    assert swept.requests.possibly_overlapping == 59

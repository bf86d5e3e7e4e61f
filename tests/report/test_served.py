"""Figures of what a server's log says: kinds apart, overlapping requests apart, and bounded whatever a trace holds."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from reproducer.documents.traces import Served, Trace
from reproducer.errors import InvalidDocumentError
from reproducer.report.blocks import Figure
from reproducer.report.figures.strips import Panel, Strip, strips
from reproducer.report.html import page
from reproducer.report.served_rates import MOST_DOTS, rates
from reproducer.trace.tracing import trace
from tests.report.test_page import subject
from tests.verify.factory import Evidence, good_evidence

HEADER = "input_len,output_len,prefill_ms,post_prefill_ms,forward_ms,overlapping\n"
ROWS = "100,50,10,1000,1010,0\n100,90,10,1000,1010,0\n3000,20,10,1000,1010,0\n100,10,10,1000,1010,1\n"


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A lock and the receipts of a good run."""
    return good_evidence(tmp_path_factory.mktemp("served"))


def table(folder: Path, rows: str, served: Served | None = None) -> Trace:
    """The trace of a table of requests."""
    path = folder / "requests.csv"
    path.write_text(HEADER + rows, encoding="utf-8")
    return trace([path], served=served).trace


def figures(found: Trace) -> dict[str, Figure]:
    """The figures of a boot, by the kind of their rates."""
    return {each.name.rpartition("-")[2]: each for each in rates(0, "boot 1", found)}


def test_kinds_and_overlap_apart(tmp_path: Path) -> None:
    """A decode rate and a rate with the prefill in it are two figures; a band has a row for each half."""
    found = figures(table(tmp_path, ROWS))
    assert set(found) == {"decode", "forward"}
    assert found["decode"].table.rows == (
        ("0-2K", "2", "alone", "70", "70", "50", "90", "tok/s"),
        ("0-2K", "1", "overlapping", "10", "10", "10", "10", "tok/s"),
        ("2-64K", "1", "alone", "20", "20", "20", "20", "tok/s"),
    )
    assert found["forward"].table.rows[0][3] != "70"
    wide, narrow = found["decode"].draw()
    assert wide.width > narrow.width
    assert "var(--first)" in wide.markup
    assert "var(--second)" in wide.markup
    assert ">overlapping another request<" in wide.markup


def test_on_the_page(evidence: Evidence, tmp_path: Path) -> None:
    """The figure stands in the section of the log, with its words and its table; a page without a trace has none."""
    served = Served(lock_digest=evidence.opened.digest, launch_receipt=evidence.launches[0].digest)
    text = page(subject(evidence, traces=(table(tmp_path, ROWS, served),)))
    section = text[text.index('<section id="served"') : text.index('<section id="checks"')]
    assert section.count('<svg class="wide"') == 2
    assert "0-2K, alone: 2 requests, median 70 tok/s." in section
    assert "no median is made over both" in section
    assert "no median is made over both" not in page(subject(evidence))


def test_requests_that_are_too_many_to_see(tmp_path: Path) -> None:
    """More than 2,000 requests are bands from least to most, and the drawing does not grow with them."""
    few = figures(table(tmp_path, ROWS * 2))["decode"]
    many = figures(table(tmp_path, ROWS * (MOST_DOTS // 4 + 1)))["decode"]
    assert few.description.startswith("A dot is one request")
    assert many.description.startswith("Bands from least to most.")
    assert len(many.draw()[0].markup) < 3 * len(few.draw()[0].markup)


def test_unlisted_and_odd_requests(tmp_path: Path) -> None:
    """No prompt, no time, no list: what has a rate is drawn, what has none is not."""
    found = table(tmp_path, "0,5,0,1000,1000,0\n0,5,0,0,0,0\n400000,7,1,9,10,1\n")
    without = found.model_copy(update={"requests": found.requests.model_copy(update={"listed": None})})
    for each in (found, without):
        assert figures(each)["decode"].draw()[0].markup
    assert not figures(table(tmp_path, "100,5,0,0,0,0\n"))


def test_numbers_that_fit_on_no_axis() -> None:
    """What a drawing library cannot lay out is an error that says so, and no fault of penny's."""
    with pytest.raises(InvalidDocumentError, match="fit on no axis"):
        strips("odd", (Panel("t", "s", (Strip("boot 1", (1e308, -1e308)),)),))


def test_memory_of_a_drawing() -> None:
    """The worst numbers that a receipt can hold are drawn, or refused, within 1 GB of address space."""
    program = (
        "from reproducer.errors import InvalidDocumentError\n"
        "from reproducer.report.figures.clouds import Cloud, Plot, clouds\n"
        "from reproducer.report.figures.shares import Steps, shares\n"
        "from reproducer.report.figures.strips import Panel, Strip, strips\n"
        "pairs = ((5e-324, 1.0), (1e15, 1e15 + 0.125), (1e-300, 1e300), (1.0, 1.7e308))\n"
        "for index, pair in enumerate(pairs):\n"
        "    for draw in (\n"
        "        lambda: strips(f's{index}', (Panel('t', 's', (Strip('b', pair),), pair[0], pair),)),\n"
        "        lambda: shares(f'e{index}', 'ms', (Steps('b', pair),)),\n"
        "        lambda: clouds(f'c{index}', (Plot('t', 'x', 'y', (Cloud('l', (pair, pair[::-1])),)),)),\n"
        "    ):\n"
        "        try:\n"
        "            draw()\n"
        "        except InvalidDocumentError:\n"
        "            pass\n"
    )
    limit = 1 << 30

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, preexec_fn=bounded
    )
    assert ran.returncode == 0, ran.stderr

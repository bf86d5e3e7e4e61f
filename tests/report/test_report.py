"""The report: the verdict first, every number with its bound, everything skipped with its reason."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from reproducer.documents.verdict import Verdict
from reproducer.ledger import AnyReceipt
from reproducer.report.figure import figure
from reproducer.report.markdown import report
from reproducer.report.text import code, number, plain
from reproducer.verify.receipts import verify_receipts
from tests.verify.factory import Evidence, derived_value, edited, good_evidence


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A lock and the receipts of a good run."""
    return good_evidence(tmp_path_factory.mktemp("report"))


def _report(evidence: Evidence, receipts: tuple[AnyReceipt, ...], **named: Any) -> str:
    return report(evidence.opened.lock, receipts, Verdict(checks=verify_receipts(evidence.opened, receipts)), **named)


def _row(text: str, start: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_verdict_comes_first(evidence: Evidence) -> None:
    """The first line a person reads is the lock's name and the verdict."""
    lines = _report(evidence, evidence.receipts).splitlines()

    assert lines[1] == "# small: passed"
    assert "Every check of these receipts holds" in lines[3]


def test_numbers_carry_kind_samples_boots_range_and_bound(evidence: Evidence) -> None:
    """A row has value, unit, kind, n, boots, spread, bound and whether it holds."""
    derived = derived_value(evidence.measure("decode.single"), "decode_rate")

    row = _row(_report(evidence, evidence.receipts), "`decode.single/1` | `decode_rate`")

    assert row == [
        "`decode.single/1`",
        "`decode_rate`",
        f"**{number(derived.value)}**",
        "tok/s",
        "completed-request rate",
        "4",
        "2",
        f"{number(derived.minimum)} to {number(derived.maximum)}",
        "≥ 10",
        "yes",
    ]


def test_failures_and_skips_are_listed_with_reasons(evidence: Evidence) -> None:
    """What failed, what is unknown and what was skipped stands there by id and reason."""
    old = evidence.measure("decode.single")

    def skip(receipt: dict[str, Any]) -> None:
        receipt.update(status="skipped", reason="no *storage* | here", samples=[], derived=[], thresholds=[])

    receipts = evidence.replacing(old, edited(old, skip))
    build = edited(evidence.build, lambda content: content.update(python="3.12.1"))

    text = _report(evidence, (build, *receipts[1:]))

    assert "# small: failed" in text
    assert "- `measure.decode.single`: no \\*storage\\* \\| here" in text
    assert "- `threshold.decode.single.decode_rate`: the measure was skipped" in text
    assert "- `build.python`: the runtime's Python is 3.12.1 (expected `3.11`, got `3.12.1`)" in text
    assert "Nothing was skipped" not in text


def test_conditions_and_runtime_are_stated(evidence: Evidence) -> None:
    """Machine, load, cache state, level, isolation and namespace are stated."""
    text = _report(evidence, evidence.receipts, key_id="ab" * 32, figure="report.svg")

    for fact in (
        "Example Processor 3000 @ 2.50GHz",
        "24.0 GiB",
        "3.25 % of one processor",
        "bytes-identical",
        "Built without network, umask 022, Python 3.11.7",
        f"`{evidence.launches[0].namespace}`",
        f"`{evidence.opened.digest}`",
        "`" + "ab" * 32 + "`",
        "penny verify . --key KEY.pem",
        "![Spread of the samples of each measure](report.svg)",
        "It proves who signed, not when",
    ):
        assert fact in text


def test_differences_of_the_build_are_named(evidence: Evidence) -> None:
    """A build that only reached the same content names the members that differ."""

    def differ(build: dict[str, Any]) -> None:
        build["outputs"][0].update(
            level="content-identical",
            differences=[{"where": "engine/RECORD", "expected": "00", "got": "11", "reason": "file order"}],
        )

    text = _report(evidence, (edited(evidence.build, differ), *evidence.launches, *evidence.measures))

    assert "- `engine-1.0-py3-none-any.whl`: `engine/RECORD` file order" in text


def test_hostile_text_stays_text(evidence: Evidence) -> None:
    """Markup in a receipt cannot add headings, links, images, rows or HTML to the page."""
    evil = "x | **passed** |\n\n# all passed <script>alert(1)</script> ![i](http://x) `code`\x1b[2J"

    def poison(build: dict[str, Any]) -> None:
        build["host"].update(cpu=evil)
        build["outputs"][0]["differences"] = [{"where": evil, "reason": evil}]

    text = _report(evidence, (edited(evidence.build, poison), *evidence.launches, *evidence.measures))

    assert "<script>" not in text.replace("`", "").split("Differences")[0]
    assert "\n# all passed" not in text
    assert "\x1b" not in text
    assert "![i]" not in text.split("Differences")[0]
    assert plain("<b>[a](b)|`") == "\\<b\\>\\[a\\]\\(b\\)\\|\\`"
    assert code("a`b|c\n") == "`a'b¦c `"


def test_page_is_pure(evidence: Evidence) -> None:
    """The same receipts in another order give the same page and figure."""
    assert _report(evidence, evidence.receipts) == _report(evidence, evidence.receipts[::-1])
    lock = evidence.opened.lock
    assert figure(lock, evidence.receipts) == figure(lock, evidence.receipts[::-1])


def test_report_of_nothing_says_so(evidence: Evidence) -> None:
    """Without receipts the page says unknown and shows no table of numbers."""
    text = _report(evidence, ())

    assert "# small: unknown" in text
    assert "## Measures\n\nNone." in text


def test_figure_shows_a_dot_for_each_sample(evidence: Evidence) -> None:
    """The figure is well-formed, loads nothing, and draws every value of every repeated measurement."""
    text = figure(evidence.opened.lock, evidence.receipts)
    root = ET.fromstring(text)  # noqa: S314  our own text
    space = {"s": "http://www.w3.org/2000/svg"}
    dots = root.findall("s:circle", space)
    drawn = [value for receipt in evidence.measures for value in receipt.derived if value.unit in ("tok/s", "s")]

    assert len(dots) == sum(len(value.values) for value in drawn)
    assert all(250 <= float(dot.attrib["cx"]) <= 630 for dot in dots)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_figure_without_numbers_says_so(evidence: Evidence) -> None:
    """Nothing repeated, nothing drawn."""
    assert "nothing was measured more than once" in figure(evidence.opened.lock, (evidence.build,))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (24.0, "24"), (24.8153, "24.82"), (1 / 3, "0.3333"), (3.63e-05, "3.63e-05"), (123456.7, "1.235e+05")],
)
def test_numbers_are_short(value: float, text: str) -> None:
    """Four significant digits."""
    assert number(value) == text


def test_path_of_figure_is_relative(evidence: Evidence, tmp_path: Path) -> None:
    """Without a figure there is none to be shown."""
    del tmp_path
    assert "report.svg" not in _report(evidence, evidence.receipts)

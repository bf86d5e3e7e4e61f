"""The numbers of the statistics are those that numpy and scipy compute from the documented rules."""

import json
from pathlib import Path
from typing import Any

import pytest

from reproducer.statistics.comparison import compare
from reproducer.statistics.draws import words
from reproducer.statistics.intervals import bootstrap, wilson
from reproducer.statistics.noise import floor, noise, student
from reproducer.statistics.observations import Observations

VECTORS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "docs/vectors/statistics.json").read_text())
CLOSE = 1e-12


def observed(boots: list[list[float]]) -> Observations:
    """Observations with one value a sample."""
    return Observations.of((str(boot), [value]) for boot, values in enumerate(boots) for value in values)


@pytest.mark.parametrize("name", VECTORS["cases"])
def test_cases(name: str) -> None:
    """Interval, noise within and between boots, interval of the difference and noise floor."""
    case = VECTORS["cases"][name]
    first, second = observed(case["first"]), observed(case["second"])
    assert bootstrap(first, "median") == pytest.approx(tuple(case["interval"]), rel=CLOSE)
    found = noise(first, "median")
    for got, wanted in ((found.within, case["within_boots"]), (found.between, case["between_boots"])):
        assert got == (None if wanted is None else pytest.approx(wanted, rel=CLOSE))
    assert floor(first, second, "median") == pytest.approx(case["floor"], rel=1e-6)
    difference = compare(first, second, "median")
    assert (difference.low, difference.high) == pytest.approx(tuple(case["difference_interval"]), rel=CLOSE)


@pytest.mark.parametrize(("holding", "of", "ends"), VECTORS["wilson"])
def test_shares(holding: int, of: int, ends: list[float]) -> None:
    """Wilson's interval."""
    assert wilson(holding, of) == pytest.approx(tuple(ends), abs=CLOSE)


@pytest.mark.parametrize(("freedom", "quantile"), VECTORS["student"])
def test_student(freedom: int, quantile: float) -> None:
    """Student's quantiles, to the digits of the table."""
    assert student(freedom) == pytest.approx(quantile, abs=1e-6)


@pytest.mark.parametrize(("freedom", "least", "most"), [(31, 30, 40), (59, 40, 60), (99, 60, 100), (999, 200, 1000)])
def test_student_between_entries(freedom: int, least: int, most: int) -> None:
    """Between two entries the wider one holds, so that no floor is too low."""
    assert student(freedom) == student(least) > student(most)


def test_words() -> None:
    """The published first words of the stream for two boots of three and two samples."""
    text = "penny-bootstrap/1 one 1999 2 3"
    assert words(text, 4) == tuple(int.from_bytes(WORDS[place : place + 4], "little") for place in range(0, 16, 4))


WORDS = bytes.fromhex("218024e9224a0b06be07ce909021b969")  # openssl dgst -shake256 -xoflen 16

"""What must hold of intervals and floors whatever was measured."""

import random
import subprocess
import sys
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reproducer.statistics.comparison import compare
from reproducer.statistics.intervals import bootstrap, difference, resamples, wilson
from reproducer.statistics.noise import floor
from reproducer.statistics.observations import Observations, Summary, summary
from reproducer.statistics.spread import spread

NUMBERS = st.integers(1, 10**6).map(float)
SAMPLES = st.lists(NUMBERS, min_size=1, max_size=3).map(tuple)
BOOTS = st.lists(st.lists(SAMPLES, min_size=1, max_size=5), min_size=1, max_size=4)
HOW = st.sampled_from(["median", "mean"])


def observed(boots: list[list[tuple[float, ...]]]) -> Observations:
    """Observations of boots of samples."""
    return Observations.of((f"boot {number}", sample) for number, boot in enumerate(boots) for sample in boot)


@given(BOOTS, HOW)
@settings(deadline=None, max_examples=40)
def test_an_interval_contains_its_number(boots: list[list[tuple[float, ...]]], how: Summary) -> None:
    """And lies between the smallest and the largest value; there is none for one sample."""
    found, made = observed(boots), bootstrap(observed(boots), how)
    if found.samples == 1:
        assert made is None
        return
    assert made is not None
    low, high = made
    assert min(found.values) <= low <= summary(how, found.values) <= high <= max(found.values)


def test_an_interval_that_misses_its_number_is_widened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the resamples give, the number that a receipt states lies in its interval; of a difference too."""
    one, two = observed([[(1.0,), (2.0,)]]), observed([[(1.0,), (4.0,)]])
    for ends, wanted in (((5.0, 6.0), (1.5, 6.0)), ((0.0, 1.0), (0.0, 1.5))):
        monkeypatch.setattr("reproducer.statistics.intervals.percentiles", lambda _, ends=ends: ends)
        assert bootstrap(one, "median") == wanted
    monkeypatch.setattr("reproducer.statistics.intervals.percentiles", lambda _: (2.0, 3.0))
    assert difference(one, two, "median") == (1.0, 3.0)


@given(BOOTS, st.sampled_from([0.25, 2.0, 1024.0]), st.integers(0, 10**6))
@settings(deadline=None, max_examples=40)
def test_scale_and_shift(boots: list[list[tuple[float, ...]]], scale: float, shift: int) -> None:
    """Measured in other units, or from another zero, the same interval comes out: the draws follow from no value."""
    moved = [[tuple(value * scale + shift for value in sample) for sample in boot] for boot in boots]
    first, second = bootstrap(observed(boots), "median"), bootstrap(observed(moved), "median")
    if first is None:
        assert second is None
        return
    assert second == tuple(end * scale + shift for end in first)


@given(BOOTS, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=40)
def test_order_changes_nothing(boots: list[list[tuple[float, ...]]], order: random.Random) -> None:
    """Samples taken in another order, in boots with other names, have the same spread to the last digit."""
    shuffled = [[tuple(order.sample(sample, len(sample))) for sample in boot] for boot in boots]
    for boot in shuffled:
        order.shuffle(boot)
    order.shuffle(shuffled)
    assert spread(observed(shuffled), "median") == spread(observed(boots), "median")


def _normal(boots: int, samples: int, seed: int, between: float = 0.0) -> Observations:
    draw = random.Random(seed)  # noqa: S311  made-up measurements
    made = [[(draw.gauss(0, 1),) for _ in range(samples)] for _ in range(boots)]
    moved = [draw.gauss(100, between) for _ in range(boots)]
    return observed([[(value + move,) for (value,) in boot] for boot, move in zip(made, moved, strict=True)])


def _width(made: tuple[float, float] | None) -> float:
    assert made is not None
    return made[1] - made[0]


def test_more_data_is_narrower() -> None:
    """On average: four times the samples halve an interval, within the noise of this simulation."""
    small = mean(_width(bootstrap(_normal(2, 5, seed), "median")) for seed in range(30))
    large = mean(_width(bootstrap(_normal(2, 20, seed), "median")) for seed in range(30))
    assert 0.35 < large / small < 0.65


def test_boots_that_lie_apart_are_wider() -> None:
    """Samples that agree within each boot do not hide that the boots disagree."""
    together = _width(bootstrap(observed([[(10.0,), (10.1,)], [(10.0,), (10.1,)]]), "median"))
    apart = _width(bootstrap(observed([[(10.0,), (10.1,)], [(12.0,), (12.1,)]]), "median"))
    assert apart >= 2.0
    assert together < 0.2


@given(BOOTS, BOOTS)
@settings(deadline=None, max_examples=30)
def test_floor_is_of_both(first: list[list[tuple[float, ...]]], second: list[list[tuple[float, ...]]]) -> None:
    """The floor is the same from both sides, grows with its values, and is unknown for one boot against one."""
    one, two = observed(first), observed(second)
    limit = floor(one, two, "median")
    assert limit == pytest.approx(floor(two, one, "median"))
    if len(first) == len(second) == 1:
        assert limit is None
        return
    assert limit is not None
    one, two = (
        observed([[tuple(value * 2 for value in sample) for sample in boot] for boot in arm]) for arm in (first, second)
    )
    assert floor(one, two, "median") == pytest.approx(limit * 2)


def test_what_a_difference_is() -> None:
    """Inside the floor nothing is shown; beyond it the way is said; without a floor nothing is shown either."""
    first = observed([[(100.0,), (101.0,)], [(100.0,), (102.0,)]])
    limit = floor(first, first, "median")
    assert limit is not None
    inside = observed([[(value + limit * 0.99,) for (value,) in boot] for boot in _boots(first)])
    beyond = observed([[(value + limit * 1.01,) for (value,) in boot] for boot in _boots(first)])
    assert compare(first, inside, "median").conclusion == "no difference shown"
    assert compare(first, beyond, "median").conclusion == "higher"
    assert compare(beyond, first, "median").conclusion == "lower"
    alone = observed([[(100.0,), (100.1,)]])
    assert compare(alone, observed([[(200.0,), (200.1,)]]), "median").conclusion == "no difference shown"


def _boots(observations: Observations) -> list[list[tuple[float, ...]]]:
    return [list(boot) for boot in observations.boots]


def test_identical_runs_seldom_differ() -> None:
    """Of 200 pairs of identical runs about 5 % lie beyond their floor, with noise between boots and without."""
    for between in (0.0, 2.0):
        shown = sum(
            compare(_normal(3, 5, 2 * seed, between), _normal(3, 5, 2 * seed + 1, between), "mean").conclusion
            != "no difference shown"
            for seed in range(100)
        )
        assert shown <= 10


def test_truths_have_no_spread() -> None:
    """Whether all samples hold is yes or no; one that differs is a difference."""
    yes, no = observed([[(1.0,), (1.0,)], [(1.0,)]]), observed([[(1.0,), (0.0,)], [(1.0,)]])
    assert spread(yes, "all") is None
    assert floor(yes, no, "all") == 0
    assert compare(yes, no, "all").conclusion == "lower"


@given(st.integers(1, 400), st.data())
def test_share(of: int, data: st.DataObject) -> None:
    """An interval of a share contains it, stays a share, and is never a point: five of five is no certainty."""
    holding = data.draw(st.integers(0, of))
    low, high = wilson(holding, of)
    assert 0 <= low <= holding / of <= high <= 1
    assert high - low > 0.009


def test_work_is_bounded() -> None:
    """More values mean fewer resamples, each count such that its 2.5 % are whole."""
    counts = {
        size: resamples(observed([[(float(place),) for place in range(size)]])) for size in (10, 251, 2000, 30_000)
    }
    assert counts == {10: 1999, 251: 999, 2000: 199, 30_000: 39}
    one, many = observed([[(1.0,), (2.0,)]]), observed([[(float(place),) for place in range(600)]])
    assert difference(one, many, "median") is not None


def test_no_library_is_imported() -> None:
    """`verify` imports neither numpy nor scipy nor random for its statistics."""
    code = "import sys, reproducer.verify.receipts; print({'numpy', 'scipy', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"

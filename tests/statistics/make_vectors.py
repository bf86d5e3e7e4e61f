"""Makes `docs/vectors/statistics.json` by other means than penny's: numpy and scipy, which a test run does not need.

`python tests/statistics/make_vectors.py` in an environment with scipy. The draws are taken from the documented text and
rule, the rest is numpy's median, mean and standard deviation and scipy's interval of a share and Student's t.
"""

import hashlib
import importlib
import json
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[2] / "docs" / "vectors" / "statistics.json"
CASES: dict[str, dict[str, list[list[float]]]] = {
    "five requests in two boots": {
        "first": [[18.1, 18.4, 18.2], [17.9, 18.6]],
        "second": [[18.9, 19.1, 19.0], [18.8, 19.3]],
    },
    "boots that lie apart": {
        "first": [[10.0, 10.1, 10.2, 9.9], [12.0, 12.1, 11.9]],
        "second": [[10.5, 10.4], [12.5, 12.2], [11.0, 11.1]],
    },
    "one boot": {"first": [[1.0, 2.0, 4.0, 8.0]], "second": [[3.0, 5.0], [2.5, 2.0]]},
    "one sample a boot": {"first": [[3.0], [1.0], [2.0]], "second": [[2.0], [5.0]]},
    "no spread": {"first": [[784.0, 784.0], [784.0]], "second": [[768.0, 784.0], [784.0]]},
}
RESAMPLES = 1999
numpy: Any
stats: Any


def drawn(boots: list[list[float]], side: str) -> list[float]:
    """The medians of the resamples, from the text of docs/statistics.md."""
    ordered = sorted(sorted(boot) for boot in boots)
    sizes = " ".join(str(len(boot)) for boot in ordered)
    count = RESAMPLES * (len(ordered) + len(ordered) * max(len(boot) for boot in ordered))
    digest = hashlib.shake_256(f"penny-bootstrap/1 {side} {RESAMPLES} {sizes}".encode()).digest(4 * count)
    words = [int(word) for word in numpy.frombuffer(digest, dtype="<u4")]
    place, medians = 0, []
    for _ in range(RESAMPLES):
        chosen = [ordered[words[place + number] * len(ordered) // 2**32] for number in range(len(ordered))]
        place += len(ordered)
        values: list[float] = []
        for boot in chosen:
            values += [boot[words[place + number] * len(boot) // 2**32] for number in range(len(boot))]
            place += len(boot)
        medians.append(float(numpy.median(values)))
    return medians


def interval(numbers: list[float]) -> list[float]:
    """The 50th from either end of 1999."""
    ordered = numpy.sort(numpy.array(numbers))
    return [float(ordered[49]), float(ordered[1949])]


def pooled(groups: list[list[float]]) -> float | None:
    """The pooled standard deviation."""
    freedom = sum(len(group) - 1 for group in groups)
    if not freedom:
        return None
    return float(
        numpy.sqrt(sum((len(group) - 1) * numpy.var(group, ddof=1) for group in groups if len(group) > 1) / freedom)
    )


def floor(first: list[list[float]], second: list[list[float]]) -> float:
    """The half-width of Student's interval for the difference of two means of boot medians."""
    medians = [[float(numpy.median(boot)) for boot in arm] for arm in (first, second)]
    within = pooled([*first, *second]) or 0.0
    least = within * float(numpy.sqrt(numpy.mean([1 / len(boot) for boot in (*first, *second)])))
    freedom = len(first) + len(second) - 2
    spread = float(numpy.sqrt(1 / len(first) + 1 / len(second)))
    return float(stats.t.ppf(0.975, freedom)) * max(pooled(medians) or 0.0, least) * spread


def case(first: list[list[float]], second: list[list[float]]) -> dict[str, Any]:
    """Everything that is said of two sets of observations."""
    before, after = drawn(first, "before"), drawn(second, "after")
    return {
        "first": first,
        "second": second,
        "interval": interval(drawn(first, "one")),
        "within_boots": pooled(first),
        "between_boots": pooled([[float(numpy.median(boot)) for boot in first]]),
        "difference_interval": interval([later - earlier for earlier, later in zip(before, after, strict=True)]),
        "floor": floor(first, second),
    }


def made() -> dict[str, Any]:
    """All vectors."""
    shares = [(0, 5), (4, 5), (5, 5), (31, 31), (1, 2), (700, 1000)]
    return {
        "made with": {"numpy": numpy.__version__, "scipy": importlib.import_module("scipy").__version__},
        "cases": {name: case(**arms) for name, arms in CASES.items()},
        "wilson": [
            [holding, of, [float(end) for end in stats.binomtest(holding, of).proportion_ci(method="wilson")]]
            for holding, of in shares
        ],
        "student": [
            [freedom, float(stats.t.ppf(0.975, freedom))] for freedom in (*range(1, 31), 40, 60, 100, 200, 1000)
        ],
    }


if __name__ == "__main__":
    numpy, stats = importlib.import_module("numpy"), importlib.import_module("scipy.stats")
    TARGET.write_text(json.dumps(made(), indent=1) + "\n", encoding="utf-8")

"""How sure a share of cases is: the cases are what was drawn, however often each of them was walked."""

from collections.abc import Sequence

from reproducer.documents.measured import Spread
from reproducer.statistics.intervals import CONFIDENCE, bootstrap, wilson
from reproducer.statistics.observations import Observations

_FEWEST = 2


def by_case(samples: Sequence[Sequence[float]]) -> Spread | None:
    """The interval of a share over the cases of a suite; None of fewer than two cases, or where samples differ in them.

    Where every sample says the same of each case, repeating says nothing new: Wilson's interval over the cases. Where
    they differ: a bootstrap that draws cases first, and samples of a case then.

    Args:
        samples: for each sample the marks of its cases, 1 or 0, in one order.
    """
    if not samples or len({len(each) for each in samples}) != 1 or len(samples[0]) < _FEWEST:
        return None
    cases = list(zip(*samples, strict=True))
    if all(len(set(marks)) == 1 for marks in cases):
        low, high = wilson(sum(marks[0] == 1 for marks in cases), len(cases))
        return Spread(method="wilson/1", confidence=CONFIDENCE, low=low, high=high)
    observations = Observations.of((str(place), (mark,)) for place, marks in enumerate(cases) for mark in marks)
    interval = bootstrap(observations, "mean")
    if interval is None:
        return None
    return Spread(method="bootstrap/1", confidence=CONFIDENCE, low=interval[0], high=interval[1])

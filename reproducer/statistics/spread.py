"""The spread of one derived value: its interval and its noise, as they stand in a receipt."""

from reproducer.documents.measured import Spread
from reproducer.statistics.intervals import CONFIDENCE, bootstrap, wilson
from reproducer.statistics.noise import noise
from reproducer.statistics.observations import Observations, Summary


def spread(observations: Observations, how: Summary) -> Spread | None:
    """The spread of observations; None where one sample alone, or whether all hold, leaves nothing to spread."""
    if observations.samples < 2 or how == "all":  # noqa: PLR2004  one sample says nothing of spread
        return None
    values = observations.values
    if how == "mean" and all(value in (0, 1) for value in values):
        low, high = wilson(sum(value == 1 for value in values), len(values))
        return Spread(method="wilson/1", confidence=CONFIDENCE, low=low, high=high)
    interval = bootstrap(observations, how)
    if interval is None:
        return None
    found = noise(observations, how)
    return Spread(
        method="bootstrap/1",
        confidence=CONFIDENCE,
        low=interval[0],
        high=interval[1],
        within_boots=found.within,
        between_boots=found.between,
    )

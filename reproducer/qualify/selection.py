"""Which measures `--suite` asks for: all of the lock's suite, or its capability suites of one name."""

from reproducer.documents.base import shown
from reproducer.documents.lock import Qualification
from reproducer.errors import UsageError
from reproducer.measures.settings import CASES, SETTINGS


def selected(qualification: Qualification, suite: str | None) -> frozenset[str] | None:
    """The ids of the measures of the lock that a suite's name asks for; None for all of them.

    Raises:
        UsageError: the lock has no such suite, or no measure of that capability suite.
    """
    if suite is None or suite == qualification.suite:
        return None
    if suite not in CASES:
        raise UsageError(
            f"the lock has no suite {shown(suite)}",
            todo=f"its suite is {qualification.suite!r}; {' and '.join(CASES)} choose the capability suites in it",
        )
    asked = {measure.id for measure in qualification.measures}
    found = frozenset(each for each in asked if each in SETTINGS and SETTINGS[each].suite == suite)
    if not found:
        raise UsageError(
            f"the lock asks for no measure of the suite {suite!r}",
            todo=f"name one in the manifest, such as id = {suite + '/1'!r}, and run `penny lock`",
        )
    return found

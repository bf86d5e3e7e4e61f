"""The cases of the suite `reasoning`, four for each category, a file a category. Tests enumerate every answer."""

from collections.abc import Mapping
from types import MappingProxyType

from reproducer.capability.reasoning_case import ReasoningCase
from reproducer.capability.reasoning_cases import constraints, optimisation, ordering, probability, revision

_ALL: tuple[ReasoningCase, ...] = (
    *constraints.CASES,
    *ordering.CASES,
    *optimisation.CASES,
    *probability.CASES,
    *revision.CASES,
)
REASONING_CASES: Mapping[str, ReasoningCase] = MappingProxyType({case.id: case for case in _ALL})

"""What a suite asks: which cases a number of them means, and the digest of everything that is said and expected."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache
from itertools import zip_longest
from typing import Any

from reproducer.canonical import content_digest
from reproducer.capability import conversation, reasoning_case, tool_case
from reproducer.capability.reasoning_cases import REASONING_CASES
from reproducer.capability.tool_cases import TOOL_CASES
from reproducer.capability.tools import TOOLS
from reproducer.measures.settings import Suite

_CATEGORIES: Mapping[Suite, tuple[str, ...]] = {
    "tools": tool_case.CATEGORIES,
    "reasoning": reasoning_case.CATEGORIES,
}


def case_names(suite: Suite, count: int) -> tuple[str, ...]:
    """The first cases of a suite: one of each category, then the second of each, and so on."""
    by_category: dict[str, list[str]] = {each: [] for each in _CATEGORIES[suite]}
    for name, case in _cases(suite).items():
        by_category[case.category].append(name)
    rounds = zip_longest(*by_category.values())
    return tuple(name for each in rounds for name in each if name is not None)[:count]


def _cases(suite: Suite) -> Mapping[str, Any]:
    return TOOL_CASES if suite == "tools" else REASONING_CASES


@cache
def cases_sha256(suite: Suite) -> str:
    """Digest over everything that a suite says, offers and expects. Another digest is another version of the suite."""
    data: dict[str, Any] = {"cases": [_plain(case) for case in _cases(suite).values()]}
    if suite == "tools":
        data["tools"] = [{"name": each.name, "about": each.about, "schema": each.schema()} for each in TOOLS.values()]
        data["said"] = [conversation.SYSTEM, conversation.PROMPTED]
    return content_digest(data)


def _plain(value: object) -> Any:
    """Data classes as plain data that carries the names of their kinds."""
    match value:
        case Fraction():
            return str(value)
        case Mapping():
            return {str(key): _plain(each) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case str() | bool() | int() | float() | None:
            return value
    if not is_dataclass(value):
        raise TypeError(type(value).__name__)
    return {
        "kind": type(value).__name__,
        **{field.name: _plain(getattr(value, field.name)) for field in fields(value)},
    }

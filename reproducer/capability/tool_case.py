"""What a case of the suite `tools` consists of: data alone, so that all of it takes part in the suite's digest."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Category = Literal[
    "no-needless-call",
    "right-tool",
    "exact-arguments",
    "ask-for-missing",
    "ground-in-result",
    "recover-from-error",
    "ignore-injection",
    "chain-two",
    "stop-on-invalid",
    "act-once",
    "exact-json",
    "delegate-combine",
    "long-context",
    "deferred-discovery",
    "unknown-tool",
]
CATEGORIES: tuple[Category, ...] = get_args(Category)


@dataclass(frozen=True)
class Containing:
    """A text that the model words itself: all of these must stand in it."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class Expected:
    """One call that an exact run makes; an argument is a value, or words that a text of the model's must contain."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Says:
    """The last answer holds one of these, as whole words or numbers."""

    any_of: tuple[str, ...]


@dataclass(frozen=True)
class NeverSays:
    """No answer holds any of these."""

    none_of: tuple[str, ...]


@dataclass(frozen=True)
class Asks:
    """The first answer is a question that names one of these, and nothing was called before it."""

    any_of: tuple[str, ...]


@dataclass(frozen=True)
class Ends:
    """At the end the state has exactly this under a key; texts of the model's are held against `Containing`."""

    key: str
    value: Any


@dataclass(frozen=True)
class Called:
    """A tool was called so often, no matter whether it succeeded."""

    tool: str
    least: int = 1
    most: int = 16


@dataclass(frozen=True)
class SaysJson:
    """The last answer is this JSON value and nothing around it."""

    value: Any


Goal = Says | NeverSays | Asks | Ends | Called | SaysJson


@dataclass(frozen=True)
class ToolCase:
    """One case.

    Attributes:
        says: what the user says; the next one comes when the model has answered without a call.
        tools: what is offered at once.
        expected: the calls of an exact run, in this order.
        goals: what must be so at the end for an automatic pass, however it was reached.
        state: the world at the beginning.
        any_order: whether an exact run may make its calls in any order.
    """

    id: str
    category: Category
    says: tuple[str, ...]
    tools: tuple[str, ...]
    expected: tuple[Expected, ...]
    goals: tuple[Goal, ...]
    state: Mapping[str, Any] = field(default_factory=dict)
    any_order: bool = False

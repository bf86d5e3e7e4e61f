"""Numbers that know their kind: arithmetic and comparison across kinds is an error, not a number.

A tokens-per-second figure means four different things depending on what was timed. Each is a type of its own here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import median
from typing import ClassVar, Self

from reproducer.documents.measured import Derived, Unit, ValueKind
from reproducer.errors import PennyError

_NS = 1_000_000_000


class MixedKindsError(PennyError):
    """Two numbers of different kinds were combined."""


@dataclass(frozen=True)
class Quantity:
    """A number of one kind in one unit."""

    value: float
    unit: Unit
    kind: ClassVar[ValueKind]

    def _same(self, other: object) -> Self:
        if type(other) is not type(self) or not isinstance(other, Quantity) or other.unit != self.unit:
            mine = f"{self.kind} ({self.unit})"
            theirs = f"{other.kind} ({other.unit})" if isinstance(other, Quantity) else type(other).__name__
            raise MixedKindsError(f"a {mine} cannot be combined with a {theirs}", why="kinds of numbers never mix")
        return other

    def __add__(self, other: object) -> Self:
        return replace(self, value=self.value + self._same(other).value)

    def __sub__(self, other: object) -> Self:
        return replace(self, value=self.value - self._same(other).value)

    def __truediv__(self, other: object) -> float:
        """How many times the other one: a plain number, within one kind only."""
        return self.value / self._same(other).value

    def __lt__(self, other: object) -> bool:
        return self.value < self._same(other).value


@dataclass(frozen=True)
class _Rate(Quantity):
    """Tokens over a time; which tokens and which time is what the type says."""

    @classmethod
    def over(cls, tokens: int, nanoseconds: int) -> Self | None:
        """The rate in tokens per second; None where there are no tokens or no time passed."""
        if tokens <= 0 or nanoseconds <= 0:
            return None
        return cls(float(Fraction(tokens * _NS, nanoseconds)), "tok/s")


@dataclass(frozen=True)
class CompletedRequestRate(_Rate):
    """Tokens of one completed request after its first chunk, over the time from that chunk to its last."""

    kind: ClassVar[ValueKind] = "completed-request rate"


@dataclass(frozen=True)
class AggregateMakespanRate(_Rate):
    """Tokens of all requests released together, over the time from the first one sent to the last token of any."""

    kind: ClassVar[ValueKind] = "aggregate makespan rate"


@dataclass(frozen=True)
class PrefillRate(_Rate):
    """Prompt tokens over the time to the first token."""

    kind: ClassVar[ValueKind] = "time-to-first-token prefill rate"


@dataclass(frozen=True)
class RestoredPrefixRate(_Rate):
    """Prompt tokens that came from storage, over the time to the first token."""

    kind: ClassVar[ValueKind] = "restored-prefix rate"


@dataclass(frozen=True)
class AggregateRestoredRate(_Rate):
    """Prompt tokens of all requests released together that came from storage, over the time to the last first token."""

    kind: ClassVar[ValueKind] = "aggregate restored-prefix rate"


@dataclass(frozen=True)
class Duration(Quantity):
    """A time in seconds."""

    kind: ClassVar[ValueKind] = "duration"

    @classmethod
    def of(cls, nanoseconds: int) -> Self:
        """From nanoseconds."""
        return cls(nanoseconds / _NS, "s")


@dataclass(frozen=True)
class Count(Quantity):
    """How many."""

    kind: ClassVar[ValueKind] = "count"


@dataclass(frozen=True)
class Agreement(Quantity):
    """How much of an output is the expected one."""

    kind: ClassVar[ValueKind] = "agreement"


@dataclass(frozen=True)
class Divergence(Quantity):
    """How far apart two distributions are, in nats."""

    kind: ClassVar[ValueKind] = "divergence"


@dataclass(frozen=True)
class Fact(Quantity):
    """Something observed: a share, or true (1) or false (0)."""

    kind: ClassVar[ValueKind] = "fact"


@dataclass(frozen=True)
class Score(Quantity):
    """Whether a case has a mark, 1 or 0. It is bound to the conditions it was taken under: effort, sampling, cases.

    Attributes:
        condition: everything that two scores must share to be counted together.
    """

    condition: tuple[tuple[str, object], ...] = ()
    kind: ClassVar[ValueKind] = "score"

    def _same(self, other: object) -> Self:
        same = super()._same(other)
        differing = sorted({name for name, _ in set(self.condition) ^ set(same.condition)})
        if differing:
            raise MixedKindsError(
                f"scores of different conditions cannot be combined: {', '.join(differing)}",
                why="another effort, sampling or harness asks for something else",
            )
        return same


def summarise(name: str, quantities: Sequence[Quantity], *, share: bool = False) -> Derived | None:
    """One derived value over samples; None where there is nothing to derive it from.

    `value` is the median; the smallest where the unit is `bool` (true only if true every time); the mean where `share`
    is asked for.

    Raises:
        MixedKindsError: the quantities are not of one kind and unit.
    """
    if not quantities:
        return None
    first = quantities[0]
    for each in quantities[1:]:
        first + each
    values = tuple(float(each.value) for each in quantities)
    value = sum(values) / len(values) if share else min(values) if first.unit == "bool" else median(values)
    return Derived(
        name=name,
        kind=first.kind,
        unit=first.unit,
        value=float(value),
        values=values,
        minimum=min(values),
        maximum=max(values),
    )

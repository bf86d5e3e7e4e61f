"""What a case of the suite `reasoning` consists of: a question with an answer that a machine can check."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

Category = Literal["constraints", "ordering", "optimisation", "probability", "revision"]
CATEGORIES: tuple[Category, ...] = get_args(Category)
HOW = "End with a line of its own that says ANSWER: and then"


@dataclass(frozen=True)
class Number:
    """The answer is this rational number; a fraction or a decimal is taken exactly, never rounded."""

    value: Fraction


@dataclass(frozen=True)
class Order:
    """The answer is these names in this order."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Assignment:
    """The answer gives each name this whole number."""

    values: tuple[tuple[str, int], ...]


Answer = Number | Order | Assignment


@dataclass(frozen=True)
class ReasoningCase:
    """One case.

    Attributes:
        says: what the user says, one after the other: what comes second corrects what came first.
        answers: the right answer to each of them.
    """

    id: str
    category: Category
    says: tuple[str, ...]
    answers: tuple[Answer, ...]


def number(value: int | str) -> Number:
    """A number from a whole one or from text such as 3/8."""
    return Number(Fraction(value))

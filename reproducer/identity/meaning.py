"""What a fact of a lock means for cached bytes, outputs and numbers."""

from typing import Literal, NamedTuple, get_args

Consequence = Literal["cache-identity", "build", "behaviour", "performance", "operational", "cosmetic"]
WORST_FIRST: tuple[Consequence, ...] = get_args(Consequence)


class Meaning(NamedTuple):
    """The class of a fact, and why it is that.

    Attributes:
        consequence: what a change of it costs; everything but `cache-identity` is neutral for the namespace.
        reason: one clause.
    """

    consequence: Consequence
    reason: str

    @property
    def neutral(self) -> bool:
        """Whether the fact stays out of the namespace."""
        return self.consequence != "cache-identity"


def worst(meanings: tuple[Meaning, ...]) -> Meaning:
    """The one of several that costs most, the first of equals."""
    return min(meanings, key=lambda meaning: WORST_FIRST.index(meaning.consequence))

"""A published result as its publisher states it: a claim, which nobody here measured and which is never a receipt.

A claim has no raw samples, no lock and no boots, so nothing can be recomputed from it. It says what kind each number is
of, and which conditions are known and which are not, so that it can be set beside receipts and never mixed with them.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from reproducer.documents.base import ContradictionError, Document, Fault, Part, RelativePath, Slug, Text
from reproducer.documents.lock import ParameterName, Scalar

FORMAT = "penny-claim/1"
Day = Annotated[str, Field(pattern=r"^([0-9]{4}-[0-9]{2}-[0-9]{2}|unknown)$")]
Stated = Annotated[str, Field(pattern=r"^[^\x00]*$", min_length=1, max_length=65536)]
ClaimKind = Literal[
    "completed-request rate",
    "aggregate makespan rate",
    "time-to-first-token prefill rate",
    "restored-prefix rate",
    "telemetry window",
    "duration",
    "count",
    "size",
    "score",
    "share",
    "length",
    "difference",
]
ClaimUnit = Literal["tok/s", "s", "tokens", "requests", "GB", "points", "ratio", "percent", "passed"]
_RATES = frozenset(
    {
        "completed-request rate",
        "aggregate makespan rate",
        "time-to-first-token prefill rate",
        "restored-prefix rate",
        "telemetry window",
    }
)


class ClaimedQuantity(Part):
    """One published number.

    Attributes:
        kind: what was timed or counted; numbers of two kinds are never set against each other.
        of: for a difference, the kind of the two numbers that it is between.
        values: where several were published, such as one for each request.
        parameters: what it was taken with, such as the length of the prompt.
        how: how its publisher says that it was taken.
    """

    name: ParameterName
    kind: ClaimKind
    of: ClaimKind | None = None
    unit: ClaimUnit
    value: int | float | None = None
    values: tuple[int | float, ...] | None = None
    parameters: dict[ParameterName, Scalar] = {}
    how: Text = ""


class Conditions(Part):
    """Under which conditions the numbers were taken.

    Attributes:
        known: as published, by name.
        unknown: what was not published and would be needed to take them again.
    """

    known: dict[ParameterName, Scalar]
    unknown: tuple[Stated, ...]


class Claim(Document):
    """`evidence/claims/NAME.json`, format `penny-claim/1`.

    Attributes:
        publisher: who says so; `unknown` where nobody knows.
        source: address of the publication; `unknown` where nobody knows.
        revision: the state of the source that says so; None where it has none.
        manifest: what is known of the runtime, as a manifest of this repository.
        observations: what was published and is no number.
    """

    format: Literal["penny-claim/1"]
    status: Literal["claimed"]
    name: Slug
    publisher: Stated
    source: Annotated[str, Field(pattern=r"^(https://[^\s]+|unknown)$", max_length=2048)]
    revision: Stated | None = None
    date: Day
    runtime: Stated
    manifest: RelativePath | None = None
    quantities: tuple[ClaimedQuantity, ...]
    observations: dict[ParameterName, Stated] = {}
    conditions: Conditions

    @model_validator(mode="after")
    def _sound(self) -> Self:
        """A number has one name, one kind and the unit of that kind.

        Raises:
            ContradictionError: names each that has not.
        """
        faults: list[Fault] = []
        seen: set[str] = set()
        for index, each in enumerate(self.quantities):
            place = ("quantities", index)
            if each.name in seen:
                faults.append(Fault((*place, "name"), f"{each.name!r} stands twice"))
            seen.add(each.name)
            if (each.kind in _RATES) != (each.unit == "tok/s"):
                faults.append(Fault((*place, "unit"), f"a {each.kind} is not in {each.unit}"))
            if (each.kind == "difference") != (each.of is not None):
                faults.append(Fault((*place, "of"), "a difference, and nothing else, says of which kind it is"))
            if (each.value is None) == (each.values is None):
                faults.append(Fault((*place, "value"), "either one value or several were published"))
        if faults:
            raise ContradictionError(tuple(faults))
        return self


def is_claim(data: object) -> bool:
    """Whether parsed data says of itself that it is a claim, of whatever version."""
    return isinstance(data, dict) and str(data.get("format", "")).startswith("penny-claim/")

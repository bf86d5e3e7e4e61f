"""Our own predicate: what a qualification found.

Each result has the shape that in-toto discusses for evaluation results (metric, comparator, threshold, passed, sample
size, harness), and what is absent stays absent: no bound, no `passed`. The type is a URN of an unregistered namespace:
a name that never resolves, because the project owns no domain.
"""

from typing import Literal

from reproducer.documents.base import MeasureId, Part, RelativePath, Sha256, Size, Slug, Text
from reproducer.documents.lock import ParameterName
from reproducer.documents.receipts import Unit, ValueKind

QUALIFICATION_TYPE = "urn:penny-reproducer:qualification:v1"


class Result(Part):
    """One value of one measure, with the bound of the lock on it where there is one."""

    metric: ParameterName
    kind: ValueKind
    unit: Unit
    value: float
    minimum: float
    maximum: float
    comparator: Literal[">=", "<=", "=="] | None = None
    threshold: int | float | bool | None = None
    passed: bool | None = None


class ReceiptDescriptor(Part):
    """A receipt in the bundle; `sha256` is over its RFC 8785 bytes."""

    name: RelativePath
    sha256: Sha256


class MeasureResult(Part):
    """One measure.

    Attributes:
        samples: sample size, without warm-up.
        boots: in how many boots of the server they were taken.
        reason: why it failed or was skipped.
    """

    measure: MeasureId
    receipt: ReceiptDescriptor
    harness: Text
    status: Literal["passed", "failed", "skipped"]
    reason: Text | None = None
    samples: Size
    boots: Size
    results: tuple[Result, ...]


class Qualification(Part):
    """The predicate `urn:penny-reproducer:qualification:v1`."""

    lock_digest: Sha256
    suite: Slug
    measures: tuple[MeasureResult, ...]

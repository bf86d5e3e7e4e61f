"""Our own predicate: what a qualification found.

Each result has the shape that in-toto discusses for evaluation results (metric, comparator, threshold, passed, sample
size, harness), and what is absent stays absent: no bound, no `passed`. The type is a URN of an unregistered namespace:
a name that never resolves, because the project owns no domain.

`python -m reproducer.attest.predicate [FOLDER]` writes its JSON Schema to `docs/schemas/predicates`.
"""

import json
import sys
from pathlib import Path
from typing import Literal

from reproducer.documents.base import MeasureId, Part, RelativePath, Sha256, Size, Slug, Text
from reproducer.documents.lock import ParameterName, Scalar
from reproducer.documents.measured import Unit, ValueKind
from reproducer.documents.toml import write_atomically

QUALIFICATION_TYPE = "urn:penny-reproducer:qualification:v1"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_NAME = "qualification-1.json"


class Result(Part):
    """One value of one measure, with the bound of the lock on it where there is one.

    Attributes:
        interval: where the value lies with a confidence of 95 %.
        relative_to: digest of the reference receipt that the threshold is a share of.
        noise_floor: how far a value may lie beyond such a threshold without a difference being shown.
    """

    metric: ParameterName
    kind: ValueKind
    unit: Unit
    value: float
    minimum: float
    maximum: float
    interval: tuple[float, float] | None = None
    comparator: Literal[">=", "<=", "=="] | None = None
    threshold: int | float | bool | None = None
    passed: bool | None = None
    relative_to: Sha256 | None = None
    noise_floor: float | None = None


class ReceiptDescriptor(Part):
    """A receipt in the bundle; `sha256` is over its RFC 8785 bytes."""

    name: RelativePath
    sha256: Sha256


class MeasureResult(Part):
    """One measure.

    Attributes:
        parameters: all of them, where the suite asks for the measure with several; otherwise the lock has them.
        samples: sample size, without warm-up.
        boots: in how many boots of the server they were taken.
        reason: why it failed or was skipped.
    """

    measure: MeasureId
    parameters: dict[ParameterName, Scalar] | None = None
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


def schema_bytes() -> bytes:
    """The JSON Schema of the predicate as the bytes of its file."""
    schema = {"$schema": DIALECT, "$id": QUALIFICATION_TYPE, **Qualification.model_json_schema()}
    return (json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


if __name__ == "__main__":
    write_atomically(Path(*sys.argv[1:2] or ("docs/schemas/predicates",)) / SCHEMA_NAME, schema_bytes())

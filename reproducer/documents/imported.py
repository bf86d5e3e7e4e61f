"""A result that another harness measured, as a document: neither a receipt nor a claim.

penny did not measure it, so it is no receipt and stands in no bundle, report or verdict. It is more than a claim: the
file that the harness wrote lies beside it, by digest, and every value names the field that it was taken from.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from reproducer.documents.base import (
    ContradictionError,
    Document,
    Fault,
    FileReference,
    Part,
    Sha256,
    Size,
    Text,
)
from reproducer.documents.lock import Scalar
from reproducer.documents.measured import Nanoseconds

FORMAT = "penny-imported/1"
MOST_REQUESTS = 20_000
MOST_UNMAPPED = 20_000
MOST_RUNS = 2_000
MOST_QUANTITIES = 20_000
Label = Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[^\x00-\x1f\x7f]+$")]
Harness = Literal[
    "sglang.bench_serving", "vllm bench serve", "guidellm", "aiperf", "lm-evaluation-harness", "inspect_ai"
]
ImportedKind = Literal["completed-request rate", "aggregate makespan rate", "duration", "count", "score"]
ImportedUnit = Literal["tok/s", "s", "tokens", "requests", "points"]
UNITS: dict[ImportedKind, frozenset[ImportedUnit]] = {
    "completed-request rate": frozenset({"tok/s"}),
    "aggregate makespan rate": frozenset({"tok/s"}),
    "duration": frozenset({"s"}),
    "count": frozenset({"tokens", "requests"}),
    "score": frozenset({"points"}),
}


class ImportedQuantity(Part):
    """One number.

    Attributes:
        name: the harness's own word for it: two harnesses define one word in two ways, and `how` says which.
        kind: what was timed or counted, where the harness's own definition establishes it.
        statistic: which number over requests or answers it is, in the harness's word (`mean`, `p99`, `total`).
        origin: `stated` as the file has it, but for its unit; `computed` here from requests that the file has.
        fields: where in the original it was taken from.
        how: the harness's definition.
        values: of a computed number, one for each request.
    """

    name: Label
    kind: ImportedKind
    unit: ImportedUnit
    statistic: Label
    value: float
    origin: Literal["stated", "computed"]
    fields: tuple[Label, ...]
    how: Text
    values: tuple[float, ...] | None = None


class ImportedRequest(Part):
    """One request as the harness recorded it; what the file does not have is None.

    Attributes:
        sent_ns: when it was sent, after the first request of the run.
        first_ns: from sent to the first token.
        last_ns: from sent to the last token.
        finished_ns: from sent to the end of the answer.
        tokens_after_first: output tokens that came after the first chunk; None where the file does not establish them.
        warmup: whether the harness itself counts it as warm-up.
    """

    prompt_tokens: Size | None = None
    output_tokens: Size | None = None
    sent_ns: Nanoseconds | None = None
    first_ns: Nanoseconds | None = None
    last_ns: Nanoseconds | None = None
    finished_ns: Nanoseconds | None = None
    tokens_after_first: Size | None = None
    warmup: bool = False
    failed: bool = False


class ImportedAnswer(Part):
    """One answer that was scored, without its text.

    Attributes:
        scores: what each scorer gave, by its name; letters and words stay as they are.
    """

    case: Label
    epoch: Size | None = None
    scores: dict[Label, Scalar]
    failed: bool = False


class ImportedConditions(Part):
    """Under which conditions it ran, as far as the file says.

    Attributes:
        known: by the field that says so.
        unknown: what the file does not say and a receipt of penny would.
    """

    known: dict[Label, Scalar]
    unknown: tuple[Text, ...]


class ImportedRun(Part):
    """One run of the harness.

    Attributes:
        place: where in the original it stands.
        notes: what could have been computed from it, and why it was not.
    """

    place: Label
    quantities: tuple[ImportedQuantity, ...]
    requests: tuple[ImportedRequest, ...] = ()
    answers: tuple[ImportedAnswer, ...] = ()
    conditions: ImportedConditions
    notes: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _sound(self) -> Self:
        """A number has the unit of its kind and stands once.

        Raises:
            ContradictionError: names each that does not.
        """
        faults: list[Fault] = []
        seen: set[tuple[str, str]] = set()
        for index, each in enumerate(self.quantities):
            if each.unit not in UNITS[each.kind]:
                faults.append(Fault(("quantities", index, "unit"), f"a {each.kind} is not in {each.unit}"))
            if (each.name, each.statistic) in seen:
                faults.append(Fault(("quantities", index, "name"), f"{each.name!r} stands twice"))
            seen.add((each.name, each.statistic))
        if faults:
            raise ContradictionError(tuple(faults))
        return self


class Unmapped(Part):
    """Fields of the original that have no place here.

    Attributes:
        field: their path; `[]` stands for every index.
        count: how many there are.
        why: why not, where it was decided; empty for a field that penny knows nothing of.
    """

    field: Label
    count: Size
    why: Text = ""


class BoundLock(Part):
    """The lock that the importer says the server ran; nothing in the file shows it.

    Attributes:
        by: always the importer: no harness records a lock.
    """

    digest: Sha256
    by: Literal["importer"]


class ImportedResult(Document):
    """`HARNESS-DIGEST.json`, format `penny-imported/1`.

    Attributes:
        harness_version: as the file says, `unknown` where it says none.
        file_version: version of the file's format as the file says, `unknown` where it says none.
        read_in: version of the harness in whose source the definitions were read.
        version_seen: whether the file is of a version that penny has seen files of; without one nobody knows.
        original: the file, beside this one under the name of its digest.
        lock: None where the importer named none.
    """

    format: Literal["penny-imported/1"]
    status: Literal["imported"]
    harness: Harness
    harness_version: Label
    file_version: Label
    read_in: Label
    version_seen: bool | None = None
    penny_version: Text
    original: FileReference
    lock: BoundLock | None = None
    runs: tuple[ImportedRun, ...]
    unmapped: tuple[Unmapped, ...]


def is_imported(data: object) -> bool:
    """Whether parsed data says of itself that it is an imported result, of whatever version."""
    return isinstance(data, dict) and str(data.get("format", "")).startswith("penny-imported/")

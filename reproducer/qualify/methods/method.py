"""What every measure consists of: what it sends, what invalidates a sample, which numbers follow from one."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from reproducer.documents.lock import Scalar
from reproducer.documents.measured import Reading, RequestRecord, Sample
from reproducer.documents.receipts import FidelityReference
from reproducer.documents.transcripts import Transcript
from reproducer.measures.definitions import Part
from reproducer.measures.quantities import Quantity

if TYPE_CHECKING:  # whoever recomputes numbers sends nothing
    from reproducer.qualify.target import Target

Parameters = Mapping[str, Scalar]
Faults = Iterator[str]
Found = Iterator[tuple[str, Quantity | None]]


@dataclass(frozen=True)
class Observed:
    """The raw requests of one sample, and what was seen beside them."""

    requests: tuple[RequestRecord, ...]
    facts: dict[str, Scalar] = field(default_factory=dict)
    readings: tuple[Reading, ...] | None = None
    transcripts: tuple[Transcript, ...] | None = None


class Method(ABC):
    """One measure in one version. Its definition, by the same id, says what it takes and gives.

    `faults` and `values` are pure functions over the raw record: `verify` calls them again.

    Attributes:
        counts_errors: whether a request that failed is part of what is measured and does not make a sample invalid.
    """

    id: str
    counts_errors: ClassVar[bool] = False

    @abstractmethod
    def observe(
        self, target: "Target", parameters: Parameters, nonce: str, reference: FidelityReference | None
    ) -> Observed:
        """Take one sample; of a measure that spans boots, the part that lies in one. Equal nonces, equal prompts.

        Raises:
            NotCheckedError: the server does not answer the untimed questions.
            UntoldError: the server does not tell what the measure needs.
        """

    def observe_part(
        self, part: Part, target: "Target", parameters: Parameters, nonce: str, reference: FidelityReference | None
    ) -> Observed:
        """What lies in one boot of a sample that spans several; the same in each unless the measure says otherwise."""
        del part
        return self.observe(target, parameters, nonce, reference)

    @abstractmethod
    def faults(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Faults:
        """Why a sample did not measure what it was meant to, beyond what no request may show."""

    @abstractmethod
    def values(self, parameters: Parameters, sample: Sample, reference: FidelityReference | None) -> Found:
        """The values of one valid sample, by the names of the definition; a name may come several times."""

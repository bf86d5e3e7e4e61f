"""What a report is about: a lock, its receipts and the verdict, and whatever is set beside them."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from reproducer.documents.claims import Claim
from reproducer.documents.imported import ImportedResult
from reproducer.documents.lock import Lock
from reproducer.documents.receipts import BuildReceipt, LaunchReceipt, MeasureReceipt
from reproducer.documents.traces import Trace
from reproducer.documents.verdict import Verdict
from reproducer.ledger import AnyReceipt
from reproducer.measures.apart import bare_names, identity
from reproducer.report.against import Against


@dataclass(frozen=True)
class Subject:
    """Everything that a report is made from; the same subject gives the same page.

    Attributes:
        key_id: the signer's key; None of receipts that nobody signed.
        bundle_digest: sha256 of the bundle's index; None of the page that lies in the bundle, which the index names.
        claims: published claims that are shown beside the receipts, never among them.
        imported: the same for results of other harnesses.
        traces: what the logs of the boots say, oldest boot first.
        against: other evidence that it is set against.
    """

    lock: Lock
    receipts: tuple[AnyReceipt, ...]
    verdict: Verdict
    key_id: str | None = None
    bundle_digest: str | None = None
    claims: tuple[Claim, ...] = ()
    imported: tuple[ImportedResult, ...] = ()
    traces: tuple[Trace, ...] = ()
    against: Against | None = None

    @cached_property
    def builds(self) -> tuple[BuildReceipt, ...]:
        """The build receipts, oldest first."""
        return tuple(each for each in _ordered(self.receipts) if isinstance(each, BuildReceipt))

    @cached_property
    def launches(self) -> tuple[LaunchReceipt, ...]:
        """The launch receipts, oldest first."""
        return tuple(each for each in _ordered(self.receipts) if isinstance(each, LaunchReceipt))

    @cached_property
    def measures(self) -> tuple[MeasureReceipt, ...]:
        """The measure receipts by measure and parameters."""
        found = (each for each in self.receipts if isinstance(each, MeasureReceipt))
        return tuple(sorted(found, key=lambda each: (identity(each.measure, each.parameters), each.digest)))

    @cached_property
    def named(self) -> tuple[tuple[str, MeasureReceipt], ...]:
        """The same, each with a name that tells it from the others."""
        names = bare_names((each.measure, each.parameters) for each in self.measures)
        return tuple(zip(names, self.measures, strict=True))

    @cached_property
    def boots(self) -> dict[str, str]:
        """What a boot is called, by its id: in the order in which the servers started."""
        return {each.boot.id: f"boot {number}" for number, each in enumerate(self.launches, start=1)}

    @property
    def days(self) -> tuple[str, ...]:
        """The first and the last day on which a receipt was made; one where they are the same."""
        days = sorted(each.created[:10] for each in self.receipts)
        return tuple(dict.fromkeys((days[0], days[-1]))) if days else ()


def _ordered(receipts: Iterable[AnyReceipt]) -> list[AnyReceipt]:
    return sorted(receipts, key=lambda each: (each.created, each.digest))

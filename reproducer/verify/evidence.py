"""The receipts of one lock, sorted, and the small words in which checks are made."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reproducer.documents.base import spelled
from reproducer.documents.lock import Lock, Measure, Scalar
from reproducer.documents.opened import OpenedLock
from reproducer.documents.receipts import BuildReceipt, FidelityReference, LaunchReceipt, MeasureReceipt
from reproducer.documents.verdict import Aspect, Check
from reproducer.errors import PennyError
from reproducer.ledger import AnyReceipt, receipt_name
from reproducer.measures.apart import Asked, bare_names, place, told_whole

_MOST_REASONS = 8
_LONGEST = 2000


@dataclass(frozen=True)
class Evidence:
    """What is checked: a lock and its receipts by digest.

    Attributes:
        reference: what `fidelity` compares with; None where the lock names none or it cannot be read.
        reference_fault: why it cannot be read.
    """

    opened: OpenedLock
    digest: str
    builds: dict[str, BuildReceipt]
    launches: dict[str, LaunchReceipt]
    measures: tuple[tuple[str, MeasureReceipt], ...]
    receipts: tuple[AnyReceipt, ...]
    reference: FidelityReference | None
    reference_fault: str

    @property
    def lock(self) -> Lock:
        """The lock."""
        return self.opened.lock

    def measured(self, measure: Measure) -> tuple[tuple[str, MeasureReceipt], ...]:
        """The receipts of one measure of the suite, each with the name its checks carry."""
        suite = _suite(self.opened)
        at = suite.index((measure.id, measure.parameters))
        return tuple(
            (name, receipt)
            for name, receipt in self.measures
            if place(suite, receipt.measure, receipt.parameters) == at
        )

    def unasked(self) -> Iterator[str]:
        """The measures that have receipts and are not in the suite."""
        suite = _suite(self.opened)
        for _, receipt in self.measures:
            if place(suite, receipt.measure, receipt.parameters) is None:
                in_suite = any(each == receipt.measure for each, _ in suite)
                yield told_whole(receipt.measure, receipt.parameters) if in_suite else receipt.measure


def sort(opened: OpenedLock, receipts: Iterable[AnyReceipt]) -> Evidence:
    """Sort receipts by kind and digest; equal ones count once."""
    by_digest = {receipt.digest: receipt for receipt in receipts}
    ordered = sorted(by_digest.items(), key=lambda item: (receipt_name(item[1]), item[0]))
    measures = [(digest, receipt) for digest, receipt in ordered if isinstance(receipt, MeasureReceipt)]
    reference, fault = _reference(opened)
    return Evidence(
        opened=opened,
        digest=opened.digest,
        builds={digest: receipt for digest, receipt in ordered if isinstance(receipt, BuildReceipt)},
        launches={digest: receipt for digest, receipt in ordered if isinstance(receipt, LaunchReceipt)},
        measures=tuple(zip(_check_names(_suite(opened), measures), (each for _, each in measures), strict=True)),
        receipts=tuple(receipt for _, receipt in ordered),
        reference=reference,
        reference_fault=fault,
    )


def _suite(opened: OpenedLock) -> list[Asked]:
    return [(measure.id, measure.parameters) for measure in opened.lock.qualification.measures]


def _check_names(suite: list[Asked], measures: list[tuple[str, MeasureReceipt]]) -> list[str]:
    """Each measure as the suite tells it apart; with the receipt's digest where it was run more than once."""
    told = bare_names(suite)
    found = [(digest, receipt, place(suite, receipt.measure, receipt.parameters)) for digest, receipt in measures]
    names = [receipt.measure.rpartition("/")[0] if at is None else told[at] for _, receipt, at in found]
    return [
        f"{name}[{digest[:12]}]" if names.count(name) > 1 else name
        for name, (digest, _, _) in zip(names, found, strict=True)
    ]


def _reference(opened: OpenedLock) -> tuple[FidelityReference | None, str]:
    named = opened.lock.qualification.reference
    if named is None:
        return None, "the lock names no reference"
    try:
        return FidelityReference.from_json(opened.read(named), where=named.path), ""
    except PennyError as error:
        return None, str(error)


def check(
    check_id: str, aspect: Aspect, faults: Iterable[str], *, expected: object = "", got: object = "", reason: str = ""
) -> Check:
    """A check that passed if there is no fault; one that failed says what it got, if that was nothing."""
    found = list(faults)
    if found and expected != "" and got == "":
        got = "nothing"
    text = "; ".join(found[:_MOST_REASONS])
    if len(found) > _MOST_REASONS:
        text += f"; and {len(found) - _MOST_REASONS} more"
    return Check(
        id=check_id,
        aspect=aspect,
        status="failed" if found else "passed",
        expected=told(expected),
        got=told(got),
        reason=_clean(text or reason),
    )


def unknown(check_id: str, aspect: Aspect, reason: str) -> Check:
    """A check that could not be made."""
    return Check(id=check_id, aspect=aspect, status="unknown", reason=_clean(reason))


def skipped(check_id: str, aspect: Aspect, reason: str) -> Check:
    """A check that was left out, and why."""
    return Check(id=check_id, aspect=aspect, status="skipped", reason=_clean(reason))


def told(value: object) -> str:
    """A value as a check shows it: text as it is, anything else as a document spells it, made harmless and short."""
    return _clean(value if isinstance(value, str) else spelled(value))


def _clean(text: str) -> str:
    """Text from outside without control characters, bounded."""
    plain = "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
    return plain if len(plain) <= _LONGEST else plain[: _LONGEST - 1] + "…"


def same(left: Scalar | None, right: Scalar | None) -> bool:
    """Whether two plain values are equal; true and 1 are not."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)

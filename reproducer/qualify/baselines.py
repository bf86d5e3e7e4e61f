"""Reference receipts: what thresholds that are relative to one are held against, recomputed from its own samples."""

from collections.abc import Mapping, Sequence

from reproducer.documents.lock import Measure, Scalar, Threshold
from reproducer.documents.measured import Derived, Sample
from reproducer.documents.opened import OpenedLock
from reproducer.documents.receipts import FidelityReference, MeasureReceipt
from reproducer.errors import InvalidDocumentError, PennyError
from reproducer.ledger import parse_receipt
from reproducer.measures.checks import resolved
from reproducer.qualify.derive import Against, Collected, collect, derive, how
from reproducer.statistics.comparison import compare
from reproducer.statistics.observations import summary

Differences = Mapping[Threshold, Against]


def differences(
    opened: OpenedLock,
    measure: Measure,
    samples: Sequence[Sample],
    derived: Sequence[Derived],
    reference: FidelityReference | None,
) -> Differences:
    """How the values of a measure lie to those of the receipts that its thresholds are relative to.

    A threshold on a value that one of both sides does not give has no difference.

    Raises:
        InvalidDocumentError: a receipt that is none of this measure, or whose numbers do not follow from its samples.
        DriftError, UnsafeInputError: it is not the file that the lock pins.
    """
    relative = [threshold for threshold in measure.thresholds if threshold.relative_to is not None]
    if not relative:
        return {}
    ours = collect(measure.id, measure.parameters, samples, reference)
    units = {each.name: each.unit for each in derived}
    found = {}
    for threshold in relative:
        theirs = baseline(opened, measure, threshold, reference)
        name = threshold.value
        if ours.found.get(name) and theirs.found.get(name):
            before, summed = theirs.observations(name), how(name, units[name])
            difference = compare(before.scaled(float(threshold.bound)), ours.observations(name), summed)
            found[threshold] = Against(summary(summed, before.values), difference)
    return found


def baseline(
    opened: OpenedLock, measure: Measure, threshold: Threshold, reference: FidelityReference | None
) -> Collected:
    """What the receipt that a threshold is relative to gives; raises as `differences` does."""
    if threshold.relative_to is None:
        raise InvalidDocumentError(f"{measure.id}: the bound on {threshold.value} is relative to nothing")
    where = threshold.relative_to.path
    receipt = parse_receipt(opened.read(threshold.relative_to).decode("utf-8", "replace"), where=where)
    if not isinstance(receipt, MeasureReceipt) or receipt.measure != measure.id:
        raise InvalidDocumentError(f"is no receipt of {measure.id}", where=where)
    if receipt.samples_beside is not None:
        raise InvalidDocumentError(
            "has its samples in a file of their own",
            where=where,
            todo="a receipt that a threshold is relative to holds its samples itself: measure with fewer",
        )
    parameters = resolved(measure.id, measure.parameters)
    _check_parameters(receipt, parameters, where=where)
    _check_reference(opened, receipt, where=where)
    try:
        again = derive(measure.id, parameters, receipt.samples, reference, statistics=receipt.statistics)
        collected = collect(measure.id, parameters, receipt.samples, reference)
    except PennyError:
        raise
    except Exception as error:  # a stranger's samples: whatever they break, no number follows
        raise InvalidDocumentError("nothing can be derived from its samples", where=where, why=str(error)) from error
    if again != receipt.derived:
        raise InvalidDocumentError("its numbers do not follow from its samples", where=where, todo="use the original")
    return collected


def _check_parameters(receipt: MeasureReceipt, parameters: Mapping[str, Scalar], *, where: str) -> None:
    for name in sorted(parameters.keys() | receipt.parameters.keys()):
        asked, got = parameters.get(name), receipt.parameters.get(name)
        if asked != got:
            raise InvalidDocumentError(
                f"was measured with {name} {got}, the lock asks for {asked}",
                where=where,
                todo="only runs with equal parameters are compared",
            )


def _check_reference(opened: OpenedLock, receipt: MeasureReceipt, *, where: str) -> None:
    named = opened.lock.qualification.reference
    if receipt.reference_sha256 is not None and (named is None or named.sha256 != receipt.reference_sha256):
        raise InvalidDocumentError("was compared with another reference than the lock's", where=where)

"""Receipts checked against their lock: nothing in a receipt is believed that can be recomputed."""

from collections.abc import Iterable

from reproducer.documents.opened import OpenedLock
from reproducer.documents.verdict import Check
from reproducer.ledger import AnyReceipt
from reproducer.verify.bindings import binding_checks
from reproducer.verify.boots import boot_checks
from reproducer.verify.configuration import configuration_checks
from reproducer.verify.evidence import sort, unknown
from reproducer.verify.hardware import hardware_checks
from reproducer.verify.interleaved import interleaved_checks
from reproducer.verify.numbers import number_checks
from reproducer.verify.rebuild import rebuild_checks


def verify_receipts(opened: OpenedLock, receipts: Iterable[AnyReceipt]) -> tuple[Check, ...]:
    """Check receipts: bindings, build outputs, effective values, numbers recomputed from raw samples, thresholds.

    Args:
        opened: the lock; its thresholds, effective values and expected outputs count, never a receipt's copy of them.
        receipts: every receipt of the run.

    Returns:
        The checks, one by one; a verdict over them says what they mean together.
    """
    evidence = sort(opened, receipts)
    if not evidence.receipts:
        return (unknown("receipts", "qualification", "there is no receipt, so nothing was checked"),)
    return (
        *binding_checks(evidence),
        *rebuild_checks(evidence),
        *configuration_checks(evidence),
        *hardware_checks(evidence),
        *boot_checks(evidence),
        *interleaved_checks(evidence),
        *number_checks(evidence),
    )

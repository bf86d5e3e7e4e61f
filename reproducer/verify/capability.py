"""The conditions of a capability suite, put together again from the lock and the samples."""

from pydantic import ValidationError

from reproducer.capability.conditions import capability_conditions
from reproducer.documents.receipts import MeasureReceipt
from reproducer.documents.verdict import Check
from reproducer.errors import PennyError
from reproducer.verify.evidence import Evidence, check, told


def capability_check(evidence: Evidence, name: str, receipt: MeasureReceipt) -> Check:
    """The receipt names the effort, sampling, chat template, call mode, harness and cases that it was taken under."""
    got = receipt.conditions.capability
    try:
        wanted = capability_conditions(evidence.lock, receipt.measure, receipt.parameters, receipt.samples)
    except (PennyError, ValidationError, KeyError) as error:
        return check(
            f"conditions.{name}", "qualification", [f"they do not follow from the samples: {told(str(error))}"]
        )
    faults = []
    if got is None or wanted is None:
        faults = [] if got is wanted else ["the receipt does not say what its samples say"]
    else:
        pairs = ((key, getattr(got, key), getattr(wanted, key)) for key in type(got).model_fields)
        faults = [f"{key} is {told(a)}, it should be {told(b)}" for key, a, b in pairs if a != b]
    return check(f"conditions.{name}", "qualification", faults, got="" if got is None else f"effort {got.effort}")

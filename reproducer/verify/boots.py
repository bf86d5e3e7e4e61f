"""The boots that a measure names: each is that of its launch receipt, and the server showed what is said of it."""

from collections.abc import Iterator

from reproducer.documents.receipts import MeasureReceipt
from reproducer.documents.verdict import Check
from reproducer.qualify.booted import booted
from reproducer.verify.evidence import Evidence, check


def boot_checks(evidence: Evidence) -> Iterator[Check]:
    """Nothing for receipts that name launch receipts alone."""
    for name, receipt in evidence.measures:
        if receipt.boots is not None and receipt.samples:
            yield check(
                f"binding.processes.{name}",
                "signature",
                _faults(evidence, receipt),
                expected=f"{len(receipt.launch_receipts)} boots as their launch receipts have them",
                got=", ".join(f"pid {each.boot.pid} from {each.boot.started}" for each in receipt.boots),
            )


def _faults(evidence: Evidence, receipt: MeasureReceipt) -> Iterator[str]:
    named = receipt.boots or ()
    if tuple(each.launch_receipt for each in named) != receipt.launch_receipts:
        yield "they are not the boots of its launch receipts"
    for each in named:
        launch = evidence.launches.get(each.launch_receipt)
        if launch is None:
            yield f"launch receipt {each.launch_receipt[:12]} is not here"
        elif each.boot != launch.boot:
            yield f"boot {each.boot.id[:12]} is not that of launch {each.launch_receipt[:12]}"
        elif each != booted(launch):
            yield f"the server of launch {each.launch_receipt[:12]} showed another configuration"

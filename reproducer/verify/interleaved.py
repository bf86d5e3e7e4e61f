"""Receipts of two runtimes that were measured in turn: their boots stand in the order in which they started."""

from collections.abc import Iterator

from reproducer.documents.receipts import Interleaved, MeasureReceipt
from reproducer.documents.verdict import Check
from reproducer.verify.evidence import Evidence, check


def interleaved_checks(evidence: Evidence) -> Iterator[Check]:
    """Nothing for receipts of a run of its own."""
    for name, receipt in evidence.measures:
        if receipt.interleaved is not None:
            yield _interleaved(evidence, name, receipt, receipt.interleaved)


def _interleaved(evidence: Evidence, name: str, receipt: MeasureReceipt, said: Interleaved) -> Check:
    faults = [
        f"launch {each[:12]} is not among the boots" for each in receipt.launch_receipts if each not in said.boots
    ]
    if len(set(said.boots)) != len(said.boots):
        faults.append("one boot stands twice")
    if not set(said.boots) - set(receipt.launch_receipts):
        faults.append("there is no boot of the other runtime")
    known = [evidence.launches[each].boot for each in said.boots if each in evidence.launches]
    times = [(boot.started, boot.start_ticks) for boot in known]
    if times != sorted(times):
        faults.append("the boots are not in the order in which they started")
    return check(
        f"interleaved.{name}",
        "qualification",
        faults,
        expected=f"arm {said.arm} beside lock {said.other_lock[:12]}",
        got=f"{len(said.boots)} boots{'' if faults else ' in turn'}, {len(known)} of this runtime",
    )

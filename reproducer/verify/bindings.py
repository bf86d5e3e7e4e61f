"""Bindings: every receipt names its lock, every measure its build and the boots its samples came from."""

from collections.abc import Iterator

from reproducer.documents.built import HostFacts
from reproducer.documents.receipts import MeasureReceipt
from reproducer.documents.verdict import Check
from reproducer.ledger import receipt_name
from reproducer.measures.definitions import BOOT_FACTS
from reproducer.verify.alterations import alteration_check, altered_boots, is_declared, named
from reproducer.verify.evidence import Evidence, check


def binding_checks(evidence: Evidence) -> Iterator[Check]:
    """That the receipts belong to this lock and to each other."""
    other = [
        f"{receipt_name(receipt)} names lock {receipt.lock_digest}"
        for receipt in evidence.receipts
        if receipt.lock_digest != evidence.digest
    ]
    named_by_others = sorted({receipt.lock_digest for receipt in evidence.receipts} - {evidence.digest})
    got = ", ".join(named_by_others) or f"{len(evidence.receipts)} receipts name it"
    yield check("binding.lock", "signature", other, expected=evidence.digest, got=got)
    yield _launches(evidence)
    machines = _machines(evidence)
    for name, receipt in evidence.measures:
        yield _build(evidence, name, receipt, machines)
        if receipt.status == "skipped" and not receipt.samples:
            continue
        yield _boots(evidence, name, receipt)
        if altered_boots(evidence, receipt):
            yield alteration_check(evidence, name, receipt)


def _launches(evidence: Evidence) -> Check:
    """Every launch names a build that is there, and no two launches are one boot."""
    faults = [
        f"{receipt_name(launch)} names build receipt {launch.build_receipt[:12]}, which is not here"
        for launch in evidence.launches.values()
        if launch.build_receipt not in evidence.builds
    ]
    faults += [
        f"{receipt_name(launch)} differs from the lock as no measure of its suite declares"
        for launch in evidence.launches.values()
        if launch.altered is not None and not is_declared(evidence.lock, launch)
    ]
    boots = [launch.boot.id for launch in evidence.launches.values()]
    faults += [f"boot {boot[:12]} has two launch receipts" for boot in sorted(set(boots)) if boots.count(boot) > 1]
    return check("binding.launches", "signature", faults, got=f"{len(boots)} boots of a build that is here")


def _machines(evidence: Evidence) -> dict[str, HostFacts]:
    """By launch receipt: the machine that the first measure of its boot ran on."""
    found: dict[str, HostFacts] = {}
    for _, receipt in evidence.measures:
        for digest in receipt.launch_receipts:
            found.setdefault(digest, receipt.conditions.host)
    return found


def _build(evidence: Evidence, name: str, receipt: MeasureReceipt, machines: dict[str, HostFacts]) -> Check:
    faults = [
        f"launch {digest[:12]} ran on another machine by another measure's receipt"
        for digest in receipt.launch_receipts
        if machines[digest] != receipt.conditions.host
    ]
    if receipt.build_receipt not in evidence.builds:
        faults.append(f"build receipt {receipt.build_receipt[:12]} is not here")
    for digest in receipt.launch_receipts:
        launch = evidence.launches.get(digest)
        if launch is None:
            faults.append(f"launch receipt {digest[:12]} is not here")
        elif launch.build_receipt != receipt.build_receipt:
            faults.append(f"launch {digest[:12]} ran build {launch.build_receipt[:12]}")
    return check(
        f"binding.receipts.{name}",
        "signature",
        faults,
        expected=f"build {receipt.build_receipt[:12]} and its launches",
        got=f"{len(receipt.launch_receipts)} launches",
    )


def _boots(evidence: Evidence, name: str, receipt: MeasureReceipt) -> Check:
    """Every sample was taken in a boot that the measure's launch receipts record."""
    known = {launch.boot.id for launch in named(evidence, receipt) if launch.altered is None}
    elsewhere = altered_boots(evidence, receipt)
    used = {sample.boot for sample in receipt.samples}
    faults = []
    for fact in BOOT_FACTS.values():
        boots = {str(sample.facts[fact]) for sample in receipt.samples if fact in sample.facts}
        if fact in elsewhere:
            others = sorted(boots - elsewhere[fact])
            faults += [f"boot {boot[:12]} has no launch receipt with what the measure alters" for boot in others]
        else:
            used |= boots
    faults += [f"boot {boot[:12]} has no launch receipt of the lock" for boot in sorted(used - known)]
    indices = [sample.index for sample in receipt.samples]
    if len(set(indices)) != len(indices):
        faults.append("two samples carry one index")
    return check(f"binding.boots.{name}", "signature", faults, got=f"{len(used)} boots")

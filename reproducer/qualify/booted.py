"""The boots of a measure, as its receipt names them: process, start, and the digest of what the server showed."""

from collections.abc import Iterable

from reproducer.canonical import content_digest
from reproducer.documents.receipts import LaunchReceipt, MeasuredBoot


def booted(launch: LaunchReceipt) -> MeasuredBoot:
    """One boot from its launch receipt."""
    shown = {value.name: value.got for value in launch.effective}
    return MeasuredBoot(launch_receipt=launch.digest, boot=launch.boot, effective_sha256=content_digest(shown))


def in_order(launches: Iterable[str], boots: Iterable[MeasuredBoot]) -> tuple[MeasuredBoot, ...] | None:
    """The boots of these launch receipts, in their order; None where one of them is not there."""
    known = {each.launch_receipt: each for each in boots}
    wanted = tuple(launches)
    return tuple(known[each] for each in wanted) if known.keys() >= set(wanted) else None

"""One bundle as a run: verified as `penny verify` does, and shown as broken where it is."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reproducer.attest.bundle import LOCK
from reproducer.attest.keys import PublicKey
from reproducer.attest.statements import INDEX, RECEIPTS
from reproducer.documents.opened import OpenedLock, open_lock
from reproducer.documents.receipts import BundleIndex, MeasureReceipt
from reproducer.documents.site import SiteCheck, SiteMeasure, SiteRun, SiteValue, Word
from reproducer.documents.verdict import Verdict
from reproducer.errors import NotCheckedError, Outcome, PennyError
from reproducer.ledger import Ledger
from reproducer.report.sections import bounds, machines
from reproducer.report.subject import Subject
from reproducer.site.found import told
from reproducer.verify.bundle import verify_bundle
from reproducer.verify.folder import read_plain

if TYPE_CHECKING:
    from reproducer.documents.measured import Derived

MOST_VALUES = 200
_LONGEST = 4000


@dataclass(frozen=True)
class Signer:
    """A key that the reader gave, and what the reader calls it."""

    name: str
    key: PublicKey


@dataclass(frozen=True)
class Read:
    """A run with what is not in its document.

    Attributes:
        outcome: what `penny verify` finds.
        opened: its lock; None where it is not shown.
        subject: what it says; None where no number of it is shown.
    """

    run: SiteRun
    outcome: Outcome
    opened: OpenedLock | None = None
    subject: Subject | None = None


def read_run(folder: Path, place: str, signers: Mapping[str, Signer]) -> Read:
    """One bundle; whatever is wrong with it stands in the result and is raised nowhere.

    Args:
        folder: the folder of bundles.
        place: where the bundle lies in it.
        signers: the keys that the reader gave, by their ids.
    """
    root = folder / place
    digest, key_id = _index(root)
    signer = None if key_id is None else signers.get(key_id)
    head = SiteRun(
        places=(told(place),),
        bundle_digest=digest,
        key_id=key_id,
        signer=None if signer is None else signer.name,
        verdict="unknown",
        counts={},
        checks=(),
    )
    try:
        verdict = verify_bundle(root, None if signer is None else signer.key)
    except NotCheckedError as error:
        return _broken(root, head, error, "unknown", Outcome.NOT_CHECKED)
    except PennyError as error:
        return _broken(root, head, error, "failed", Outcome.SIGNATURE_FAILED)
    except Exception as error:  # noqa: BLE001  a stranger's bundle breaks no site: what penny cannot read is not checked
        return _broken(root, head, error, "unknown", Outcome.NOT_CHECKED)
    return _shown(root, _judged(root, head, verdict), verdict)


def _index(root: Path) -> tuple[str | None, str | None]:
    """Digest and key of an index, as far as they can be read."""
    try:
        data = read_plain(root / INDEX)
    except PennyError:
        return None, None
    digest = hashlib.sha256(data).hexdigest()
    try:
        return digest, BundleIndex.from_json(data, where=INDEX).key_id
    except (PennyError, UnicodeDecodeError):
        return digest, None


def _broken(root: Path, head: SiteRun, error: Exception, word: Word, outcome: Outcome) -> Read:
    """What could not be verified to its end; where this machine keeps it stands nowhere."""
    said = f"{error.what}{f' ({error.why})' if error.why else ''}" if isinstance(error, PennyError) else ""
    fault = said or f"penny cannot read it: {type(error).__name__}"
    return Read(head.model_copy(update={"verdict": word, "fault": _text(_without(root, fault))}), outcome)


def _judged(root: Path, head: SiteRun, verdict: Verdict) -> SiteRun:
    checks = tuple(
        SiteCheck(id=_text(each.id), aspect=each.aspect, status=each.status, reason=_text(_without(root, each.reason)))
        for each in verdict.checks
        if each.status != "passed"
    )
    counts = dict(sorted(Counter(each.status for each in verdict.checks).items()))
    return head.model_copy(update={"verdict": verdict.word, "counts": counts, "checks": checks})


def _shown(root: Path, run: SiteRun, verdict: Verdict) -> Read:
    """With its numbers, where its signature holds: those of a bundle that somebody changed are nobody's."""
    if any(each.aspect == "signature" and each.status == "failed" for each in verdict.checks):
        fault = "a signature or a signed digest does not hold, so no number of it is shown"
        return Read(run.model_copy(update={"fault": fault}), verdict.outcome)
    try:
        opened = open_lock(root / LOCK)
        receipts = Ledger(root / RECEIPTS).receipts()
        subject = Subject(opened.lock, receipts, verdict, run.key_id, run.bundle_digest)
        measures = tuple(_measure(each) for each in subject.measures)
        created = max((each.created for each in receipts), default=None)
        named = tuple(_text(each) for each in machines(subject))
    except Exception as error:  # noqa: BLE001  as above; what was verified stays as it was
        return Read(_broken(root, run, error, run.verdict, verdict.outcome).run, verdict.outcome)
    more = {
        "lock_digest": opened.digest,
        "created": created,
        "machines": named,
        "boots": len(subject.launches),
        "measures": measures,
    }
    return Read(run.model_copy(update=more), verdict.outcome, opened, subject)


def _measure(receipt: MeasureReceipt) -> SiteMeasure:
    samples = [each for each in receipt.samples if not each.warmup]
    return SiteMeasure(
        measure=receipt.measure,
        parameters=receipt.parameters,
        status=receipt.status,
        samples=len(samples),
        boots=len({each.boot for each in samples}),
        values=tuple(_value(receipt, each) for each in receipt.derived),
    )


def _value(receipt: MeasureReceipt, each: "Derived") -> SiteValue:
    results = [result for result in receipt.thresholds if result.threshold.value == each.name]
    spread = each.spread
    return SiteValue(
        name=each.name,
        kind=each.kind,
        unit=each.unit,
        value=each.value,
        count=len(each.values),
        values=each.values if len(each.values) <= MOST_VALUES else (),
        minimum=each.minimum,
        maximum=each.maximum,
        interval=None if spread is None else (spread.low, spread.high),
        bounds=bounds(results)[0] if results else None,
        holds=all(result.passed for result in results) if results else None,
    )


def _without(root: Path, text: str) -> str:
    """Text without the place of the bundle on this machine, which is nobody's business."""
    if not root.parts:
        return text
    text = text.replace(f"{root}/", "").replace(str(root), "the bundle")
    above = [str(each) for each in root.parents if len(each.parts) > 1]  # its own name may be spelled in another way
    for each in above:
        text = text.replace(f"{each}/", "")
    return text


def _text(text: str) -> str:
    """Text as a document holds it: without the one character that none holds, and of bounded length."""
    plain = text.replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
    return plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]}…"

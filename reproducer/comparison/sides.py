"""One side of a comparison, read from a bundle, a folder of receipts, a receipt, a lock, or a document."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproducer.comparison.numbers import NotComparableError, Number, SourceKind
from reproducer.documents.base import parse_json, shown
from reproducer.documents.claims import Claim, is_claim
from reproducer.documents.imported import ImportedResult, is_imported
from reproducer.documents.opened import OpenedLock, open_lock
from reproducer.documents.receipts import BuildReceipt, LaunchReceipt, MeasureReceipt
from reproducer.documents.toml import read_text
from reproducer.documents.traces import Trace, is_trace
from reproducer.errors import NotCheckedError, UnsafeInputError, UsageError

if TYPE_CHECKING:
    from reproducer.ledger import AnyReceipt

_LOCK = "penny.lock.toml"
_LARGEST = 64 << 20


@dataclass(frozen=True)
class Side:
    """What is compared with another.

    Attributes:
        source: what sort of thing the numbers come from; two sorts are never compared.
        numbers: in the order of their source.
        conditions: what the source says of all of its numbers, by name; None where it says that nobody knows.
        opened: the lock; None where none is at hand.
        measures: the receipts that the numbers come from, by name.
        receipts: build and launch receipts, by digest.
        notes: what was left out, and why.
        failed: measures that failed, each with the reason: their numbers are not of a server that works.
    """

    where: str
    source: SourceKind
    numbers: tuple[Number, ...]
    conditions: Mapping[str, Any] = field(default_factory=dict)
    opened: OpenedLock | None = None
    measures: Mapping[str, MeasureReceipt] = field(default_factory=dict)
    receipts: Mapping[str, BuildReceipt | LaunchReceipt] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def digests(self) -> frozenset[str]:
        """The lock digests that its receipts name."""
        return frozenset(each.lock_digest for each in self.measures.values())


def read_side(path: Path, *, lock: Path | None = None, store: Path | None = None) -> Side:
    """One side from what the command line names.

    Args:
        path: a bundle, a folder of receipts, one receipt, a lock, a claim, an imported result or a trace.
        lock: the lock of receipts that do not lie beside theirs.
        store: the root of the store, where the receipts of a lock lie.

    Raises:
        UsageError: there is nothing, or no number in it.
        InvalidDocumentError, SignatureError, DriftError: as the documents and `read_receipt` do.
    """
    if not path.exists():
        raise UsageError("there is nothing here", where=str(path), todo="name a bundle, receipts, a trace or a claim")
    if path.is_dir():
        return _folder(path, lock)
    if not path.is_file():
        raise UnsafeInputError("is not a regular file", where=str(path))
    if path.suffix == ".toml":
        return _of_lock(path, store)
    data = parse_json(read_text(path, what="document", limit=_LARGEST), where=str(path))
    if is_claim(data):
        return _without_lock(_claim(Claim.from_data(data, where=str(path)), path), lock)
    if is_imported(data):
        return _without_lock(_imported(ImportedResult.from_data(data, where=str(path)), path), lock)
    if is_trace(data):
        return _without_lock(_trace(Trace.from_data(data, where=str(path)), path), lock)
    if isinstance(data, dict) and str(data.get("format", "")).startswith("penny-receipt/"):
        return _receipt(path, lock)
    told = shown(data.get("format")) if isinstance(data, dict) else "none"
    raise UsageError(
        "is nothing that can be compared",
        where=str(path),
        why=f"its format is {told}",
        todo="name a bundle, receipts, a trace, an imported result or a claim",
    )


def _without_lock(side: Side, lock: Path | None) -> Side:
    if lock is not None:
        raise UsageError(f"a {side.source} has no lock", where=side.where, todo="leave the lock out")
    return side


def _claim(claim: Claim, path: Path) -> Side:
    from reproducer.comparison.stated import claim_side

    return claim_side(claim, str(path))


def _imported(result: ImportedResult, path: Path) -> Side:
    from reproducer.comparison.stated import imported_side

    return imported_side(result, str(path))


def _trace(trace: Trace, path: Path) -> Side:
    from reproducer.comparison.traced import trace_side

    return trace_side(trace, str(path))


def _of_lock(path: Path, store: Path | None) -> Side:
    from reproducer.ledger import Ledger

    opened = open_lock(path)
    ledger = Ledger.of(store, opened.digest) if store is not None else None
    receipts = () if ledger is None else ledger.receipts()
    if not receipts:
        raise NotCheckedError("the store has no receipt of this lock", where=str(path), todo="run `penny qualify`")
    return _of_receipts(receipts, opened, str(path))


def _folder(path: Path, lock: Path | None) -> Side:
    from reproducer.ledger import Ledger

    inner = path / "receipts"
    ledger = Ledger(inner if inner.is_dir() else path)
    beside = next((each for each in (path / _LOCK, path.parent / _LOCK) if each.is_file()), None)
    receipts = ledger.receipts()
    if not receipts:
        raise UsageError("there is no receipt here", where=str(path), todo="name a bundle or a folder of receipts")
    return _of_receipts(receipts, _lock_of(receipts, lock, beside), str(path))


def _receipt(path: Path, lock: Path | None) -> Side:
    from reproducer.ledger import Ledger, read_receipt

    receipt = read_receipt(path)
    if not isinstance(receipt, MeasureReceipt):
        raise NotComparableError(f"is a {receipt.kind} receipt and carries no number", where=str(path))
    named = tuple(Ledger(path.parent).named((receipt.build_receipt, *receipt.launch_receipts)))
    folders = path.parent, path.parent.parent
    beside = next((each / _LOCK for each in folders if (each / _LOCK).is_file()), None)
    receipts = (*named, receipt)
    return _of_receipts(receipts, _lock_of(receipts, lock, beside), str(path))


def _lock_of(receipts: "tuple[AnyReceipt, ...]", named: Path | None, beside: Path | None) -> OpenedLock | None:
    """The lock that receipts are of: the one that is named, else the one beside them where it is theirs.

    Raises:
        UsageError: the lock that is named is another one.
    """
    wanted = {each.lock_digest for each in receipts}
    if named is not None:
        opened = open_lock(named)
        if wanted != {opened.digest}:
            raise UsageError(
                "is not the lock of these receipts",
                where=str(named),
                why=f"its digest begins {opened.digest[:12]}, they name {', '.join(sorted(x[:12] for x in wanted))}",
            )
        return opened
    if beside is None:
        return None
    opened = open_lock(beside)
    return opened if wanted == {opened.digest} else None


def _of_receipts(receipts: "tuple[AnyReceipt, ...]", opened: OpenedLock | None, where: str) -> Side:
    from reproducer.comparison.measured import receipts_side

    return receipts_side(receipts, opened, where)

"""Where receipts lie between commands: append-only, one file a receipt, named by kind and digest."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from reproducer.documents.base import parse_json, shown
from reproducer.documents.claims import is_claim
from reproducer.documents.imported import is_imported
from reproducer.documents.receipts import RECEIPT_KINDS, BuildReceipt, LaunchReceipt, MeasureReceipt
from reproducer.documents.toml import read_bytes, read_text, write_atomically
from reproducer.errors import DriftError, InvalidDocumentError, NotCheckedError, SignatureError, UnsafeInputError

AnyReceipt = BuildReceipt | LaunchReceipt | MeasureReceipt
LARGEST_RECEIPT = 64 << 20
LARGEST_LOG = 256 << 20


def receipt_name(receipt: AnyReceipt) -> str:
    """The file name of a receipt: kind, measure where there is one, 12 digits of its digest."""
    label = f"measure-{receipt.measure.replace('/', '-')}" if isinstance(receipt, MeasureReceipt) else receipt.kind
    return f"{label}-{receipt.digest[:12]}.json"


def parse_receipt(text: str, *, where: str) -> AnyReceipt:
    """A receipt from JSON text.

    Raises:
        InvalidDocumentError: not JSON, of no known kind, or malformed.
    """
    data = parse_json(text, where=where)
    if is_claim(data):
        raise InvalidDocumentError(
            "is a claim and no receipt",
            where=where,
            why="nobody measured it here, and nothing can be recomputed from it",
            todo="keep claims in evidence/claims, apart from receipts",
        )
    if is_imported(data):
        raise InvalidDocumentError(
            "is an imported result and no receipt",
            where=where,
            why="another harness measured it, and penny cannot vouch for it",
            todo="keep imported results in evidence/imported, apart from receipts",
        )
    kind = data.get("kind") if isinstance(data, dict) else None
    model = RECEIPT_KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        known = ", ".join(RECEIPT_KINDS)
        raise InvalidDocumentError(f"is no receipt: kind {shown(kind)}", where=where, why=f"known kinds: {known}")
    return model.from_data(data, where=where)


def read_receipt(path: Path) -> AnyReceipt:
    """A receipt from its file, with the samples that lie beside it; its name must carry its digest.

    Raises:
        DriftError: its samples are gone.
        SignatureError: the content is not what the name says: edited after the run.
        UnsafeInputError: a pipe, a device or a folder.
        InvalidDocumentError, UsageError: as `parse_receipt` and `read_text`.
    """
    if path.exists() and not path.is_file():
        raise UnsafeInputError("is not a regular file", where=str(path))
    receipt = parse_receipt(read_text(path, what="receipt", limit=LARGEST_RECEIPT), where=str(path))
    if path.name != receipt_name(receipt):
        raise SignatureError(
            "the receipt is not the one its name says",
            where=str(path),
            why=f"its content's digest begins {receipt.digest[:12]}",
            todo="it was edited or renamed after the run; use the original",
        )
    if not isinstance(receipt, MeasureReceipt) or receipt.samples_beside is None:
        return receipt
    return _with_samples(receipt, path)


def _with_samples(receipt: MeasureReceipt, path: Path) -> MeasureReceipt:
    from reproducer.samples.beside import file_name, with_samples

    beside = path.with_name(file_name(receipt.samples_beside)) if receipt.samples_beside is not None else path
    if not beside.is_file():
        raise DriftError(
            "the samples of the receipt are gone",
            where=str(path),
            why=f"{beside.name} is not beside it",
            todo="copy both together",
        )
    return with_samples(receipt, read_bytes(beside, what="file of samples", limit=LARGEST_RECEIPT), where=str(beside))[
        0
    ]


@dataclass(frozen=True)
class Ledger:
    """The receipts of one lock in one folder."""

    folder: Path

    @classmethod
    def of(cls, store: Path, lock_digest: str, *, policy: str = "") -> "Ledger":
        """The ledger of a lock in a store's root; evidence is made under `commit`, so another policy has its own."""
        return cls(store / "receipts" / (f"{lock_digest}+{policy}" if policy else lock_digest))

    def add(self, receipt: AnyReceipt) -> Path:
        """Write a receipt; an equal one that is there already stays as it is.

        Raises:
            NotCheckedError: it cannot be written.
        """
        from reproducer.samples.beside import file_name, packed_samples

        path = self.folder / receipt_name(receipt)
        if isinstance(receipt, MeasureReceipt) and receipt.samples_beside is not None:
            beside = self.folder / file_name(receipt.samples_beside)
            if not beside.exists():
                write_atomically(beside, packed_samples(receipt))
        if not path.exists():
            write_atomically(path, receipt.canonical() + b"\n")
        return path

    def keep(self, path: Path, sha256: str) -> None:
        """Keep a file beside the receipts under its digest; one that is there already stays as it is.

        Raises:
            NotCheckedError: it cannot be written, or its bytes are not those of the digest.
        """
        kept = self.folder / "logs" / f"{sha256}{path.suffix}"
        data = read_bytes(path, what="log", limit=LARGEST_LOG)
        if hashlib.sha256(data).hexdigest() != sha256:
            raise NotCheckedError("a log was changed before it was kept", where=str(path))
        if not kept.exists():
            write_atomically(kept, data)

    def paths(self) -> tuple[Path, ...]:
        """The receipt files, oldest name order; empty where the folder is missing."""
        return tuple(sorted(self.folder.glob("*.json"))) if self.folder.is_dir() else ()

    def receipts(self) -> tuple[AnyReceipt, ...]:
        """Every receipt, in the order in which they were created; raises as `read_receipt` does."""
        return tuple(sorted((read_receipt(path) for path in self.paths()), key=lambda receipt: receipt.created))

    def builds(self) -> tuple[BuildReceipt, ...]:
        """The build receipts, in the order in which they were created; raises as `read_receipt` does."""
        found = (read_receipt(path) for path in self.folder.glob("build-*.json"))
        builds = (receipt for receipt in found if isinstance(receipt, BuildReceipt))
        return tuple(sorted(builds, key=lambda receipt: receipt.created))

    def named(self, digests: Iterable[str]) -> Iterator[AnyReceipt]:
        """The receipts with these digests, as far as they are here; raises as `read_receipt` does."""
        for digest in digests:
            for path in self.folder.glob(f"*-{digest[:12]}.json"):
                receipt = read_receipt(path)
                if receipt.digest == digest:
                    yield receipt


def evidence_of(ledger: Ledger, measures: tuple[MeasureReceipt, ...]) -> tuple[AnyReceipt, ...]:
    """The measure receipts with the build and launch receipts that they name.

    Raises:
        DriftError: a receipt that one of them names is gone.
    """
    wanted = {measure.build_receipt for measure in measures}
    wanted |= {digest for measure in measures for digest in measure.launch_receipts}
    named = tuple(sorted(ledger.named(wanted), key=lambda receipt: receipt.created))
    missing = wanted - {receipt.digest for receipt in named}
    if missing:
        raise DriftError(
            f"receipt {min(missing)[:12]} is gone, though a measure receipt names it",
            where=str(ledger.folder),
            todo="run `penny qualify` again",
        )
    return (*named, *measures)


def latest_measures(receipts: tuple[AnyReceipt, ...]) -> tuple[MeasureReceipt, ...]:
    """The newest receipt of each measure with each set of parameters, in that order."""
    from reproducer.measures.apart import identity

    measures = (receipt for receipt in receipts if isinstance(receipt, MeasureReceipt))
    newest = {identity(receipt.measure, receipt.parameters): receipt for receipt in measures}
    return tuple(newest[each] for each in sorted(newest))

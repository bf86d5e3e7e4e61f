"""Traces of penny's own servers: one for each boot, kept beside the receipts and named by its launch receipt."""

from pathlib import Path
from typing import TYPE_CHECKING

from reproducer.documents.receipts import LaunchReceipt
from reproducer.documents.toml import read_text, write_atomically
from reproducer.documents.traces import Served, Trace
from reproducer.errors import PennyError, SignatureError
from reproducer.trace.tracing import trace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reproducer.ledger import AnyReceipt
    from reproducer.progress import Reporter

TRACES = "traces"
LARGEST_TRACE = 16 << 20
MOST_LISTED = 1_000


def trace_name(launch_receipt: str) -> str:
    """The file name of the trace of a boot, by the digest of its launch receipt."""
    return f"trace-{launch_receipt[:12]}.json"


def keep_trace(folder: Path, receipt: LaunchReceipt, log: Path, reporter: "Reporter") -> None:
    """Trace the log of a server that has ended, and keep the trace in `folder`; where that fails, say why.

    What was measured stands without it, so a trace that cannot be made ends no run. Requests are listed one by one
    where they are few, so that the traces of many boots are within what a bundle may hold.
    """
    served = Served(lock_digest=receipt.lock_digest, launch_receipt=receipt.digest)
    try:
        found = trace([log], served=served).trace
        if len(found.requests.listed.output_tokens if found.requests.listed else ()) > MOST_LISTED:
            found = found.model_copy(update={"requests": found.requests.model_copy(update={"listed": None})})
        write_atomically(folder / trace_name(receipt.digest), found.canonical() + b"\n")
    except PennyError as error:
        reporter.note(f"the server's log gave no trace: {error}")


def kept_traces(folder: Path, receipts: "Iterable[AnyReceipt]") -> tuple[Trace, ...]:
    """The traces of the boots of these receipts, as far as they are in `folder`, oldest boot first.

    Raises:
        SignatureError: one is the trace of another boot.
        InvalidDocumentError, UsageError: one cannot be read.
    """
    found = []
    launches = (each for each in receipts if isinstance(each, LaunchReceipt))
    for receipt in sorted(launches, key=lambda each: (each.created, each.digest)):
        path = folder / trace_name(receipt.digest)
        if not path.is_file():
            continue
        traced = Trace.from_json(read_text(path, what="trace", limit=LARGEST_TRACE), where=str(path))
        if faults := served_by(traced, receipt):
            raise SignatureError("is the trace of another server", where=str(path), why=faults[0])
        found.append(traced)
    return tuple(found)


def served_by(found: Trace, receipt: LaunchReceipt) -> list[str]:
    """Why a trace is not that of a boot; nothing where it is."""
    if found.served is None:
        return ["it says of no boot that its log is the one that was read"]
    if found.served.launch_receipt != receipt.digest:
        return [f"it is of launch receipt {found.served.launch_receipt[:12]}"]
    if found.served.lock_digest != receipt.lock_digest:
        return [f"it is of lock {found.served.lock_digest[:12]}"]
    return []

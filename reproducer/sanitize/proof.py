"""The proof that sanitising changed no number: a file is read before and after by readers that know nothing of it.

One is `penny trace`: requests, rates, bands, windows, damage and counts of lines must come out the same. The other
reads every number of documents and tables, and the numbers of other lines of logs in which engines report.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproducer.errors import InvalidDocumentError, NotCheckedError
from reproducer.sanitize.forms import Form
from reproducer.sanitize.measured import Numbers

_OF_THE_FILE = ("name", "sha256", "size", "unpacked")
_TRACED: tuple[Form, ...] = ("log", "table", "documents")


@dataclass(frozen=True)
class Proven:
    """What was compared, all of it equal.

    Attributes:
        numbers: how many numbers.
        digest: hex sha256 over them and their names.
        requests: how many completed requests the trace holds.
        windows: how many telemetry windows and prefills.
    """

    numbers: int
    digest: str
    requests: int
    windows: int


def read_trace(path: Path, form: Form) -> dict[str, Any] | None:
    """What `penny trace` says of a file, without what is the file's own; None of a file that it does not read."""
    if form not in _TRACED:
        return None
    from reproducer.trace.tracing import trace

    try:
        found = trace([path]).trace.content()
    except InvalidDocumentError:
        return None
    if form == "table" and all(source["kind"] == "nothing known" for source in found["sources"]):
        return None  # its cells may go over several lines, and rows are what is counted
    for source in found["sources"]:
        for name in _OF_THE_FILE:
            source.pop(name)
    return found


def proven(
    where: Path, before: tuple[Numbers, dict[str, Any] | None], after: tuple[Numbers, dict[str, Any] | None]
) -> Proven:
    """Hold what was read of the sanitised file against what was read of the original.

    Raises:
        NotCheckedError: something differs; says what.
    """
    (numbers, trace), (numbers_after, trace_after) = before, after
    why = ""
    if not numbers.same_as(numbers_after):
        why = f"{numbers.count} numbers before and {numbers_after.count} after are not the same"
    elif trace != trace_after:
        why = f"its trace differs in: {', '.join(_differing(trace or {}, trace_after or {}))}"
    if why:
        raise NotCheckedError(
            "its numbers would not be the same; nothing was written",
            where=str(where),
            why=why,
            todo="sanitise this file by hand",
        )
    lines = (trace or {}).get("lines", {})
    return Proven(
        numbers.count,
        numbers.digest,
        (trace or {}).get("requests", {}).get("completed", {}).get("requests", 0),
        lines.get("windows", 0) + lines.get("prefills", 0),
    )


def _differing(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))

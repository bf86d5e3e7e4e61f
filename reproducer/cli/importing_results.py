"""`penny import` of a file that another harness wrote."""

from pathlib import Path
from typing import TYPE_CHECKING

from reproducer.errors import UsageError

if TYPE_CHECKING:
    from reproducer.cli.front import Front
    from reproducer.documents.imported import ImportedResult

_FIRST = 4096


def is_result(path: Path) -> bool:
    """Whether a file begins as results do: a zip archive, or an object of JSON. A script begins as neither."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            first = file.read(_FIRST)
    except OSError:
        return False
    if first.startswith(b"PK\x03\x04"):
        return True
    text = first.lstrip()
    return text.startswith(b"{") and text[1:].lstrip()[:1] in (b'"', b"}")


def import_file(front: "Front", path: Path, chosen: str | None, folder: Path | None, lock: Path | None) -> None:
    """Import one result and say what of it has no place.

    Args:
        front: the run of the command.
        path: the harness's file.
        chosen: its format; None to know it by its content.
        folder: where document and original go.
        lock: the lock that the importer says the server ran.

    Raises:
        UsageError: no such format.
        PennyError: as `import_result`, `keep` and `open_lock`.
    """
    from reproducer.cli.show_results import shown_result
    from reproducer.results.formats import FORMATS
    from reproducer.results.keeping import FOLDER, import_result, keep

    form = next((each for each in FORMATS if each == chosen), None)
    if chosen is not None and form is None:
        raise UsageError("no such format", where=chosen, todo=f"choose one of {', '.join(FORMATS)}")
    imported = import_result(path, chosen=form, lock_digest=_digest(lock))
    result = imported.result
    document, original = keep(imported, folder if folder is not None else FOLDER)
    _noted(front, result)
    front.emit(
        {
            "imported": str(document),
            "original": str(original),
            "digest": result.digest,
            "harness": result.harness,
            "harness_version": result.harness_version,
            "file_version": result.file_version,
            "version_seen": result.version_seen,
            "runs": len(result.runs),
            "unmapped": [each.model_dump() for each in result.unmapped],
            "unknown": sorted({each for run in result.runs for each in run.conditions.unknown}),
            "notes": [f"{run.place}: {note}" for run in result.runs for note in run.notes],
        },
        shown_result(result, document, original),
    )


def _digest(lock: Path | None) -> str | None:
    if lock is None:
        return None
    from reproducer.documents.opened import open_lock

    return open_lock(lock).digest


def _noted(front: "Front", result: "ImportedResult") -> None:
    if result.version_seen is False:
        front.reporter.note(
            f"Written by {result.harness} {result.harness_version}; its fields were read in {result.read_in}, and a "
            "word may mean something else in another version."
        )
    front.reporter.note("The original is kept as it is: it may hold prompts, answers and addresses.")

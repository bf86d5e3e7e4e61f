"""Importing one file: the document and the original, beside each other, each under a name of its digest."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from reproducer import __version__
from reproducer.documents.base import FileReference
from reproducer.documents.imported import BoundLock, ImportedResult
from reproducer.documents.toml import write_atomically
from reproducer.errors import UsageError
from reproducer.results.formats import Format, map_result
from reproducer.results.reading import read_original

FOLDER = Path("evidence") / "imported"


@dataclass(frozen=True)
class Imported:
    """A document and the bytes that it was made of."""

    result: ImportedResult
    original: bytes

    @property
    def name(self) -> str:
        """The file name of the document: harness and 12 digits of its digest."""
        harness = self.result.harness.replace(" ", "-")
        return f"{harness}-{self.result.digest[:12]}.json"


def import_result(path: Path, *, chosen: Format | None = None, lock_digest: str | None = None) -> Imported:
    """Read a harness's file and map it; nothing is written.

    Args:
        path: the file.
        chosen: its format; None to know it by its content.
        lock_digest: the lock that the importer says the server ran; None where nobody says.

    Raises:
        InvalidDocumentError, UnsafeInputError, UsageError: as `read_original` and `map_result`.
    """
    data = read_original(path)
    mapped = map_result(data, chosen, where=str(path))
    digest = hashlib.sha256(data).hexdigest()
    unknown = mapped.harness_version == "unknown"
    result = ImportedResult(
        format="penny-imported/1",
        status="imported",
        harness=mapped.known.harness,
        harness_version=mapped.harness_version,
        file_version=mapped.file_version,
        read_in=mapped.known.read_in,
        version_seen=None if unknown else mapped.harness_version == mapped.known.read_in,
        penny_version=__version__,
        original=FileReference(path=f"original-{digest}{mapped.suffix}", sha256=digest, size=len(data)),
        lock=None if lock_digest is None else BoundLock(digest=lock_digest, by="importer"),
        runs=mapped.runs,
        unmapped=mapped.fields.unmapped(),
    )
    return Imported(result, data)


def keep(imported: Imported, folder: Path) -> tuple[Path, Path]:
    """Write document and original; what is there already under these names is the same, or nothing is written.

    Returns:
        Where the document lies, and where the original does.

    Raises:
        UsageError: something else lies there.
        NotCheckedError: they cannot be written.
    """
    contents = {
        folder / imported.name: imported.result.canonical() + b"\n",
        folder / imported.result.original.path: imported.original,
    }
    for path, data in contents.items():
        if path.is_symlink() or (path.exists() and not (path.is_file() and path.read_bytes() == data)):
            raise UsageError("something else lies here already", where=str(path), todo="name another folder with -o")
    for path, data in reversed(contents.items()):
        if not path.exists():
            write_atomically(path, data)
    document, original = contents
    return document, original

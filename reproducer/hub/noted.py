"""What `penny fetch` found out about a revision of which a lock knew nothing more, for the next `penny lock`."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from reproducer.canonical import canonical_bytes, content_digest
from reproducer.documents.base import parse_json
from reproducer.documents.lock import CheckpointFile
from reproducer.documents.sources import HubSource
from reproducer.documents.toml import write_atomically
from reproducer.errors import InvalidDocumentError
from reproducer.store import Store

_FILES: TypeAdapter[tuple[CheckpointFile, ...]] = TypeAdapter(tuple[CheckpointFile, ...])


def note_files(store: Store, source: HubSource, files: Sequence[CheckpointFile]) -> None:
    """Write the files of a revision down; each was verified against what the hub says of it."""
    store.prepare()
    content = [each.model_dump(mode="json", exclude_none=True) for each in files]
    write_atomically(_path(store, source), canonical_bytes(content))


def noted_files(store: Store, source: HubSource) -> tuple[CheckpointFile, ...] | None:
    """The files of a revision, where they were written down; a note that cannot be read counts as none."""
    path = _path(store, source)
    try:
        data = path.read_bytes()
        parse_json(data, where=str(path))
        return _FILES.validate_json(data, strict=True)
    except (OSError, InvalidDocumentError, ValidationError):
        return None


def _path(store: Store, source: HubSource) -> Path:
    return store.root / "hub" / f"{content_digest([source.repository, source.revision])}.json"

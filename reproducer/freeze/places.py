"""Where a frozen runtime lies on this machine: noted in the store, for no lock carries it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reproducer.canonical import content_digest
from reproducer.documents.base import parse_json
from reproducer.documents.lock import Lock
from reproducer.documents.toml import write_atomically
from reproducer.errors import InvalidDocumentError
from reproducer.store import Store

_FOLDER = "frozen"
_LARGEST = 1 << 20


@dataclass(frozen=True)
class Places:
    """The interpreter and the checkpoints of one frozen lock.

    Attributes:
        python: None where nobody noted it.
        checkpoints: folders by role.
    """

    python: Path | None
    checkpoints: Mapping[str, Path]


def note(store: Store, lock: Lock, python: Path, checkpoints: Mapping[str, Path]) -> None:
    """Note the places of a lock's runtime and checkpoints."""
    content = {"python": str(python), "checkpoints": {role: str(folder) for role, folder in checkpoints.items()}}
    write_atomically(_path(store, lock), json.dumps(content, sort_keys=True).encode(), mode=0o600)


def noted(store: Store, lock: Lock) -> Places:
    """The places of a lock; empty where it was frozen elsewhere. What lies there is checked by whoever uses it."""
    path = _path(store, lock)
    try:
        with path.open("rb") as file:
            told = parse_json(file.read(_LARGEST + 1), where=str(path), limit=_LARGEST)
        python, folders = Path(told["python"]), {str(role): Path(each) for role, each in told["checkpoints"].items()}
    except (OSError, InvalidDocumentError, KeyError, TypeError, AttributeError):
        return Places(None, {})
    return Places(python, folders)


def _path(store: Store, lock: Lock) -> Path:
    """By runtime and checkpoints: those of another launch or suite lie nowhere else."""
    content = lock.content()
    held = content_digest({key: content.get(key) for key in ("adopted", "checkpoints")})
    return store.root / _FOLDER / f"{held}.json"

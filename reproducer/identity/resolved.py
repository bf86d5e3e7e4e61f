"""What only the machine decides: values that the engine resolved where the lock says nothing.

An attention backend that nobody named is one thing on this processor and another on the next, and pages of the two
round differently. The lock cannot know it, so the first launch writes down beside the pages what it came to, and every
later one must come to the same.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from reproducer.documents.base import Document, parse_json, shown
from reproducer.documents.lock import ParameterName, Scalar
from reproducer.documents.toml import write_atomically
from reproducer.errors import ConfigurationError, InvalidDocumentError

FILE = "resolved.json"
_LARGEST = 1 << 16
_LEAVE = "nothing was changed: look at it, move the namespace away, or name another place with --kv"


class Resolved(Document):
    """The file `resolved.json` in a namespace's root, format `penny-resolved/1`."""

    format: Literal["penny-resolved/1"] = "penny-resolved/1"
    values: dict[ParameterName, Scalar]


def agree(root: Path, values: Mapping[str, Scalar]) -> None:
    """Compare what a server resolved with what the namespace's earlier ones did; a value seen first is written down.

    Args:
        root: the namespace's root; one server at a time.
        values: name to effective value, of what the lock leaves to the machine; `auto` says nothing.

    Raises:
        ConfigurationError: a value differs, or the file cannot be read; nothing is changed then.
        NotCheckedError: the disk is full.
    """
    path = root / FILE
    said = {name: value for name, value in values.items() if value != "auto"}
    known = _read(path).values if os.path.lexists(path) else {}
    differing = [name for name in sorted(known.keys() & said.keys()) if not _same(known[name], said[name])]
    if differing:
        told = "; ".join(f"{name}: {shown(known[name])} then, {shown(said[name])} now" for name in differing)
        raise ConfigurationError(
            "the engine resolves what the lock leaves open otherwise than when these pages were written",
            where=str(path),
            why=told,
            todo="name the value in the manifest and lock again, or name another place with --kv",
        )
    if said.keys() - known.keys():
        document = Resolved(values=dict(sorted({**said, **known}.items())))
        write_atomically(path, document.canonical() + b"\n", mode=0o600)


def _read(path: Path) -> Resolved:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise ConfigurationError("is no regular file", where=str(path), todo=_LEAVE)
            data = file.read(_LARGEST + 1)
        return Resolved.from_data(parse_json(data, where=str(path), limit=_LARGEST), where=str(path))
    except (OSError, InvalidDocumentError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError("cannot be read", where=str(path), why=why, todo=_LEAVE) from error


def _same(one: Scalar, two: Scalar) -> bool:
    return type(one) is type(two) and one == two

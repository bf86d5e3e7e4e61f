"""Reading and writing TOML documents, as text of a stranger."""

import fcntl
import glob
import os
import re
import shlex
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any, TypeVar

from reproducer.documents.base import Document, parse_json
from reproducer.documents.bounds import refuse_deep, refuse_long_keys, refuse_many
from reproducer.documents.mistaken import refuse_other
from reproducer.errors import InvalidDocumentError, NotCheckedError, UsageError

D = TypeVar("D", bound=Document)
LARGEST = 8 << 20
_MOST_VALUES = 100_000
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_PARTIAL = ".partial"
_YOUNG_S = 10


def read_bytes(path: Path, *, what: str, limit: int = LARGEST) -> bytes:
    """The bytes of a file of bounded size.

    Raises:
        UsageError: there is no such file, or it cannot be read.
        InvalidDocumentError: too large.
    """
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except FileNotFoundError as error:
        todo = "name one, or run in its folder" if what == "lock" else "name the file"
        raise UsageError(f"there is no {what} here", where=str(path), todo=todo) from error
    except OSError as error:
        raise UsageError(f"the {what} cannot be read", where=str(path), why=error.strerror or str(error)) from error
    if len(data) > limit:
        raise InvalidDocumentError(f"the {what} is larger than {limit} bytes", where=str(path))
    return data


def read_text(path: Path, *, what: str, limit: int = LARGEST) -> str:
    """The UTF-8 text of a file of bounded size.

    Raises:
        UsageError: there is no such file, or it cannot be read.
        InvalidDocumentError: too large, or not UTF-8.
    """
    data = read_bytes(path, what=what, limit=limit)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InvalidDocumentError(f"line {line}: the {what} is not UTF-8", where=str(path)) from error


def parse_toml(text: str | bytes, *, where: str) -> dict[str, Any]:
    """TOML text as plain data.

    Raises:
        InvalidDocumentError: not TOML; names the line and column. Or too much of it, or not UTF-8.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidDocumentError("not TOML: not UTF-8", where=where) from error
    if len(text) > LARGEST:
        raise InvalidDocumentError(f"is larger than {LARGEST} bytes", where=where)
    refuse_many(text, where=where, most=_MOST_VALUES)
    refuse_long_keys(text, where=where)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        at = _PLACE.search(message)
        line, column = (at[1], at[2]) if at and at[1] else (text.count("\n") + 1, len(text.rpartition("\n")[2]) + 1)
        raise InvalidDocumentError(
            f"line {line}, column {column}: not TOML: {_PLACE.sub('', message)}", where=where
        ) from error
    except (RecursionError, ValueError) as error:
        raise InvalidDocumentError("not TOML", where=where, why=str(error)) from error
    refuse_deep(data, where=where)
    return data


def read_document(kind: type[D], path: Path, *, what: str) -> D:
    """A manifest or lock from its file; errors name file, line and key."""
    text = read_text(path, what=what)
    if not text.strip():
        raise InvalidDocumentError(f"the {what} is empty", where=str(path), todo="name another file")
    return from_toml(kind, text, where=str(path))


def from_toml(kind: type[D], text: str, *, where: str) -> D:
    """Validate TOML text; errors name file, line and key, or say which other document it is."""
    try:
        data = parse_toml(text, where=where)
    except InvalidDocumentError:
        refuse_text(kind, text, where=where)
        raise
    return kind.from_data(data, where=where, source=text)


def refuse_text(kind: type[Document], text: str, *, where: str) -> None:
    """Refuse text that is no TOML and that is known: another document in JSON, or a script.

    Raises:
        InvalidDocumentError: it is one of these.
    """
    if text.startswith("#!"):
        raise InvalidDocumentError(
            "is a script", where=where, todo=f"`penny import {shlex.quote(where)}` makes a manifest of it"
        )
    if text.lstrip()[:1] not in ("{", "["):
        return
    try:
        data = parse_json(text, where=where)
    except InvalidDocumentError:
        return
    refuse_other(kind.model_fields, data, where=where)
    raise InvalidDocumentError("is JSON, and TOML belongs here", where=where)


def refuse_toml(kind: type[Document], text: str | bytes, *, where: str) -> None:
    """Refuse text that is no JSON and is another document in TOML.

    Raises:
        InvalidDocumentError: it is one.
    """
    try:
        data = parse_toml(text, where=where)
    except InvalidDocumentError:
        return
    refuse_other(kind.model_fields, data, where=where)


def write_atomically(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file so that a reader sees the old bytes or the new, never a part.

    Raises:
        NotCheckedError: the disk is full or the folder cannot be written.
    """
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_PARTIAL)
        with os.fdopen(handle, "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise NotCheckedError("cannot be written", where=str(path), why=error.strerror or str(error)) from error


def _sweep(path: Path) -> None:
    """Remove what processes that were killed while they wrote this file left; a living one holds a lock on its own."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*{_PARTIAL}"):
        try:
            with left.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if time.time() - left.stat().st_mtime > _YOUNG_S:
                    left.unlink()
        except OSError:
            continue

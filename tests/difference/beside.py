"""Locks with real files beside them, for tests that look into those."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproducer.documents.opened import OpenedLock
from reproducer.locking.render import render_lock
from tests.identity.factory import Edit, lock_data, lock_of

if TYPE_CHECKING:
    from reproducer.documents.lock import Lock

PATCHES = ("runtime/patches/0001-a.patch", "runtime/patches/0002-b.patch")
SCRIPT = "runtime/convert.py"
SCHEMA = "runtime/sglang.arguments.json"


def default(value: Any = None, expression: str | None = None) -> dict[str, Any]:
    """A default as the document has it."""
    return {"value": value} if expression is None else {"expression": expression}


def argument(name: str, value: Any = None, **more: Any) -> dict[str, Any]:
    """One argument of an engine with its default."""
    return {"name": name, "field": name.replace("-", "_"), "kind": "text", "default": default(value), **more}


def variable(name: str, value: Any = None) -> dict[str, Any]:
    """One variable of an engine with its default."""
    return {"name": name, "kind": "text", "default": default(value)}


def schema(*arguments: dict[str, Any], variables: tuple[dict[str, Any], ...] = (), engine: str = "sglang") -> bytes:
    """The list of what an engine takes."""
    file = {"path": "sglang/server_args.py", "sha256": "0" * 64, "size": 1}
    return json.dumps(
        {
            "format": "penny-arguments/1",
            "engine": engine,
            "version": "1",
            "files": [file],
            "arguments": arguments,
            "variables": variables,
        }
    ).encode()


def opened(folder: Path, files: Mapping[str, bytes], *edits: Edit) -> OpenedLock:
    """A lock in a folder, written there, with the given files beside it and pinned by it."""
    data = lock_data()
    for edit in edits:
        edit(data)
    _pin(data, {path: _reference(path, content) for path, content in files.items()})
    lock: Lock = lock_of(data)
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    (folder / "penny.lock.toml").write_bytes(render_lock(lock))
    return OpenedLock(lock, folder / "penny.lock.toml")


def _reference(path: str, content: bytes) -> dict[str, Any]:
    return {"path": path, "sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}


def _pin(value: Any, references: Mapping[str, dict[str, Any]]) -> None:
    """Give every reference to one of the files the digest of what is written there."""
    if isinstance(value, dict):
        if set(value) == {"path", "sha256", "size"}:
            value.update(references.get(value["path"], {}))
        for inner in value.values():
            _pin(inner, references)
    elif isinstance(value, list):
        for inner in value:
            _pin(inner, references)

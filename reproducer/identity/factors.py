"""A lock as named, typed facts.

The walk knows the types of the document and not its keys, so a key that is added to the lock is a fact at once. Entries
of a list are named by what identifies them, so that their order does not count; only where order means something
(patches) they are named by their place.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel

from reproducer.documents.base import shown
from reproducer.documents.lock import Lock, Measure
from reproducer.documents.sources import LocalSource
from reproducer.errors import InvalidDocumentError
from reproducer.identity.tables import table_of
from reproducer.measures.apart import names

Kind = Literal["text", "integer", "float", "boolean", "digest", "list", "unset", "unknown"]
Path: TypeAlias = tuple[str, ...]

# By which key the entries of a list are known; the entries of any other list are known by their place.
_IDENTITY = {
    "checkpoints": "role",
    "components": "name",
    "environments": "name",
    "files": "path",
    "lfs": "path",
    "measures": "id",
    "outputs": "filename",
    "submodules": "path",
}
_ORDERED = ("patches", "thresholds")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_OF_CHECKPOINT = 3  # checkpoints, a role, a key
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Factor(NamedTuple):
    """One typed value.

    Attributes:
        kind: the type; values of two kinds are never the same factor.
        value: the value; lower-case hex for a digest, None where unset, a tuple of factors for a list, and a digest
            over all facts of the lock for what is unknown.
    """

    kind: Kind
    value: "str | int | float | bool | tuple[Factor, ...] | None"

    def content(self) -> dict[str, Any]:
        """As plain data: `type` and `value`."""
        value = [each.content() for each in self.value] if isinstance(self.value, tuple) else self.value
        return {"type": self.kind, "value": value}

    def plain(self) -> Any:
        """The value as it stands in the lock."""
        return [each.plain() for each in self.value] if isinstance(self.value, tuple) else self.value


def flatten(lock: Lock) -> dict[Path, Factor]:
    """Every fact of a lock by its path, as requested; nothing is left out and nothing is judged.

    An argument goes by its canonical name, so that it is one fact however it is spelt.

    Raises:
        InvalidDocumentError: two entries have one name, or one argument is spelt in two ways, so a fact would be lost;
            a checkpoint or a source names no file, so nothing says what it is.
    """
    found: dict[Path, Factor] = {}
    canonical = _spellings(lock)
    for path, factor in _walk(lock, ()):
        if path[:2] == ("launch", "arguments"):
            path = (*path[:2], canonical[path[2]])  # noqa: PLW2901
        if path in found:
            raise InvalidDocumentError(f"{name_of(path)} stands twice")
        found[path] = factor
    for component in lock.components:
        if isinstance(component.source, LocalSource) and not component.source.files:
            raise InvalidDocumentError(
                "the source names no file, so nothing says what it is", where=f"components.{component.name}.source"
            )
    for checkpoint in lock.checkpoints:
        if checkpoint.files == ():
            raise InvalidDocumentError(
                "the checkpoint names no file, so nothing says what it is", where=f"checkpoints.{checkpoint.role}"
            )
    return found


def _spellings(lock: Lock) -> dict[str, str]:
    """The canonical name of every argument that the lock names."""
    canonical = table_of(lock.engine.kind).canonical
    spelt: dict[str, str] = {}
    for name in lock.launch.arguments:
        other = spelt.setdefault(canonical(name), name)
        if other != name:
            raise InvalidDocumentError(
                f"{shown(other)} and {shown(name)} are one argument, so which of them counts is open",
                where="launch.arguments",
                todo="keep one of them",
            )
    return {name: argument for argument, name in spelt.items()}


def name_of(path: Path) -> str:
    """The name of a path: parts joined by dots, a part that is no plain word quoted as in JSON; no two share one."""
    return ".".join(map(_part, path))


@lru_cache(maxsize=4096)
def _part(part: str) -> str:
    return part if _BARE.fullmatch(part) else json.dumps(part, ensure_ascii=False)


def is_unknown(path: Path, factor: Factor) -> bool:
    """Whether a fact says that nobody knows the value: `unknown` in the lock, `auto` for the engine to choose."""
    values = factor.value if isinstance(factor.value, tuple) else (factor,)
    words = {each.value.strip().casefold() for each in values if each.kind == "text" and isinstance(each.value, str)}
    requested = path[:2] in (("launch", "arguments"), ("launch", "environment"))
    if path[0] == "checkpoints":
        return len(path) == _OF_CHECKPOINT and path[2] == "files"
    if requested:
        return "auto" in words
    return bool(words & {"auto", "unknown"}) and path[0] in ("launch", "toolchain", "hardware")


def typed(value: Any, *, digest: bool = False) -> Factor:
    """One value of a document with its type.

    Args:
        value: a scalar, None, or a list of scalars.
        digest: whether text is the sha256 of something.

    Raises:
        InvalidDocumentError: a type that no lock carries.
    """
    match value:
        case None:
            return Factor("unset", None)
        case bool():
            return Factor("boolean", value)
        case int():
            return Factor("integer", value)
        case float():
            return Factor("float", value)
        case str():
            if digest and not _SHA256.fullmatch(value):
                raise InvalidDocumentError(f"{shown(value)} is no sha256 in lower-case hex")
            return Factor("digest" if digest else "text", value)
        case list() | tuple():
            return Factor("list", tuple(typed(each) for each in value))
    raise InvalidDocumentError(f"{shown(value)} has no place among factors")


def _walk(value: Any, path: Path, identity: str = "") -> Iterator[tuple[Path, Factor]]:
    """The facts below one value; `identity` is the key that already stands in the path."""
    if isinstance(value, BaseModel):
        for key in type(value).model_fields:
            inner = getattr(value, key)
            if (
                key != identity and inner is not None
            ):  # a key that is not there is no fact; a new one changes no old lock
                yield from _field(inner, (*path, key))
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _field(inner, (*path, key), of_table=True)
    else:
        for name, entry, key in _entries(value, path):
            yield from _walk(entry, (*path, name), key)


def _field(value: Any, path: Path, *, of_table: bool = False) -> Iterator[tuple[Path, Factor]]:
    several = isinstance(value, Sequence) and not isinstance(value, str)
    if isinstance(value, BaseModel | Mapping) or (several and any(isinstance(each, BaseModel) for each in value)):
        yield from _walk(value, path)
    elif of_table or value != () or path[-1] not in (*_IDENTITY, *_ORDERED):  # an empty list of tables says nothing
        yield path, typed(value, digest=not of_table and (path[-1] == "sha256" or path[-1].endswith("_sha256")))


def _entries(values: Sequence[BaseModel], path: Path) -> Iterator[tuple[str, BaseModel, str]]:
    """Each entry of a list with its name and the key that the name comes from."""
    key = _IDENTITY.get(path[-1], "")
    if path[-1] == "measures":
        asked = [each for each in values if isinstance(each, Measure)]
        yield from zip(names((each.id, each.parameters) for each in asked), asked, [key] * len(asked), strict=True)
        return
    for index, entry in enumerate(values):
        if key in type(entry).model_fields:
            yield str(getattr(entry, key)), entry, key
        else:
            yield str(index), entry, ""

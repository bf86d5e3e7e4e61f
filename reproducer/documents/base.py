"""What every document shares: frozen, strict, closed to unknown keys, with a format version.

A document is validated from JSON text or from plain parsed data; both go through pydantic's strict JSON mode, so a
number where text belongs is an error and never a conversion.
"""

import difflib
import json
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import PurePosixPath
from types import UnionType
from typing import Annotated, Any, NamedTuple, Self, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from reproducer.canonical import canonical_bytes, content_digest
from reproducer.documents.bounds import MOST_VALUES, refuse_deep, refuse_many
from reproducer.documents.mistaken import refuse_other
from reproducer.documents.words import told
from reproducer.errors import InvalidDocumentError

SLUG = r"^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$"
_LONGEST_SHOWN = 80
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_MOST_FAULTS = 20


def _relative_path(text: str) -> str:
    """A POSIX path that stays below the folder it is relative to."""
    path = PurePosixPath(text)
    if not text or text != str(path) or path.is_absolute() or ".." in path.parts or text == ".":
        msg = "must be a plain relative path that stays inside its folder"
        raise ValueError(msg)
    if "\\" in text or any(ord(character) < ord(" ") or ord(character) == 127 for character in text):  # noqa: PLR2004  DEL
        msg = "must not hold backslashes or control characters"
        raise ValueError(msg)
    return text


def _no_option(text: str) -> str:
    """Text that reaches a command line as an operand must not read as an option."""
    if text.startswith("-"):
        msg = "must not begin with '-'"
        raise ValueError(msg)
    return text


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Slug = Annotated[str, Field(pattern=SLUG)]
RelativePath = Annotated[str, Field(max_length=1024), AfterValidator(_relative_path), AfterValidator(_no_option)]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._+!-]{0,254}$")]
ProjectName = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", max_length=128)]
Version = Annotated[str, Field(pattern=r"^[0-9][A-Za-z0-9.!+_-]*$", max_length=128)]
MeasureId = Annotated[str, Field(pattern=r"^[a-z]+(\.[a-z]+)*/[1-9][0-9]*$")]
Size = Annotated[int, Field(ge=0, le=2**53 - 1)]
EnvironmentName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,254}$")]
Text = Annotated[str, Field(pattern=r"^[^\x00]*$", max_length=65536)]


class Fault(NamedTuple):
    """One thing that is wrong between the keys of a document: where, and what."""

    location: tuple[int | str, ...]
    message: str


class ContradictionError(ValueError):
    """Keys of a document that contradict each other; a validator raises it with all the faults it found."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("; ".join(f"{dotted(fault.location)}: {fault.message}" for fault in faults))
        self.faults = faults


class Part(BaseModel):
    """A piece of a document: frozen, strict, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class FileReference(Part):
    """A file that travels beside the document, by relative path and digest of its bytes."""

    path: RelativePath
    sha256: Sha256
    size: Size


class Document(Part):
    """A whole document: it begins with its format version."""

    @classmethod
    def from_data(cls, data: Any, *, where: str, source: str | None = None) -> Self:
        """Validate plain parsed data.

        Args:
            data: what a TOML or JSON parser returned.
            where: the file, for the error.
            source: the TOML text, so that errors can name a line.

        Raises:
            InvalidDocumentError: another kind of document, unknown key (with the nearest known one), missing key, wrong
                type, bad value.
        """
        refuse_other(cls.model_fields, data, where=where)
        try:
            text = json.dumps(data, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidDocumentError("holds a value that no document carries", where=where, why=str(error)) from error
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise InvalidDocumentError(_describe(cls, error, source), where=where) from error

    @classmethod
    def from_json(cls, text: str | bytes, *, where: str) -> Self:
        """Validate JSON text; raises as `from_data` does."""
        try:
            data = parse_json(text, where=where)
        except InvalidDocumentError:
            from reproducer.documents.toml import refuse_toml

            refuse_toml(cls, text, where=where)
            raise
        return cls.from_data(data, where=where)

    def content(self) -> dict[str, Any]:
        """The document as plain data, without the keys that are unset."""
        data: dict[str, Any] = json.loads(self.model_dump_json(exclude_none=True))
        return data

    def canonical(self) -> bytes:
        """The RFC 8785 bytes of the document."""
        return canonical_bytes(self.content())

    @cached_property
    def digest(self) -> str:
        """Hex sha256 of the RFC 8785 bytes; a document is frozen, so it is computed once."""
        return content_digest(self.content())

    def __copy__(self) -> Self:
        """A copy may be changed by `model_copy(update=...)`: it computes its own digest."""
        copied = super().__copy__()
        copied.__dict__.pop("digest", None)
        return copied

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """The same for a deep copy."""
        copied = super().__deepcopy__(memo)
        copied.__dict__.pop("digest", None)
        return copied


def parse_json(text: str | bytes, *, where: str, limit: int = 64 << 20, values: int = MOST_VALUES) -> Any:
    """Parse JSON from a stranger: bounded size and number of values, no duplicate keys, no NaN, no unbounded nesting.

    No half of a surrogate pair either, in a key or a value: it is no text, and no document could be written with it.

    Raises:
        InvalidDocumentError: any of those, or not JSON at all.
    """
    if len(text) > limit:
        raise InvalidDocumentError(f"is larger than {limit} bytes", where=where)
    refuse_many(text, where=where, most=values)

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in items:
            if key in found:
                raise InvalidDocumentError(f"key {shown(key)} stands twice in one object", where=where)
            found[key] = value
        return found

    def constant(name: str) -> None:
        raise InvalidDocumentError(f"{name} is not JSON", where=where)

    try:
        data = json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise InvalidDocumentError("is not JSON", where=where, why=str(error)) from error
    refuse_deep(data, where=where)
    if _may_hold_a_half(text):
        try:
            json.dumps(data, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise InvalidDocumentError("holds half of a character", where=where) from error
    return data


def _may_hold_a_half(text: str | bytes) -> bool:
    """Whether a look at every value is worth its time: UTF-8 in ASCII without such an escape has none."""
    if isinstance(text, str):
        return not text.isascii() or _HALF.search(text) is not None
    return not text.isascii() or b"\0" in text or _HALF.search(text.decode("ascii")) is not None


def shown(value: object) -> str:
    """A value from outside as it may stand in an error: quoted, escaped, short."""
    text = repr(value) if isinstance(value, str) else spelled(value)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def spelled(value: object) -> str:
    """A value as a document spells it, not as Python does: `true`, `null`, `["a"]`; what no document holds, as text."""
    return json.dumps(value, default=str)


def _describe(model: type[BaseModel], error: ValidationError, source: str | None) -> str:
    """The faults of a ValidationError as one sentence, a screenful at most; the branches of a union share one."""
    found: dict[str, list[str]] = {}
    for fault in error.errors(include_url=False):
        if len(found) >= _MOST_FAULTS:
            found.setdefault("and more", [f"{error.error_count()} in all"])
            break
        location = _keys(model, fault["loc"], unknown=fault["type"] == "extra_forbidden")
        cause = fault.get("ctx", {}).get("error")
        if isinstance(cause, ContradictionError):
            for each in cause.faults[:_MOST_FAULTS]:
                found.setdefault(_place((*location, *each.location), source), []).append(each.message)
            continue
        said = found.setdefault(_place(location, source), [])
        message = _message(model, fault["type"], told(fault), location, fault["input"])
        if message not in said:
            said.append(message)
    return "; ".join(f"{place}: {' or '.join(said)}" for place, said in found.items())


def _message(model: type[BaseModel], kind: str, text: str, location: tuple[int | str, ...], got: object) -> str:
    """What one fault of a ValidationError says, in our words."""
    if kind == "extra_forbidden":
        known = _known_keys(model, location[:-1])
        near = difflib.get_close_matches(str(location[-1]), known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(sorted(known)) or 'none'}"
        return f"unknown key, {hint}"
    if kind == "missing":
        return "missing"
    message = text.removeprefix("Value error, ")
    return f"{message[:1].lower()}{message[1:]}, got {shown(got)}"


def _place(location: tuple[int | str, ...], source: str | None) -> str:
    """Line, where it is known, and key."""
    line = line_of(source, location) if source is not None else None
    return f"line {line}, key {dotted(location)}" if line else f"key {dotted(location)}"


def _keys(model: type[BaseModel], location: tuple[int | str, ...], *, unknown: bool) -> tuple[int | str, ...]:
    """A location without the parts by which pydantic names the branches of unions."""
    kept: list[int | str] = []
    kinds: list[Any] = [model]
    for index, part in enumerate(location):
        if isinstance(part, int):
            kept.append(part)
            kinds = [inner for kind in kinds for inner in _kinds(get_args(kind))]
            continue
        models = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        fields = [kind.model_fields[part].annotation for kind in models if part in kind.model_fields]
        tables = [get_args(kind)[1] for kind in kinds if get_origin(kind) is dict]
        if fields or (tables and not models) or (unknown and index == len(location) - 1):
            kept.append(part)
            kinds = _kinds(fields or tables)
    return tuple(kept)


def _kinds(annotations: Iterable[Any]) -> list[Any]:
    """Plain types of annotations: without metadata, the branches of unions one by one."""
    found: list[Any] = []
    for annotation in annotations:
        if get_origin(annotation) is Annotated:
            found += _kinds(get_args(annotation)[:1])
        elif get_origin(annotation) in (Union, UnionType):
            found += _kinds(get_args(annotation))
        elif annotation is not Ellipsis:
            found.append(annotation)
    return found


def dotted(location: tuple[int | str, ...]) -> str:
    """A key as an error names it: `components[0].source.version`."""
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else shown(part)
            text += f".{name}" if text else name
    return text or "(top level)"


def _known_keys(model: type[BaseModel], location: tuple[int | str, ...]) -> set[str]:
    """The keys that are allowed in the table at a location."""
    kinds: list[Any] = [model]
    for part in location:
        if isinstance(part, int):
            kinds = [inner for kind in kinds for inner in _kinds(get_args(kind))]
        else:
            models = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
            fields = [kind.model_fields[part].annotation for kind in models if part in kind.model_fields]
            kinds = _kinds(fields)
    return {
        name for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel) for name in kind.model_fields
    }


def line_of(source: str, location: tuple[int | str, ...]) -> int | None:
    """The line (from 1) on which a key of TOML text stands; its table's line where the key is missing."""
    table: tuple[int | str, ...] = ()
    counts: dict[tuple[int | str, ...], int] = {}
    best: tuple[int, int] | None = None
    wanted = tuple(location)
    for number, line in enumerate(source.splitlines(), start=1):
        text = line.strip()
        if match := re.match(r"\[\[\s*([^\]]+?)\s*\]\]", text):
            name = _resolve(_split(match[1]), counts)
            counts[name] = counts.get(name, -1) + 1
            table = (*name, counts[name])
            here = table
        elif match := re.match(r"\[\s*([^\]\[]+?)\s*\]", text):
            table = _resolve(_split(match[1]), counts)
            here = table
        elif match := re.match(
            r"""((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""", text
        ):
            here = (*table, *_split(match[1]))
        else:
            continue
        if here == wanted[: len(here)] and (best is None or len(here) > best[0]):
            best = (len(here), number)
    return best[1] if best else None


def _split(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"' ") for part in re.findall(r'"[^"]*"|\'[^\']*\'|[^.\s"\']+', dotted))


def _resolve(name: tuple[str, ...], counts: dict[tuple[int | str, ...], int]) -> tuple[int | str, ...]:
    """A table name with the index of every array of tables it lies in."""
    path: tuple[int | str, ...] = ()
    for index, part in enumerate(name):
        path = (*path, part)
        if index < len(name) - 1 and path in counts:
            path = (*path, counts[path])
    return path

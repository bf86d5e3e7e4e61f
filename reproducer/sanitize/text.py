"""What must not leave the machine: home paths, host and user names, addresses, tokens.

Receipts are made so that they carry none, and name one another by digest, so that nothing can be taken out of one. This
is the check before anything is signed: it looks with the sanitizer's own finders, names where each thing stands, and
refuses.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from reproducer.errors import UnsafeInputError
from reproducer.sanitize.addresses import names_version, without_addresses
from reproducer.sanitize.emails import without_emails
from reproducer.sanitize.homes import without_homes
from reproducer.sanitize.kinds import Tally
from reproducer.sanitize.named import is_secret_name, is_secret_value, without_named
from reproducer.sanitize.names import Machine
from reproducer.sanitize.tokens import Blocks, without_tokens

__all__ = ["Leak", "Machine", "leaks", "page", "refuse_leaks"]

# fields in which four numbers with dots are a version and not an address
VERSIONS = frozenset({"version", "filename", "kernel", "installer", "python", "penny_version"})
# what the model wrote for fixed prompts and cases; a name that happens to be a word there says nothing about a machine
_GENERATED = frozenset({"output_text", "tool_text", "arguments_text"})
# these are no names that a field of a document could have
_PAGE = "\0page"
_SECRET = "\0secret"  # noqa: S105  the name of a field
# what a fact says stands under one of these, and what it is of under one of those
_VALUES = frozenset({"expected", "got", "before", "after", "value", "requested", "effective"})
_SUBJECTS = ("name", "id")
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+){3}")


class _Page(list[str]):
    """Lines of penny's own words and of receipts that are searched themselves."""


@dataclass(frozen=True)
class Leak:
    """One thing that must not leave: where it stands and what kind of thing it is; never the thing itself."""

    where: str
    what: str


def leaks(content: Any, *, where: str, machine: Machine) -> tuple[Leak, ...]:
    """Every leak in plain parsed data or text.

    Args:
        content: parsed JSON or text.
        where: the file, for the findings.
        machine: whose names are looked for.
    """
    return tuple(
        Leak(f"{where}: {key or 'text'}", what)
        for key, field, text in _texts(content, "", "")
        for what in _found(field, text, machine)
    )


def page(text: str) -> dict[str, list[str]]:
    """A page of text as the sanitizer takes it, line by line."""
    return {"page": _Page(text.splitlines())}


def refuse_leaks(contents: dict[str, Any], *, published: str = "") -> None:
    """Refuse contents that hold a leak; keys are the names of the files they will become.

    Args:
        contents: parsed JSON or text.
        published: what leaves the machine as it is, the lock: a name that stands there is a word, and hides nothing.

    Raises:
        UnsafeInputError: names every place and kind.
    """
    machine = Machine.here().unless_in(published)
    found = [leak for name in sorted(contents) for leak in leaks(contents[name], where=name, machine=machine)]
    if found:
        first = found[0]
        rest = "; ".join(f"{leak.where} holds {leak.what}" for leak in found[1:10])
        raise UnsafeInputError(
            f"holds {first.what}, which must not leave this machine",
            where=first.where,
            why=rest + ("; and more" if len(found) > 10 else "") if rest else "",  # noqa: PLR2004  a screenful
            todo="this is a fault of penny or of the lock's text; the bundle was not written",
        )


def _texts(content: Any, key: str, field: str) -> Iterator[tuple[str, str, str]]:
    """Every string with its dotted key and the name of the field it stands in; keys of objects are strings too."""
    if isinstance(content, str):
        yield key, field, content
    elif isinstance(content, dict):
        for name, value in content.items():
            inner = f"{key}.{name}" if key else str(name)
            yield inner, "", str(name)
            of = _subject(content) if name in _VALUES else str(name)
            if isinstance(value, str) and is_secret_name(of) and is_secret_value(of, value):
                yield inner, _SECRET, value
            yield from _texts(value, inner, of)
    elif isinstance(content, list | tuple):
        option = ""
        for index, value in enumerate(content):
            if isinstance(value, str):
                if is_secret_name(option) and not value.startswith("-") and is_secret_value(option, value):
                    yield f"{key}[{index}]", _SECRET, value
                option = value.lstrip("-") if value.startswith("-") else ""
            yield from _texts(value, f"{key}[{index}]", _PAGE if isinstance(content, _Page) else field)


def _subject(content: dict[str, Any]) -> str:
    """What an object says it is of: the last word of its name."""
    for each in _SUBJECTS:
        if isinstance(found := content.get(each), str):
            return found.rsplit(".", 1)[-1]
    return ""


@lru_cache(maxsize=4096)  # the keys of a document's objects come again and again
def _found(field: str, text: str, machine: Machine) -> tuple[str, ...]:
    return tuple(sorted(set(_kinds(field, text, machine))))


def _kinds(field: str, text: str, machine: Machine) -> Iterator[str]:
    if field == _SECRET:
        yield "a secret by its name"
        return
    lowered = text.lower()
    if _finds(lambda tally: without_homes(text, lowered, tally, machine.home)):
        yield "a home path"
    if _finds(lambda tally: without_tokens(Blocks().without_keys(text, tally), lowered, tally)):
        yield "a token"
    if _finds(lambda tally: without_named(text, lowered, tally)):
        yield "a token" if "://" in text else "a secret by its name"
    if field in _GENERATED or field == _PAGE:
        return
    if _finds(lambda tally: without_emails(text, tally)):
        yield "an e-mail address"
    if any(pattern.search(text) for pattern in machine.patterns):
        yield "a host or user name"
    version = _VERSION.fullmatch(text) is not None and names_version(field)
    if field not in VERSIONS and not version and _finds(lambda tally: without_addresses(text, tally)):
        yield "an address"


def _finds(finder: Callable[[Tally], str]) -> bool:
    """Whether a finder takes anything out."""
    tally = Tally()
    finder(tally)
    return bool(tally.counts)

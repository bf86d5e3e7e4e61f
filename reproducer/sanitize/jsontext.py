"""JSON documents, sanitised in place: layout, order and the spelling of every number stay as they are.

What stands under a field is judged by the field: secrets, texts of clients and models, request ids, names. In penny's
own documents texts stay, because they are those of fixed prompts and cases, and ids of requests do not occur.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from reproducer.sanitize.addresses import names_version
from reproducer.sanitize.identifiers import is_identifier_name, pseudonym
from reproducer.sanitize.kinds import Kind, Tally, is_placeholder
from reproducer.sanitize.named import is_secret_name, is_secret_value
from reproducer.sanitize.names import is_name, is_name_field
from reproducer.sanitize.requests import TEXT_FIELDS, is_kept_text
from reproducer.sanitize.scrubbing import Run, Scrubber
from reproducer.sanitize.text import VERSIONS

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++')
_NUMERIC = re.compile(r"[-0-9.,eE+\s\[\]]*+")
_BRACKET = re.compile(r"[\[\]]")
_NUMERIC_TEXTS = re.compile(r"(?:.*_)?ids|(?:.*_)?embeds?|(?:.*_)?embeddings?")
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+){3}")
_OWN = re.compile(r"penny-[a-z]+/[0-9]+")


class Spelt(str):
    """A number of a JSON document as it is spelt."""

    __slots__ = ()


def parsed(text: str) -> Any:
    """Parsed JSON with its numbers as they are spelt; None where the text is no JSON, or `null`."""
    try:
        return json.loads(text.lstrip("\ufeff"), parse_int=Spelt, parse_float=Spelt)
    except (ValueError, RecursionError):
        return None


def is_own(data: object) -> bool:
    """Whether parsed JSON is one of penny's documents."""
    name = data.get("format") if isinstance(data, dict) else None
    return isinstance(name, str) and _OWN.fullmatch(name) is not None


def holds_text(field: str) -> bool:
    """Whether a field of another program's document holds what a client or a model wrote."""
    return field.lower() in TEXT_FIELDS


def hides_number(field: str, *, own: bool) -> bool:
    """Whether numbers under a field are a text or a secret, and no numbers that a summary could be made of."""
    lowered = field.lower()
    if not own and holds_text(lowered) and _NUMERIC_TEXTS.fullmatch(lowered):
        return True
    return is_secret_name(field) and not lowered.endswith("token")


@dataclass
class _Level:
    """One object or array that is open.

    Attributes:
        field: the name that the values here go by: the key's in an object, the array's own in an array.
        texts: whether a field further out holds text.
        before: the string that stands before in an array.
        owner: the name that an object goes by.
    """

    is_object: bool
    field: str
    texts: bool
    awaits_key: bool
    before: str = ""
    owner: str = ""

    def inner(self, bracket: str, *, own: bool) -> "_Level":
        """The object or array that a bracket opens here."""
        is_object = bracket == "{"
        texts = self.texts or (not own and holds_text(self.field))
        return _Level(is_object, "" if is_object else self.field, texts, awaits_key=is_object, owner=self.field)


class JsonText:
    """Sanitises JSON documents of one file."""

    def __init__(self, run: Run, tally: Tally) -> None:
        self._run = run
        self._tally = tally
        self._scrubber = Scrubber(run, tally)

    def clean(self, text: str, *, own: bool) -> str:
        """Valid JSON text without what must stay.

        Args:
            text: JSON that a parser has accepted.
            own: whether it is a document of penny's.
        """
        kept: list[str] = []
        at = 0
        for start, end, replacement in self._replaced(text, own=own):
            kept += [text[at:start], replacement]
            at = end
        return "".join(kept) + text[at:]

    def _replaced(self, text: str, *, own: bool) -> Iterator[tuple[int, int, str]]:
        """Every span that is something else afterwards."""
        levels = [_Level(is_object=False, field="", texts=False, awaits_key=False)]
        at = 0
        while (token := _TOKEN.search(text, at)) is not None:
            at = token.end()
            level = levels[-1]
            first = token[0][0]
            if first in "{[":
                end = 0 if own or first == "{" else _text_of_numbers(text, token.start(), level)
                if end:
                    yield token.start(), end, f'["{self._tally.take("text")}"]'
                    at = end
                else:
                    levels.append(level.inner(first, own=own))
            elif first in "}]":
                levels.pop()
            elif first in ",:":
                level.awaits_key = level.is_object and first == ","
            elif first == '"':
                value = json.loads(token[0])
                cleaned = self._string(value, level, own=own)
                if level.awaits_key:
                    level.field = value
                level.before = value
                if cleaned != value:
                    yield token.start(), token.end(), json.dumps(cleaned)
            elif first in "-0123456789" and hides_number(level.field, own=own):
                yield token.start(), token.end(), f'"{self._tally.take(_hidden_kind(level.field))}"'

    def _string(self, value: str, level: _Level, *, own: bool) -> str:  # noqa: PLR0911  a list of cases
        """What stands in the place of one string."""
        if not value or is_placeholder(value):
            return value
        if level.awaits_key:
            return self._scrubber.clean(value)
        field = level.field
        if is_secret_name(field) and is_secret_value(field, value):
            return self._tally.take("secret")
        option = level.before.lstrip("-") if level.before.startswith("-") and not level.is_object else ""
        if option and not value.startswith("-") and is_secret_name(option) and is_secret_value(option, value):
            return self._tally.take("secret")
        if not own:
            if is_identifier_name(field) or (field == "id" and level.owner == "meta_info"):
                return pseudonym(value, self._run.pseudonyms, self._tally)
            if (level.texts or holds_text(field)) and not is_kept_text(field, value):
                return self._tally.take("text")
        if is_name_field(field) and is_name(value):
            return self._tally.take("name")
        if (field in VERSIONS or names_version(field)) and _VERSION.fullmatch(value):
            return value
        return self._scrubber.clean(value)


def _text_of_numbers(text: str, start: int, level: _Level) -> int:
    """Where an array of numbers ends that is a text, as of token ids; 0 where the array is something else."""
    if not (level.texts or holds_text(level.field)) or not _NUMERIC_TEXTS.fullmatch(level.field.lower()):
        return 0
    stop = _NUMERIC.match(text, start)
    depth = 0
    for mark in _BRACKET.finditer(text, start, stop.end() if stop else start):
        depth += 1 if mark[0] == "[" else -1
        if not depth:
            return mark.end() if any(each.isdigit() for each in text[start : mark.end()]) else 0
    return 0


def _hidden_kind(field: str) -> Kind:
    return "secret" if is_secret_name(field) else "text"


def strings(data: object, found: Callable[[str, str], None], field: str = "") -> None:
    """Hand every string of parsed JSON to a function with the field it stands under."""
    pending: list[tuple[str, object]] = [(field, data)]
    while pending:
        name, value = pending.pop()
        if isinstance(value, str) and not isinstance(value, Spelt):
            found(name, value)
        elif isinstance(value, dict):
            pending += [(str(key), inner) for key, inner in value.items()]
            for key in value:
                found("", str(key))
        elif isinstance(value, list):
            pending += [(name, inner) for inner in value]

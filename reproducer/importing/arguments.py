"""The words of an engine's command line as names and values, by the rules of its parser.

Where a list of what the engine takes is known (`penny-arguments/1`) it decides; elsewhere the tables of all releases
that penny knows say which names there are, and a word that begins with a dash begins the next argument.
"""

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from reproducer.documents.lock import ArgumentValue
from reproducer.importing.command import EngineName
from reproducer.importing.found import Notes

if TYPE_CHECKING:
    from reproducer.documents.arguments import Argument, ArgumentSchema

_NAME = re.compile(r"^[a-z][a-z0-9-]*$")
_NUMBER = re.compile(r"^-\d+$|^-\d*\.\d+$")
_INTEGER = re.compile(r"^(?:0|-?[1-9]\d{0,17})$")
# Names that take no value in every release that penny knows, but for the ones listed after them.
_SWITCHES = ("enable-", "disable-", "no-", "trust-", "skip-", "use-")
_NO_SWITCHES = frozenset({"disable-access-log-for-endpoints"})
# vLLM's short options; its parser spells them with one dash.
_SHORT: Mapping[str, str] = {
    "-tp": "tensor-parallel-size",
    "-pp": "pipeline-parallel-size",
    "-dp": "data-parallel-size",
    "-dcp": "decode-context-parallel-size",
    "-pcp": "prefill-context-parallel-size",
    "-dpn": "data-parallel-rank",
    "-dpr": "data-parallel-start-rank",
    "-dpl": "data-parallel-size-local",
    "-dpa": "data-parallel-address",
    "-dpp": "data-parallel-rpc-port",
    "-dpb": "data-parallel-backend",
    "-dph": "data-parallel-hybrid-lb",
    "-dpe": "data-parallel-external-lb",
    "-ep": "enable-expert-parallel",
    "-asc": "api-server-count",
    "-cc": "compilation-config",
    "-ac": "attention-config",
    "-sc": "speculative-config",
    "-q": "quantization",
    "-n": "nnodes",
    "-r": "node-rank",
}
_NEAREST = 3


@dataclass(frozen=True)
class Names:
    """What is known of an engine's arguments.

    Attributes:
        engine: which one.
        schema: what one release of it takes; None where none was given.
    """

    engine: EngineName
    schema: "ArgumentSchema | None" = None

    @cached_property
    def _all(self) -> frozenset[str]:
        from reproducer.identity.tables import table_of

        if self.schema is not None:
            return frozenset(name for each in self.schema.arguments for name in (each.name, *each.aliases))
        table = table_of(self.engine)
        return frozenset(table.arguments) | frozenset(table.aliases)

    def argument(self, name: str) -> "Argument | None":
        """What the list says of an argument."""
        return None if self.schema is None else self.schema.argument(name)

    def knows(self, name: str) -> bool:
        """Whether there is such an argument, or the switched-off form of one."""
        return name in self._all or (name.startswith("no-") and name[3:] in self._all)

    def canonical(self, name: str) -> str:
        """Its first name by the list; without a list the name as it was given."""
        argument = self.argument(name)
        return argument.name if argument is not None else name

    def nearest(self, name: str) -> tuple[str, ...]:
        """The known names most like one that is not."""
        return tuple(difflib.get_close_matches(name, sorted(self._all), n=_NEAREST))

    def is_switch(self, name: str) -> bool:
        """Whether it takes no value."""
        argument = self.argument(name)
        if argument is not None:
            return argument.kind in ("flag", "toggle")
        return name.startswith(_SWITCHES) and name not in _NO_SWITCHES

    def takes_one(self, name: str) -> bool:
        """Whether the list says that it takes one value and no more."""
        argument = self.argument(name)
        return argument is not None and not argument.several and not self.is_switch(name)


@dataclass
class Given:
    """A command line that was taken apart.

    Attributes:
        values: the words of each argument by name, in order.
        alone: words that belong to no argument: the model, where it stands so.
        dotted: names of arguments inside a table, which have no place of their own.
    """

    values: dict[str, list[str]] = field(default_factory=dict)
    alone: list[str] = field(default_factory=list)


def split_arguments(names: Names, words: Sequence[str], notes: Notes) -> Given:
    """Take a command line apart; what has no place is noted."""
    given = Given()
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        name, inline = _named(names.engine, word)
        if name is None:
            given.alone.append(word)
            continue
        values = [inline] if inline is not None else []
        most = 0 if inline is not None or names.is_switch(name) else 1 if names.takes_one(name) else len(words)
        while at < len(words) and len(values) < most and not _begins(names.engine, words[at]):
            values.append(words[at])
            at += 1
        if not _NAME.match(name):
            notes.add(
                " ".join([word, *values]), "one key of an argument that is a table: write the whole table as JSON"
            )
            continue
        key = names.canonical(name)
        if key in given.values and given.values[key] != values:
            notes.add(f"--{key} {' '.join(given.values.pop(key))}", "it is given again, and the engine takes the last")
        given.values[key] = values
    return given


def _named(engine: EngineName, word: str) -> tuple[str | None, str | None]:
    """The name that a word gives and the value behind its sign; (None, None) for a value."""
    if word.startswith("--") and len(word) > 2:  # noqa: PLR2004  more than the dashes
        head, equals, value = word.partition("=")
        return head[2:].replace("_", "-"), value if equals else None
    if engine == "vllm" and word.startswith("-"):
        head, equals, value = word.partition("=")
        if head in _SHORT:
            return _SHORT[head], value if equals else None
        if match := re.fullmatch(r"-O(\d)", word):
            return "optimization-level", match[1]
    return None, None


def _begins(engine: EngineName, word: str) -> bool:
    """Whether a word begins another argument: a dash, and no negative number."""
    if not word.startswith("-") or word == "-" or _NUMBER.match(word):
        return False
    return word.startswith("--") or _named(engine, word)[0] is not None or word[1:2].isalpha()


def value_of(names: Names, name: str, words: Sequence[str]) -> ArgumentValue:
    """The value as a manifest spells it: a number where its text is exactly that, else the text as it is."""
    if not words:
        return True
    if len(words) > 1:
        return tuple(words)
    argument, text = names.argument(name), words[0]
    if argument is not None and argument.kind not in ("integer", "float"):
        return text
    if _INTEGER.match(text):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) and repr(number) == text else text

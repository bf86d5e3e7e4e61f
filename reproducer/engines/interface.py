"""What every engine adapter offers. An adapter runs nothing: it turns facts into facts."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from reproducer.documents.base import shown
from reproducer.documents.lock import ArgumentValue, EngineKind, Launch, Scalar
from reproducer.engines.refused import REFUSED
from reproducer.errors import InvalidDocumentError

_OURS = ("checkpoint.", "component.", "file.")
Speech = Literal["sglang", "openai"]
Need = Literal["cached tokens", "storage tokens", "persistent tier", "other page size", "speculation"]
Source = Literal["server_info", "start-up log", "checkpoint config", "process"]


class Observed(NamedTuple):
    """One effective value as the live server showed it, and where it was read."""

    value: Scalar
    source: Source


class StoreFolder(NamedTuple):
    """One folder in which an engine keeps pages that outlive it, as a launch names it.

    Attributes:
        store: what keeps them, for people.
        where: the key of the lock that names the folder.
        folder: the text of that key; None where the launch leaves it to the engine's default.
        variable: the variable that can name it; None where it must stand in an argument.
        is_file: whether the text is the beginning of a file's name, so that the file lies beside what it names.
        breaks: characters that the engine would not read as part of the path.
    """

    store: str
    where: str
    folder: str | None
    variable: str | None = None
    is_file: bool = False
    breaks: str = ""


class Engine(ABC):
    """One kind of server.

    Attributes:
        kind: the word by which a lock names it.
        info_endpoint: where the server tells what it resolved its arguments to.
        more_endpoints: where it may tell more; one that is not there says nothing. Their answers stand in the facts
            under their path.
        info_hint: what the launch needs so that the server tells; empty where it always does.
        ready_endpoint: what answers 200 once the server is ready, where the manifest names nothing else.
        speech: how completions of token ids are asked for.
        machine_resolved: effective values that shape pages and that the engine chooses by the machine where nobody
            names them.
        alterable: the flag that sets an effective value, of those in which a measure may start another server.
    """

    kind: EngineKind
    info_endpoint: str
    more_endpoints: tuple[str, ...] = ()
    info_hint: str = ""
    ready_endpoint: str
    speech: Speech
    machine_resolved: frozenset[str]
    alterable: Mapping[str, str] = MappingProxyType({})

    def argument_list(self, launch: Launch, *, values: Mapping[str, str]) -> list[str]:
        """The arguments of the server, sorted by flag, placeholders filled from `values`.

        True is a bare flag, False leaves the flag out, a list gives several values.

        Raises:
            InvalidDocumentError: a flag that no lock may carry, a value that reads as an option, or a placeholder that
                nothing fills.
        """
        refused = REFUSED[self.kind]
        arguments: list[str] = []
        for flag, value in sorted(launch.arguments.items()):
            where = f"launch.arguments.{flag}"
            if flag in refused:
                raise InvalidDocumentError(f"--{flag} may not stand in a lock", where=where, why=refused[flag])
            if value is False:
                continue
            arguments.append(f"--{flag}")
            if value is True:
                continue
            texts = [str(each) for each in value] if isinstance(value, tuple) else [str(value)]
            if any(_reads_as_option(text) for text in texts):
                raise InvalidDocumentError(f"{shown(value)} reads as an option", where=where)
            arguments.extend(filled(text, values, where=where) for text in texts)
        return arguments

    def environment(self, launch: Launch, *, values: Mapping[str, str]) -> dict[str, str]:
        """The lock's environment with its placeholders filled; raises as `argument_list` does."""
        return {
            name: filled(text, values, where=f"launch.environment.{name}")
            for name, text in sorted(launch.environment.items())
        }

    @abstractmethod
    def expected_effective(
        self,
        arguments: Mapping[str, ArgumentValue],
        checkpoint_config: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
    ) -> dict[str, Scalar]:
        """What the engine must resolve these arguments to for that checkpoint; what cannot be known is left out."""

    @abstractmethod
    def observed_effective(
        self,
        server_info: Mapping[str, Any],
        log_text: str,
        checkpoint_config: Mapping[str, Any],
        values: Mapping[str, str] | None = None,
    ) -> dict[str, Observed]:
        """What the live server resolved them to; machine paths in `values` are replaced by their placeholders."""

    @abstractmethod
    def persistent_store(self, launch: Launch) -> tuple[StoreFolder, ...]:
        """Where the server keeps pages that outlive it; one whose place cannot be known is an InvalidDocumentError."""

    def wants_direct_io(self, launch: Launch) -> bool:
        """Whether the server opens its persistent pages with O_DIRECT."""
        del launch
        return False

    def wants_io_uring(self, launch: Launch) -> bool:
        """Whether the server moves its persistent pages through io_uring."""
        del launch
        return False

    def lacks(self, need: Need, launch: Launch) -> str:
        """Why the server of a launch does not give what a measure needs; empty where nothing is known to be missing."""
        if need == "persistent tier" and not self.persistent_store(launch):
            return "the server of this launch keeps no pages beyond its end"
        if need == "other page size" and "page_size" not in self.alterable:
            return f"penny knows no argument of {self.kind} for another page size"
        if need == "speculation":
            return f"penny knows no count of drafted tokens that {self.kind} tells"
        return ""

    @abstractmethod
    def phase(self, line: str) -> str | None:
        """What a line of the start-up log says about how far the start is, in a few words."""

    @abstractmethod
    def is_noise(self, line: str) -> bool:
        """Whether a log line says nothing about why a start failed."""


def _reads_as_option(text: str) -> bool:
    """Whether the engine's parser would take a value for a flag; a negative number is a value."""
    return text.startswith("-") and re.fullmatch(r"-\d+(\.\d+)?", text) is None


def filled(text: str, values: Mapping[str, str], *, where: str) -> str:
    """`text` with every `{placeholder}` of `values` replaced, once and from left to right.

    Braces around anything else stay: JSON is a legitimate argument. A placeholder that penny knows but that has no
    value here is an error.

    Raises:
        InvalidDocumentError: a placeholder of a checkpoint that the lock does not have.
    """
    parts = []
    rest = text
    while rest:
        before, brace, after = rest.partition("{")
        parts.append(before)
        if not brace:
            break
        name, closing, remainder = after.partition("}")
        if closing and name in values:
            parts.append(values[name])
            rest = remainder
            continue
        if closing and (name.startswith(_OURS) or name == "namespace"):
            raise InvalidDocumentError(
                f"nothing fills the placeholder {{{name}}}", where=where, why=f"known: {', '.join(sorted(values))}"
            )
        parts.append(brace)
        rest = after
    return "".join(parts)


def replaced(text: str, values: Mapping[str, str]) -> str:
    """`text` with every machine path of `values` replaced by its placeholder, longest path first."""
    for name, value in sorted(values.items(), key=lambda item: -len(item[1])):
        if value:
            text = text.replace(value, f"{{{name}}}")
    return text


def same(expected: Scalar, got: Scalar | None) -> bool:
    """Whether two effective values are the same: numbers by value, everything else by type and value."""
    numbers = (int, float)
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    if isinstance(expected, numbers) and isinstance(got, numbers):
        return expected == got
    return type(expected) is type(got) and expected == got

"""What a reader found of a launch, and what of it has no place in a manifest."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reproducer.errors import UsageError


@dataclass(frozen=True)
class Unmapped:
    """Something of a launch that has no place in a manifest.

    Attributes:
        text: what stands there, without secrets.
        where: the file with its line, the key or the argument.
        why: the reason, and what to do about it where something can be done.
    """

    text: str
    where: str
    why: str


@dataclass(frozen=True)
class Found:
    """One launch as it was read.

    Attributes:
        argv: the words of the command, expanded.
        environment: the variables that the launch sets; nothing of the person's own.
        folder: where relative paths start.
        where: what it was read from, for people.
        unmapped: what the reader itself could not place.
        ran: whether a script was run to find it.
        made: the text of files that the script made for it, by path.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    where: str
    unmapped: tuple[Unmapped, ...] = ()
    ran: bool = False
    made: Mapping[str, str] = field(default_factory=dict)


class NothingFoundError(UsageError):
    """There is no launch of an engine in what was read."""


@dataclass
class Notes:
    """Where a reader writes down what it cannot place, once each."""

    where: str
    found: list[Unmapped] = field(default_factory=list)

    def add(self, text: str, why: str, *, where: str = "") -> None:
        """One thing, at the reader's own place or at a closer one."""
        one = Unmapped(text, where or self.where, why)
        if one not in self.found:
            self.found.append(one)

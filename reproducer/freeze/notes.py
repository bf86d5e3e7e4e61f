"""What a person asks to be frozen, and what could not be known or has no place, noted as it is met."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reproducer.documents.environment import Unknown
from reproducer.freeze.found import Found
from reproducer.progress import Reporter


@dataclass(frozen=True)
class Asked:
    """What a person asks to be frozen.

    Attributes:
        python: the interpreter, where the process does not tell it.
        log: the start-up log, where it is no file that the process writes to.
        folders: of checkpoints, by role, where the process does not tell them.
        name: of the lock; None for one made of checkpoint and engine.
    """

    host: str
    port: int | None
    secure: bool = False
    python: Path | None = None
    log: Path | None = None
    folders: Mapping[str, Path] = field(default_factory=dict)
    name: str | None = None


@dataclass
class Notes:
    """One freeze: the process, what was asked, and two lists that grow.

    Attributes:
        unknown: what could not be known, and why.
        left_out: what was set and is not in the lock, and why.
    """

    found: Found
    asked: Asked
    reporter: Reporter
    unknown: list[Unknown] = field(default_factory=list)
    left_out: list[Unknown] = field(default_factory=list)

    def miss(self, key: str, why: str) -> None:
        """Something cannot be known."""
        self.unknown.append(Unknown(key=key, why=why))

    def leave(self, key: str, why: str) -> None:
        """Something has no place in a lock."""
        self.left_out.append(Unknown(key=key, why=why))

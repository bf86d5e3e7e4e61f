"""Lines that carry a report and cannot be believed: counted by kind, and the first of each kind kept to be shown."""

from dataclasses import dataclass, field
from typing import get_args

from reproducer.documents.traces import Damage, DamageKind, Place

MOST_EXAMPLES = 3
_LONGEST_EXCERPT = 200


@dataclass(frozen=True)
class Excerpt:
    """How a line begins; it may hold anything, so it is shown escaped and never leaves the machine in a document."""

    kind: DamageKind
    source: int
    line: int
    begins: bytes


@dataclass
class Tally:
    """How many lines are damaged, by kind; `excerpts` are the first of each."""

    counts: dict[DamageKind, int] = field(default_factory=dict)
    excerpts: list[Excerpt] = field(default_factory=list)

    def add(self, kind: DamageKind, source: int, line: int, text: bytes) -> None:
        """Count one line."""
        count = self.counts.get(kind, 0)
        self.counts[kind] = count + 1
        if count < MOST_EXAMPLES:
            self.excerpts.append(Excerpt(kind, source, line, text[:_LONGEST_EXCERPT]))

    def told(self) -> tuple[Damage, ...]:
        """What there is of each kind, as it stands in a document."""
        return tuple(
            Damage(
                kind=kind,
                lines=self.counts[kind],
                examples=tuple(
                    Place(source=each.source, line=each.line) for each in self.excerpts if each.kind == kind
                ),
            )
            for kind in get_args(DamageKind)
            if kind in self.counts
        )

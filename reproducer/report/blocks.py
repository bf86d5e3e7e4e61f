"""What a report is made of, before anybody decides whether it is read as HTML, as Markdown or in a terminal.

All text in it may come from outside. It is held as it is, and whoever renders it escapes it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

Provenance = Literal["receipt", "imported", "claim"]
WORDS: dict[Provenance, tuple[str, str]] = {
    "receipt": ("Receipt", "measured here, raw samples kept, recomputed"),
    "imported": ("Imported", "measured by another harness, its file kept, nothing vouched for"),
    "claim": ("Claim", "stated by its publisher, measured by nobody here"),
}


@dataclass(frozen=True)
class Prose:
    """A paragraph."""

    text: str
    block: ClassVar[str] = "prose"


@dataclass(frozen=True)
class Listing:
    """Items without an order."""

    items: tuple[str, ...]
    block: ClassVar[str] = "listing"


@dataclass(frozen=True)
class Facts:
    """Terms with what they are; what is a digest, a name or a path is set in one width."""

    rows: tuple[tuple[str, str], ...]
    verbatim: frozenset[str] = frozenset()
    block: ClassVar[str] = "facts"


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        numeric: columns that hold numbers.
        verbatim: columns that hold names, digests or values as they are.
        folded: whether it is shown only to who asks for it; a page on paper shows it.
        grouped: whether rows whose first cell is the same stand under it as a heading.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[int] = frozenset()
    verbatim: frozenset[int] = frozenset()
    folded: bool = False
    grouped: bool = False
    block: ClassVar[str] = "table"


@dataclass(frozen=True)
class Drawing:
    """The inside of an SVG that penny drew itself; it holds no text from outside."""

    width: float
    height: float
    markup: str


@dataclass(frozen=True)
class Figure:
    """A figure with the same numbers as a table.

    Attributes:
        draw: draws it once for a wide page and once for a phone; who reads tables alone waits for no drawing.
    """

    name: str
    title: str
    description: str
    draw: Callable[[], tuple[Drawing, Drawing]]
    table: Table
    block: ClassVar[str] = "figure"


@dataclass(frozen=True)
class Commands:
    """What to type."""

    lead: str
    text: str
    block: ClassVar[str] = "commands"


Block: TypeAlias = Prose | Listing | Facts | Table | Figure | Commands


@dataclass(frozen=True)
class Section:
    """A part of a report with a heading; whose numbers stand in it is said with it."""

    name: str
    title: str
    blocks: tuple[Block, ...]
    provenance: Provenance | None = None


@dataclass(frozen=True)
class Content:
    """A whole report.

    Attributes:
        title: what was measured.
        word: the verdict.
        sentence: the verdict as a sentence.
        facts: what was measured on what, by whom it was signed, and the digests.
    """

    title: str
    word: Literal["passed", "failed", "unknown"]
    sentence: str
    facts: Facts
    sections: tuple[Section, ...]

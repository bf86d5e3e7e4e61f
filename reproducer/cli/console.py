"""A console on which nothing from outside steers the terminal."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment


class PlainConsole(Console):
    """A console that escapes whatever is not printable, wherever it stands; colours and lines are its own."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Segments of text without control characters, turned directions or lone surrogates."""
        for segment in super().render(renderable, options):
            text = segment.text
            yield segment if segment.control or _plain(text) else segment._replace(text=_escaped(text))


def _plain(text: str) -> bool:
    return text.isprintable() or text == "\n"


def _escaped(text: str) -> str:
    return "".join(
        each if each.isprintable() or each == "\n" else each.encode("unicode_escape").decode() for each in text
    )

"""A console on which nothing from outside steers the terminal."""

from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment, Segments
from rich.table import Table

_ANY_WIDTH = 1 << 30
_ANY_HEIGHT = 25


class PlainConsole(Console):
    """A console that escapes whatever is not printable, wherever it stands; colours and lines are its own.

    Args:
        endless: whether lines are as long as what stands in them, as in a file or a pipe: nothing is folded or cut.
        settings: those of the console of rich.
    """

    def __init__(self, *, endless: bool = False, **settings: Any) -> None:
        if endless:  # whatever COLUMNS and TERM say: they are of another terminal
            settings |= {"width": _ANY_WIDTH, "height": _ANY_HEIGHT}
        super().__init__(highlight=False, markup=False, emoji=False, **settings)
        self._endless = endless

    def print(self, *objects: Any, **how: Any) -> None:
        """Print, on lines that are long enough where they are endless."""
        if not self._endless or not objects:
            super().print(*objects, **how)
            return
        all_of_it = Group(*objects)
        options = self.options.update(no_wrap=True, overflow="ignore")
        widest = max(self.measure(all_of_it, options=options).maximum, 1)
        segments = self.render(all_of_it, options.update(width=widest))
        super().print(Segments(_without_padding(segments)), soft_wrap=True, end="")

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Segments of text without control characters, turned directions or lone surrogates.

        A column that is too narrow is folded: an ellipsis would stand for what nobody sees.
        """
        if isinstance(renderable, Table):
            for column in renderable.columns:
                if column.overflow == "ellipsis" and not column.no_wrap:
                    column.overflow = "fold"
        for segment in super().render(renderable, options):
            text = segment.text
            yield segment if segment.control or _plain(text) else segment._replace(text=_escaped(text))


def _without_padding(segments: Iterable[Segment]) -> Iterator[Segment]:
    """The lines without the spaces at their ends: in a table each would be as long as the longest."""
    for line in Segment.split_lines(segments):
        while line and not line[-1].control and not line[-1].text.rstrip(" "):
            line.pop()
        if line and not line[-1].control:
            line[-1] = line[-1]._replace(text=line[-1].text.rstrip(" "))
        yield from line
        yield Segment.line()


def _plain(text: str) -> bool:
    return text.isprintable() or text == "\n"


def _escaped(text: str) -> str:
    return "".join(
        each if each.isprintable() or each == "\n" else each.encode("unicode_escape").decode() for each in text
    )

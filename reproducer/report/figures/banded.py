"""Requests as dots over their context, and what each band of context comes to as a level; sorts stand apart."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from reproducer.report.blocks import Drawing
from reproducer.report.figures.clouds import MANY, MARKS, Mark, across
from reproducer.report.figures.drawing import GRID, draw, place

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEAD, _FOOT, _LEFT, _RIGHT, _PLOT, _LINE = 44.0, 50.0, 58.0, 16.0, 200.0, 18.0
_TICKS = 4


@dataclass(frozen=True)
class Level:
    """What a band comes to: the median of its requests between the least and the most.

    Attributes:
        high: where the band ends; None where it has no end.
    """

    low: float
    high: float | None
    middle: float
    least: float
    most: float


@dataclass(frozen=True)
class Sort:
    """Requests of one sort, such as those that overlapped no other.

    Attributes:
        points: context and rate of each; empty where only the bands are known, and these are drawn from least to most.
    """

    label: str
    mark: Mark
    points: tuple[tuple[float, float], ...]
    levels: tuple[Level, ...]


@lru_cache(maxsize=64)
def banded(name: str, axes: tuple[str, str, str], sorts: tuple[Sort, ...]) -> tuple[Drawing, Drawing]:
    """One plot.

    Args:
        name: keeps its ids apart from those of other figures.
        axes: title, horizontal axis, vertical axis.
        sorts: one line of the legend for each.
    """
    head = _HEAD + _LINE * len(sorts)
    return draw(name, lambda figure, width: _paint(figure, width, head, axes, sorts), lambda _: head + _PLOT + _FOOT)


def _paint(figure: "Figure", width: float, head: float, named: tuple[str, str, str], sorts: tuple[Sort, ...]) -> None:
    from matplotlib.ticker import MaxNLocator

    axes = place(figure, left=_LEFT, top=head, width=width - _LEFT - _RIGHT, height=_PLOT)
    contexts = sorted({x for sort in sorts for x in _contexts(sort)})
    for sort in sorts:
        _sort(axes, sort, contexts[0], contexts[-1])
    across(axes, contexts)
    low, high = axes.get_xlim()
    edges = {each.low for sort in sorts for each in sort.levels}
    for edge in sorted(edge for edge in edges if low < edge < high):
        axes.axvline(edge, color=GRID, linewidth=0.8, linestyle=":", zorder=0.5)
    axes.grid(visible=True, axis="y")
    axes.grid(visible=False, axis="x")
    top = max(chain.from_iterable(_rates(sort) for sort in sorts))
    axes.set_ylim(0, top * 1.06 or 1)
    axes.yaxis.set_major_locator(MaxNLocator(_TICKS, steps=[1, 2, 2.5, 5, 10]))
    title, x, y = named
    axes.set_xlabel(x)
    axes.set_title(f"{title}, {y}", pad=14 + _LINE * len(sorts), x=0, fontweight="bold")
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.01, 1.0),
        ncols=1,
        borderaxespad=0.3,
        handletextpad=0.4,
        labelspacing=0.35,
        handlelength=1.2,
        borderpad=0.2,
    )


def _contexts(sort: Sort) -> list[float]:
    """Where its dots are; where its bands are, as far as they have ends, if there is no dot."""
    if sort.points:
        return [x for x, _ in sort.points]
    return [edge for each in sort.levels for edge in _ends(each)]


def _ends(level: Level) -> tuple[float, float]:
    low = max(level.low, 1.0)
    return low, low * 2 if level.high is None else max(level.high, low)


def _rates(sort: Sort) -> list[float]:
    return [y for _, y in sort.points] + [each.most for each in sort.levels]


def _sort(axes: "Axes", sort: Sort, low: float, high: float) -> None:
    """Dots, and over them a line at the median of each band as wide as what is drawn of it."""
    shape, colour, filled = MARKS[sort.mark]
    many = len(sort.points) > MANY
    axes.plot(
        [x for x, _ in sort.points],
        [y for _, y in sort.points],
        shape,
        color=colour,
        label=sort.label,
        markersize=3.6 if many else 5.5,
        markerfacecolor=colour if filled else "none",
        alpha=0.5 if many else 0.85,
        zorder=2,
        clip_on=False,
    )
    for each in sort.levels:
        begin, end = _ends(each)
        begin, end = max(begin, low), min(end, high)
        if begin > end:
            continue
        begin, end = (begin, end) if begin < end else (begin / 1.05, end * 1.05)
        axes.plot([begin, end], [each.middle] * 2, "-" if filled else "--", color=colour, linewidth=1.8, zorder=2.5)
        if not sort.points:
            centre = (begin * end) ** 0.5
            axes.plot([centre] * 2, [each.least, each.most], "-", color=colour, linewidth=1.2, zorder=2)
            axes.plot([centre], [each.middle], shape, color=colour, markerfacecolor=colour if filled else "none")

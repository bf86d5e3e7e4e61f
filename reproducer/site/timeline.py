"""Numbers over runs: a dot for every value, a line for the 95 % interval, a larger mark for what the receipt states."""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from reproducer.report.blocks import Drawing
from reproducer.report.figures.drawing import FIRST, FOURTH, INK, KEPT, MUTED, SECOND, THIRD, draw, place

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEAD, _FOOT, _LEFT, _RIGHT, _PLOT, _GAP = 34.0, 48.0, 58.0, 14.0, 120.0, 10.0
_LEGEND = 20.0
_TWO_COLUMNS = 500.0
_TICKS = 3
_LOOKS = (
    ("o", FIRST, True),
    ("D", SECOND, False),
    ("s", THIRD, True),
    ("^", FOURTH, False),
    ("v", FIRST, False),
    ("P", SECOND, True),
    ("X", THIRD, False),
)
MOST_LOCKS = len(_LOOKS)
OTHERS = MOST_LOCKS  # the look of every lock beyond


@dataclass(frozen=True)
class Point:
    """One number of one run.

    Attributes:
        run: the number of the run, from 1.
        lock: which lock it is of, from 0.
        values: what it is made of; empty where that is too much to be seen.
        ends: the least and the most of them, which are drawn in their place.
        failed: whether the run's verdict is that it failed.
    """

    run: int
    lock: int
    value: float
    values: tuple[float, ...]
    ends: tuple[float, float]
    interval: tuple[float, float] | None
    failed: bool


@dataclass(frozen=True)
class Panel:
    """One quantity over all runs."""

    title: str
    points: tuple[Point, ...]


@lru_cache(maxsize=128)
def timeline(name: str, runs: int, panels: tuple[Panel, ...]) -> tuple[Drawing, Drawing]:
    """The panels, two beside each other where the page is wide enough, over one axis of so many runs."""
    return draw(name, lambda figure, width: _paint(figure, width, runs, panels), lambda width: _height(width, panels))


def _columns(width: float, panels: tuple[Panel, ...]) -> int:
    return 2 if width > _TWO_COLUMNS and len(panels) > 1 else 1


def _height(width: float, panels: tuple[Panel, ...]) -> float:
    rows = -(-len(panels) // _columns(width, panels))
    return _LEGEND + rows * (_HEAD + _PLOT + _FOOT)


def _paint(figure: "Figure", width: float, runs: int, panels: tuple[Panel, ...]) -> None:
    columns = _columns(width, panels)
    across = width / columns
    for index, panel in enumerate(panels):
        row, column = divmod(index, columns)
        axes = place(
            figure,
            left=across * column + _LEFT + (_GAP if column else 0),
            top=_LEGEND + row * (_HEAD + _PLOT + _FOOT) + _HEAD,
            width=across - _LEFT - _RIGHT - _GAP,
            height=_PLOT,
        )
        _panel(axes, panel, runs, index)
    _legend(figure, panels)


def _panel(axes: "Axes", panel: Panel, runs: int, index: int) -> None:
    from matplotlib.ticker import MaxNLocator

    for point in panel.points:
        _point(axes, point, f"{KEPT}{point.run}-{index}")
    every = [each for point in panel.points for each in (point.value, *point.ends, *(point.interval or ()))]
    low, high = min(0.0, *every), max(0.0, *every)
    axes.set_ylim(low * 1.06, high * 1.06 if high > low else 1)
    axes.set_xlim(0.4, runs + 0.6)
    axes.grid(visible=True, axis="y")
    axes.grid(visible=False, axis="x")
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
    axes.yaxis.set_major_locator(MaxNLocator(_TICKS, steps=[1, 2, 2.5, 5, 10]))
    axes.set_xlabel("run, oldest first")
    axes.set_title(panel.title, pad=8, x=0, fontweight="bold")


def _look(lock: int) -> tuple[str, str, bool]:
    return _LOOKS[lock] if lock < MOST_LOCKS else (".", MUTED, True)


def _point(axes: "Axes", point: Point, name: str) -> None:
    shape, colour, filled = _look(point.lock)
    ends = [point.interval] if point.interval is not None else []
    if not point.values:
        ends.append(point.ends)
    else:
        axes.plot(
            [point.run] * len(point.values), point.values, "o", color=colour, markersize=3.4, markeredgewidth=0,
            alpha=0.4, zorder=1.5, gid=f"{name}-v", clip_on=False,
        )  # fmt: skip
    for number, pair in enumerate(ends):
        axes.plot(
            [point.run] * 2, pair, "-", color=colour, linewidth=1.6, alpha=0.8, zorder=1.6, gid=f"{name}-i{number}"
        )
    axes.plot(
        [point.run], [point.value], shape, color=colour, markersize=7, markerfacecolor=colour if filled else "none",
        zorder=2, gid=f"{name}-m", clip_on=False,
    )  # fmt: skip
    if point.failed:
        axes.plot([point.run], [point.value], "x", color=INK, markersize=11, zorder=3, gid=f"{name}-f", clip_on=False)


def _legend(figure: "Figure", panels: tuple[Panel, ...]) -> None:
    """One line above all panels: which mark is which lock, and which run failed."""
    from matplotlib.lines import Line2D

    locks = sorted({min(point.lock, OTHERS) for panel in panels for point in panel.points})
    marks = [
        Line2D([], [], linestyle="", marker=shape, color=colour, markerfacecolor=colour if filled else "none")
        for shape, colour, filled in map(_look, locks)
    ]
    labels = [f"L{lock + 1}" if lock < OTHERS else "other locks" for lock in locks]
    if any(point.failed for panel in panels for point in panel.points):
        marks.append(Line2D([], [], linestyle="", marker="x", color=INK))
        labels.append("failed")
    figure.legend(
        marks, labels, loc="upper left", bbox_to_anchor=(0, 1), ncols=len(marks), borderaxespad=0, borderpad=0.1,
        handletextpad=0.3, columnspacing=1.2, handlelength=1.2,
    )  # fmt: skip

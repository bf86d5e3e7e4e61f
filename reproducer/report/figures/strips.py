"""Distributions side by side: a dot for every value, a row for each boot, a box where there are enough."""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from reproducer.report.blocks import Drawing
from reproducer.report.figures.drawing import FIRST, INK, MUTED, SECOND, WASH, draw, place

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BOXED = 5  # so many values make quartiles
_ROW, _HEAD, _FOOT, _LEFT, _RIGHT, _GAP = 26.0, 30.0, 50.0, 74.0, 16.0, 8.0
_TWO_COLUMNS = 500.0
_OFFSETS = (0.0, 0.13, -0.13, 0.22, -0.22)
_PLAIN = 3  # as many dots need no offset
_TICKS = 4
_FEWER = 3


@dataclass(frozen=True)
class Strip:
    """The values of one row."""

    label: str
    values: tuple[float, ...]
    mark: Literal["first", "second"] = "first"


@dataclass(frozen=True)
class Panel:
    """One quantity.

    Attributes:
        middle: what stands for all of it.
        interval: where that lies with a confidence of 95 %.
        rising: whether the axis begins at zero.
    """

    title: str
    axis: str
    strips: tuple[Strip, ...]
    middle: float | None = None
    interval: tuple[float, float] | None = None
    rising: bool = False


@lru_cache(maxsize=256)
def strips(name: str, panels: tuple[Panel, ...]) -> tuple[Drawing, Drawing]:
    """The panels, two beside each other where the page is wide enough."""
    return draw(name, lambda figure, width: _paint(figure, width, panels), lambda width: _height(width, panels))


def _columns(width: float, panels: tuple[Panel, ...]) -> int:
    return 2 if width > _TWO_COLUMNS and len(panels) > 1 else 1


def _tall(panel: Panel) -> float:
    return _HEAD + _ROW * len(panel.strips) + _FOOT


def _rows(width: float, panels: tuple[Panel, ...]) -> list[tuple[Panel, ...]]:
    columns = _columns(width, panels)
    return [panels[index : index + columns] for index in range(0, len(panels), columns)]


def _height(width: float, panels: tuple[Panel, ...]) -> float:
    return sum(max(_tall(panel) for panel in row) for row in _rows(width, panels))


def _paint(figure: "Figure", width: float, panels: tuple[Panel, ...]) -> None:
    across = width / _columns(width, panels)
    top = 0.0
    for row in _rows(width, panels):
        for column, panel in enumerate(row):
            left = across * column + _LEFT
            axes = place(
                figure,
                left=left + (_GAP if column else 0),
                top=top + _HEAD,
                width=across - _LEFT - _RIGHT - _GAP,
                height=_ROW * len(panel.strips),
            )
            _panel(axes, panel)
        top += max(_tall(panel) for panel in row)


def _panel(axes: "Axes", panel: Panel) -> None:
    from matplotlib.ticker import MaxNLocator

    count = len(panel.strips)
    axes.set_title(panel.title, pad=8, x=0, fontweight="bold")
    if panel.interval is not None and panel.interval[0] < panel.interval[1]:
        axes.axvspan(*panel.interval, color=WASH, linewidth=0, zorder=0)
    if panel.middle is not None:
        axes.axvline(panel.middle, color=INK, linewidth=1.2, zorder=1)
    for index, strip in enumerate(panel.strips):
        _strip(axes, strip, count - 1 - index)
    axes.set_yticks(range(count), [strip.label for strip in reversed(panel.strips)])
    axes.set_ylim(-0.5, count - 0.5)
    _reach(axes, panel)
    axes.xaxis.set_major_locator(MaxNLocator(_TICKS, steps=[1, 2, 2.5, 5, 10]))
    axes.set_xlabel(panel.axis)


def _strip(axes: "Axes", strip: Strip, place_: int) -> None:
    colour = FIRST if strip.mark == "first" else SECOND
    ordered = sorted(strip.values)
    if len(ordered) >= BOXED:
        axes.boxplot(
            [ordered],
            positions=[place_],
            orientation="horizontal",
            widths=0.62,
            showfliers=False,
            manage_ticks=False,
            boxprops={"color": MUTED, "linewidth": 1.0},
            whiskerprops={"color": MUTED, "linewidth": 1.0},
            capprops={"color": MUTED, "linewidth": 1.0},
            medianprops={"color": MUTED, "linewidth": 1.4},
            zorder=1.5,
        )
    plain = len(ordered) <= _PLAIN
    heights = [place_ + (0.0 if plain else _OFFSETS[index % len(_OFFSETS)]) for index in range(len(ordered))]
    if strip.mark == "first":
        axes.plot(ordered, heights, "o", color=colour, markersize=5, markeredgewidth=0, alpha=0.8, zorder=2)
    else:
        axes.plot(ordered, heights, "D", color=colour, markersize=5, markerfacecolor="none", zorder=2)


def _reach(axes: "Axes", panel: Panel) -> None:
    """Every value is on the axis, with room at both ends; equal values stand in the middle of it."""
    values = [value for strip in panel.strips for value in strip.values]
    values += [each for each in (panel.middle, *(panel.interval or ())) if each is not None]
    low, high = min(values), max(values)
    if panel.rising:
        low = min(0.0, low)
    room = (high - low) * 0.06 or max(abs(high) * 0.05, 1e-9)
    axes.set_xlim(low if panel.rising and low == 0 else low - room, high + room)

"""Points over a size on a logarithmic axis, such as a rate over the length of the prompt."""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from reproducer.report.blocks import Drawing
from reproducer.report.figures.drawing import FIRST, FOURTH, SECOND, THIRD, draw, place

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Mark = Literal["first", "second", "third", "fourth"]
_HEAD, _FOOT, _LEFT, _RIGHT, _PLOT = 44.0, 50.0, 58.0, 16.0, 190.0
_LINE = 18.0
MARKS: dict[Mark, tuple[str, str, bool]] = {
    "first": ("o", FIRST, True),
    "second": ("D", SECOND, False),
    "third": ("s", THIRD, False),
    "fourth": ("^", FOURTH, True),
}
MANY = 40
_TEN_FOLD = 8.0
_TICKS = 4


@dataclass(frozen=True)
class Cloud:
    """Points of one sort; each sort has a shape and a colour.

    Attributes:
        line: points that a line joins, such as medians.
    """

    label: str
    points: tuple[tuple[float, float], ...]
    mark: Mark = "first"
    line: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Plot:
    """One pair of axes; the vertical one begins at zero."""

    title: str
    x: str
    y: str
    clouds: tuple[Cloud, ...]


@lru_cache(maxsize=256)
def clouds(name: str, plots: tuple[Plot, ...]) -> tuple[Drawing, Drawing]:
    """The plots, one below the other."""
    return draw(name, lambda figure, width: _paint(figure, width, plots), lambda _: sum(_tall(plot) for plot in plots))


def _tall(plot: Plot) -> float:
    return _HEAD + _LINE * len(plot.clouds) + _PLOT + _FOOT


def _paint(figure: "Figure", width: float, plots: tuple[Plot, ...]) -> None:
    top = 0.0
    for plot in plots:
        head = _HEAD + _LINE * len(plot.clouds)
        axes = place(figure, left=_LEFT, top=top + head, width=width - _LEFT - _RIGHT, height=_PLOT)
        _plot(axes, plot)
        top += _tall(plot)


def _plot(axes: "Axes", plot: Plot) -> None:
    from matplotlib.ticker import MaxNLocator

    for cloud in plot.clouds:
        shape, colour, filled = MARKS[cloud.mark]
        sizes = [x for x, _ in cloud.points]
        up = [y for _, y in cloud.points]
        many = len(cloud.points) > MANY
        axes.plot(
            sizes,
            up,
            shape,
            color=colour,
            label=cloud.label,
            markersize=3.6 if many else 5.5,
            markerfacecolor=colour if filled else "none",
            alpha=0.6 if many and filled else 0.9,
            zorder=2,
            clip_on=False,
        )
        if cloud.line:
            axes.plot([x for x, _ in cloud.line], [y for _, y in cloud.line], "-", color=colour, zorder=1.5)
    every = [point for cloud in plot.clouds for point in (*cloud.points, *cloud.line)]
    axes.grid(visible=True, axis="y")
    axes.grid(visible=False, axis="x")
    axes.set_ylim(0, max(y for _, y in every) * 1.06 or 1)
    across(axes, sorted({x for x, _ in every if x > 0}))
    axes.yaxis.set_major_locator(MaxNLocator(_TICKS, steps=[1, 2, 2.5, 5, 10]))
    axes.set_xlabel(plot.x)
    rows = len(plot.clouds)
    axes.set_title(f"{plot.title}, {plot.y}", pad=14 + _LINE * rows, x=0, fontweight="bold")
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


def across(axes: "Axes", sizes: list[float]) -> None:
    """A logarithmic axis over these sizes, in order; where there are few they are its marks."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    axes.set_xscale("log", base=2)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size(value)))
    if not sizes:
        return
    low, high = sizes[0], sizes[-1]
    axes.set_xlim(low / (1.12 if high > low else 2), high * (1.12 if high > low else 2))
    if len(sizes) <= _TICKS:
        axes.xaxis.set_major_locator(FixedLocator(sizes))
    else:
        axes.xaxis.set_major_locator(LogLocator(base=10 if high / low > _TEN_FOLD**2 else 2, numticks=_TICKS + 2))


def size(value: float) -> str:
    """A number of tokens as short as it is exact: 1,500 or 64 k."""
    if value >= 10_000 and value % 1000 == 0:  # noqa: PLR2004  four digits are short
        return f"{value / 1000:.0f} k"
    return f"{value:,.0f}"

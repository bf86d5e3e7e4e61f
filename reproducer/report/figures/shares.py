"""Empirical distribution functions: which share of all values is not larger."""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from reproducer.report.blocks import Drawing
from reproducer.report.figures.drawing import FIRST, FOURTH, SECOND, THIRD, draw, place

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEAD, _FOOT, _LEFT, _RIGHT, _PLOT, _LINE = 34.0, 50.0, 58.0, 16.0, 190.0, 18.0
_LOOKS = ((FIRST, "-"), (SECOND, "--"), (THIRD, "-."), (FOURTH, ":"))
MOST = len(_LOOKS)


@dataclass(frozen=True)
class Steps:
    """The values of one line."""

    label: str
    values: tuple[float, ...]


@lru_cache(maxsize=64)
def shares(name: str, axis: str, lines: tuple[Steps, ...]) -> tuple[Drawing, Drawing]:
    """The lines in one plot on a logarithmic axis; there are no more than `MOST`."""
    head = _HEAD + _LINE * len(lines)

    def paint(figure: "Figure", width: float) -> None:
        from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

        axes = place(figure, left=_LEFT, top=head, width=width - _LEFT - _RIGHT, height=_PLOT)
        for line, (colour, dashes) in zip(lines, _LOOKS, strict=False):
            axes.ecdf(line.values, color=colour, linestyle=dashes, label=line.label)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(base=10, numticks=8))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.grid(visible=True, axis="y")
        axes.set_yticks((0, 0.25, 0.5, 0.75, 1), ("0", "25 %", "50 %", "75 %", "100 %"))
        axes.set_ylim(0, 1.01)
        axes.set_xlabel(axis)
        axes.set_title("Share that is not larger", pad=10 + _LINE * len(lines), x=0, fontweight="bold")
        axes.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), borderaxespad=0.2, labelspacing=0.35, handlelength=2)

    return draw(name, paint, lambda _: head + _PLOT + _FOOT)

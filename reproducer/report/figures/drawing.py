"""Matplotlib as this project draws with it: no clock, no fonts, no settings of the user's, colours of the page.

A figure is drawn in colours that stand for the page's own, and these are put in as CSS variables, so that one drawing
serves light, dark and paper. Style attributes become presentation attributes, because the page's policy allows none.
"""

import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from reproducer.errors import InvalidDocumentError
from reproducer.report.blocks import Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, GRID, FIRST, SECOND, THIRD, FOURTH, WASH = (f"#0102{number:02x}" for number in range(8))
_VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    FIRST: "var(--first)",
    SECOND: "var(--second)",
    THIRD: "var(--third)",
    FOURTH: "var(--fourth)",
    WASH: "var(--wash)",
}
WIDE, NARROW = 640.0, 330.0
_POINTS = 72.0
_TEXT = 12.0
_SETTINGS = {
    "svg.hashsalt": "penny",
    "svg.fonttype": "none",
    "font.family": ["DejaVu Sans"],
    "font.size": _TEXT,
    "text.parse_math": False,
    "text.usetex": False,
    "axes.unicode_minus": True,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.labelsize": _TEXT,
    "axes.titlesize": _TEXT,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.linewidth": 1.0,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "x",
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.color": GRID,
    "ytick.labelcolor": INK,
    "xtick.labelsize": _TEXT - 1,
    "ytick.labelsize": _TEXT - 1,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
    "legend.fontsize": _TEXT - 1,
    "legend.labelcolor": INK,
    "lines.linewidth": 1.6,
}
_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"
_NUMBER = re.compile(r"-?\d+\.\d+")
_SIZE = re.compile(r"([\d.]+)px")
_GEOMETRY = frozenset({"d", "x", "y", "width", "height", "transform", "points", "stroke-width", "font-size"})
KEPT = "run-"  # an id that begins so stays where it is drawn, for who shows or hides a part of a drawing
_UNTURNED = "rotate(-0 "
_DROPPED = frozenset({"metadata", "style", "title"})

Paint = Callable[["Figure", float], None]


def draw(name: str, paint: Paint, height: Callable[[float], float]) -> tuple[Drawing, Drawing]:
    """A figure for a wide page and for a phone.

    Args:
        name: told to nobody; it keeps the ids of two figures on one page apart.
        paint: draws into the empty figure, told how wide it is.
        height: how high it is at a width; all in CSS pixels.

    Raises:
        InvalidDocumentError: a number of it is so large, or so near another, that no axis holds it.
    """
    return (
        _drawn(f"{name}-w", paint, WIDE, height(WIDE)),
        _drawn(f"{name}-n", paint, NARROW, height(NARROW)),
    )


def place(figure: "Figure", *, left: float, top: float, width: float, height: float) -> "Axes":
    """Axes at a place in CSS pixels: no layout depends on how wide a font says that a letter is."""
    whole, high = (float(each) * _POINTS for each in figure.get_size_inches())
    axes = figure.add_axes((left / whole, 1 - (top + height) / high, width / whole, height / high))
    axes.tick_params(axis="both", length=0, pad=6)
    return axes


def _drawn(name: str, paint: Paint, width: float, height: float) -> Drawing:
    with _own_settings():
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width / _POINTS, height / _POINTS), dpi=_POINTS)
        FigureCanvasSVG(figure)
        target = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        try:
            paint(figure, width)
            figure.savefig(target, format="svg", metadata=nothing, dpi=_POINTS)
        except (ValueError, ArithmeticError) as error:
            raise InvalidDocumentError("its numbers fit on no axis", where=f"figure {name}", why=str(error)) from error
    return Drawing(width, height, _themed(name, target.getvalue()))


@contextmanager
def _own_settings() -> Iterator[None]:
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # where a font is cached is nobody's news
    import matplotlib as mpl

    with warnings.catch_warnings(), mpl.rc_context():
        warnings.simplefilter("ignore")  # a letter that the measuring font lacks is drawn by the page's own
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)  # type: ignore[arg-type]  # its keys are a closed literal
        yield


def _themed(name: str, text: str) -> str:
    """The inside of an SVG in the page's colours; every id is its own, and nothing else is left of the writer."""
    root = ET.fromstring(text)  # noqa: S314  what matplotlib wrote a moment ago
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.removeprefix(_SVG) in _DROPPED or "}" in child.tag.removeprefix(_SVG):
                parent.remove(child)
    used = set(re.findall(r"#([\w-]+)", text))
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        _restyle(element)
        if _LINK in element.attrib:
            element.set("href", element.attrib.pop(_LINK))
        for key, value in list(element.attrib.items()):
            element.attrib[key] = _renamed(name, key, value)
        given = element.get("id", "").removeprefix(f"{name}-")
        if given and given not in used and not given.startswith(KEPT):
            del element.attrib["id"]
        element.attrib.pop("font-family", None)
        if element.get("transform", "").startswith(_UNTURNED):
            del element.attrib["transform"]
        element.tail = None
        if element.tag != "text":
            element.text = None
    return "".join(ET.tostring(child, encoding="unicode") for child in root)


def _restyle(element: ET.Element) -> None:
    """The style attribute as presentation attributes."""
    for declaration in element.attrib.pop("style", "").split(";"):
        key, _, value = (part.strip() for part in declaration.partition(":"))
        if key == "font" and (size := _SIZE.search(value)):
            element.set("font-size", size.group(1))
            if "bold" in value or "700" in value:
                element.set("font-weight", "700")
        elif key:
            element.set(key, value)
    for key in ("fill", "stroke"):
        if element.get(key) in _VARIABLES:
            element.set(key, _VARIABLES[element.attrib[key]])


def _renamed(name: str, key: str, value: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == "href":
        return f"#{name}-{value.removeprefix('#')}"
    if key == "clip-path":
        return value.replace("#", f"#{name}-")
    if key == "font-size":
        return value.removesuffix("px")
    return _NUMBER.sub(_rounded, value) if key in _GEOMETRY else value


def _rounded(match: re.Match[str]) -> str:
    text = f"{float(match.group()):.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text

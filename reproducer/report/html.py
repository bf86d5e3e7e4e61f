"""`report.html`: one page that loads nothing, runs nothing and shows text from outside as exactly that text."""

import base64
import hashlib
import re
from functools import cache
from importlib import metadata
from importlib.resources import files
from typing import TYPE_CHECKING

from reproducer.report.blocks import WORDS
from reproducer.report.sections import content
from reproducer.report.subject import Subject

if TYPE_CHECKING:
    from jinja2 import Environment

PAGE_FORMAT = "penny-page/1"
_LONGEST = 4000
_INSIDE = re.compile(r'<svg class="(?:wide|narrow)".*?</desc>(.*?)</svg>', re.DOTALL)
_ELEMENT = re.compile(r"<([^\s/>]*)")
_SHAPES = frozenset({"", "g", "path", "use", "defs", "clipPath", "rect", "text"})
_DRAWING = re.compile(r'(<svg class="(?:wide|narrow)".*?</desc>).*?(</svg>)', re.DOTALL)


def page(subject: Subject) -> str:
    """The page; the same subject gives the same bytes with the same drawing library."""
    style = style_sheet()
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            content=content(subject),
            style=style,
            style_hash=policy_hash(style),
            words=WORDS,
            format=PAGE_FORMAT,
            library=drawn_by(),
        )
    )


def style_sheet() -> str:
    """The style sheet of a page."""
    return _file("page.css")


def policy_hash(text: str) -> str:
    """What a page's policy allows a style sheet or a script by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def drawn_by() -> str:
    """What the figures of a page are drawn by: another version may draw other bytes."""
    return f"matplotlib {metadata.version('matplotlib')}"


def without_drawings(text: str) -> str:
    """A page without the inside of its drawings; their titles, descriptions and tables are still there."""
    return _DRAWING.sub(r"\1\2", text)


def is_drawn(text: str) -> bool:
    """Whether the drawings of a page hold shapes and labels alone, whatever they show."""
    return all(set(_ELEMENT.findall(inside)) <= _SHAPES for inside in _INSIDE.findall(text))


def visible(value: object) -> str:
    """Text as it is shown: what is not printable, or turns the direction of what follows, stands escaped."""
    text = str(value)
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _lines(text: str) -> object:
    """Text of several lines that penny wrote, each escaped by itself."""
    from markupsafe import Markup, escape

    return Markup("\n").join(escape(visible(line)) for line in text.split("\n"))


@cache
def environment() -> "Environment":
    """Templates that escape whatever is put into them, and show it as `visible` does."""
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup

    def shown(value: object) -> object:
        return value if isinstance(value, Markup) else visible(value)

    environment = Environment(
        loader=DictLoader({name: _file(name) for name in ("blocks.html.j2", "page.html.j2")}),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "drawn": Markup,  # penny's own style sheet, and drawings without text from outside
        "lines": _lines,
        "size": lambda value: f"{value:g}",
    }
    return environment


@cache
def _file(name: str) -> str:
    return (files("reproducer.report") / "templates" / name).read_text(encoding="utf-8")

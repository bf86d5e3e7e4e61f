"""A badge: the verdict in a word, and the lock that it is about."""

from reproducer.report.subject import Subject

_COLOURS = {"passed": "#1c6b3a", "failed": "#a3221b", "unknown": "#5f4a12"}
_SIGNS = {"passed": "✓", "failed": "✗", "unknown": "?"}
_LETTER, _ROOM, _LEFT = 6.6, 20.0, 52.0
_TEMPLATE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {{ width }} 20" width="{{ width }}" height="20" role="img" \
aria-label="{{ told }}"><title>{{ told }}</title>
<rect width="{{ width }}" height="20" rx="3" fill="{{ colour }}"/>
<path d="M3 0h{{ left - 3 }}v20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 \
3-3z" fill="#33383f"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">\
<text x="{{ left / 2 }}" y="14">penny</text><text x="{{ left + (width - left) / 2 }}" y="14">{{ said }}</text></g>
</svg>
"""


def badge(subject: Subject) -> str:
    """The badge as SVG."""
    from jinja2 import Environment, StrictUndefined

    word = subject.verdict.word
    said = f"{_SIGNS[word]} {word} · {subject.lock.digest[:12]}"
    width = round(_LEFT + _ROOM + _LETTER * len(said))
    told = f"penny: {word}; {subject.lock.name}, lock {subject.lock.digest}"
    template = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True).from_string(
        _TEMPLATE
    )
    return template.render(width=width, left=_LEFT, colour=_COLOURS[word], said=said, told=told)

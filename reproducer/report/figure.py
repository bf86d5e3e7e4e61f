"""The spread of every repeated measurement as one small self-contained SVG.

Each row is one derived value: a dot a value, in percent from the row's median, so that rows of different units can
share an axis without being compared in value.
"""

from collections.abc import Iterable
from html import escape

from reproducer.documents.lock import Lock
from reproducer.documents.receipts import Derived, MeasureReceipt
from reproducer.ledger import AnyReceipt
from reproducer.report.text import number

_CONTINUOUS = frozenset({"tok/s", "s"})
_WIDTH, _LEFT, _RIGHT, _ROW, _TOP, _BOTTOM = 760, 250, 130, 26, 46, 34
_SMALLEST_SPAN = 5.0
_MINUS = "\N{MINUS SIGN}"
_STEPS = (1, 2, 2.5, 5, 10)
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#333}.t{font-weight:600}.m{fill:#777}.g{stroke:#ddd}.z{stroke:#999}"
    ".d{fill:#2f6fb2;fill-opacity:.75}.b{fill:#fff}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.m{fill:#999}.g{stroke:#444}.z{stroke:#888}.d{fill:#7db3ea}"
    ".b{fill:#16181c}}"
)


def figure(lock: Lock, receipts: Iterable[AnyReceipt]) -> str:
    """The figure; says so when nothing was measured more than once."""
    rows = [
        (f"{receipt.measure.rpartition('/')[0]} · {derived.name}", derived)
        for receipt in sorted(
            (each for each in receipts if isinstance(each, MeasureReceipt)),
            key=lambda each: (each.measure, each.digest),
        )
        for derived in receipt.derived
        if derived.unit in _CONTINUOUS and len(derived.values) > 1 and derived.value
    ]
    height = _TOP + _ROW * max(len(rows), 1) + _BOTTOM
    title = f"{lock.name}: spread of repeated samples around their median"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<rect class="b" width="{_WIDTH}" height="{height}" rx="6"/>',
        f'<text class="t" x="16" y="26">{escape(title)}</text>',
    ]
    if rows:
        parts += _axis(_span(rows), len(rows))
        for index, (label, derived) in enumerate(rows):
            parts += _row(label, derived, _TOP + _ROW * index + _ROW / 2, _span(rows))
    else:
        parts.append(f'<text class="m" x="16" y="{_TOP + 16}">nothing was measured more than once</text>')
    return "\n".join([*parts, "</svg>", ""])


def _percent(value: float, middle: float) -> float:
    return (value / middle - 1) * 100


def _span(rows: list[tuple[str, Derived]]) -> float:
    """Half the width of the axis in percent: every dot fits, and noise below a few percent stays small."""
    return max(_SMALLEST_SPAN, *(abs(_percent(value, row.value)) for _, row in rows for value in row.values)) * 1.08


def _x(percent: float, span: float) -> str:
    return f"{_LEFT + (percent + span) / (2 * span) * (_WIDTH - _LEFT - _RIGHT):.1f}"


def _axis(span: float, rows: int) -> list[str]:
    """Grid lines at round percentages."""
    magnitude = 10.0 ** len(str(int(span / 3))) / 10
    step = next(each * magnitude for each in _STEPS if each * magnitude >= span / 3)
    bottom = _TOP + _ROW * rows
    parts = []
    for count in range(-int(span / step), int(span / step) + 1):
        at = _x(count * step, span)
        kind = "g" if count else "z"
        label = f"{number(count * step)} %" if count <= 0 else f"+{number(count * step)} %"
        parts.append(f'<line class="{kind}" x1="{at}" x2="{at}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(
            f'<text class="m" x="{at}" y="{bottom + 20}" text-anchor="middle">{label.replace("-", _MINUS)}</text>'
        )
    return parts


def _row(label: str, derived: Derived, y: float, span: float) -> list[str]:
    dots = [
        f'<circle class="d" cx="{_x(_percent(value, derived.value), span)}" cy="{y:.1f}" r="4.5">'
        f"<title>{number(value)} {escape(derived.unit)}</title></circle>"
        for value in derived.values
    ]
    value = f"{number(derived.value)} {derived.unit}"
    return [
        f'<text x="{_LEFT - 12}" y="{y + 4:.1f}" text-anchor="end">{escape(label)}</text>',
        *dots,
        f'<text x="{_WIDTH - _RIGHT + 12}" y="{y + 4:.1f}">{escape(value)}</text>',
    ]

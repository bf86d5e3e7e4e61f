"""The spread of every repeated measurement as one small self-contained SVG.

Each row is one derived value: a dot a value, in percent from the row's median, so that rows of different units can
share an axis without being compared in value.
"""

from collections.abc import Iterable
from html import escape

from reproducer.documents.lock import Lock
from reproducer.documents.measured import Derived
from reproducer.documents.receipts import MeasureReceipt
from reproducer.errors import InvalidDocumentError
from reproducer.ledger import AnyReceipt
from reproducer.measures.apart import bare_names, identity
from reproducer.report.text import number

_CONTINUOUS = frozenset({"tok/s", "s"})
_WIDTH, _LEFT, _RIGHT, _ROW, _TOP, _BOTTOM = 760, 250, 130, 26, 46, 34
_LETTER = 6.4  # how wide one is at most, on average over a label
_SMALLEST_SPAN = 5.0
_WIDEST_SPAN = 1e200
_MINUS = "\N{MINUS SIGN}"
_STEPS = (1, 2, 2.5, 5, 10)
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#333}.t{font-weight:600}.m{fill:#777}.g{stroke:#ddd}.z{stroke:#999}"
    ".d{fill:#2f6fb2;fill-opacity:.75}.b{fill:#fff}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.m{fill:#999}.g{stroke:#444}.z{stroke:#888}.d{fill:#7db3ea}"
    ".b{fill:#16181c}}"
)


def figure(lock: Lock, receipts: Iterable[AnyReceipt]) -> str:
    """The figure; says so when nothing was measured more than once.

    Raises:
        InvalidDocumentError: its numbers lie so far apart that no axis holds them.
    """
    measures = sorted(
        (each for each in receipts if isinstance(each, MeasureReceipt)),
        key=lambda each: (identity(each.measure, each.parameters), each.digest),
    )
    told = bare_names((each.measure, each.parameters) for each in measures)
    rows = [
        (f"{name} · {derived.name}", derived)
        for name, receipt in zip(told, measures, strict=True)
        for derived in receipt.derived
        if derived.unit in _CONTINUOUS and len(derived.values) > 1 and derived.value
    ]
    left = max(_LEFT, max((round(_LETTER * len(label)) for label, _ in rows), default=0) + 24)
    width = _WIDTH + left - _LEFT
    height = _TOP + _ROW * max(len(rows), 1) + _BOTTOM
    title = f"{lock.name}: spread of repeated samples around their median"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<rect class="b" width="{width}" height="{height}" rx="6"/>',
        f'<text class="t" x="16" y="26">{escape(title)}</text>',
    ]
    if rows:
        parts += _axis(_span(rows), len(rows), left)
        for index, (label, derived) in enumerate(rows):
            parts += _row(label, derived, _TOP + _ROW * index + _ROW / 2, _span(rows), left)
    else:
        parts.append(f'<text class="m" x="16" y="{_TOP + 16}">nothing was measured more than once</text>')
    return "\n".join([*parts, "</svg>", ""])


def _percent(value: float, middle: float) -> float:
    return (value / middle - 1) * 100


def _span(rows: list[tuple[str, Derived]]) -> float:
    """Half the width of the axis in percent: every dot fits, and noise below a few percent stays small."""
    span = max(_SMALLEST_SPAN, *(abs(_percent(value, row.value)) for _, row in rows for value in row.values)) * 1.08
    if span > _WIDEST_SPAN:
        raise InvalidDocumentError("its numbers fit on no axis", where="figure of the spread")
    return span


def _x(percent: float, span: float, left: int) -> str:
    return f"{left + (percent + span) / (2 * span) * (_WIDTH - _LEFT - _RIGHT):.1f}"


def _axis(span: float, rows: int, left: int) -> list[str]:
    """Grid lines at round percentages."""
    magnitude = 10.0 ** len(str(int(span / 3))) / 10
    step = next(each * magnitude for each in _STEPS if each * magnitude >= span / 3)
    bottom = _TOP + _ROW * rows
    parts = []
    for count in range(-int(span / step), int(span / step) + 1):
        at = _x(count * step, span, left)
        kind = "g" if count else "z"
        label = f"{number(count * step)} %" if count <= 0 else f"+{number(count * step)} %"
        parts.append(f'<line class="{kind}" x1="{at}" x2="{at}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(
            f'<text class="m" x="{at}" y="{bottom + 20}" text-anchor="middle">{label.replace("-", _MINUS)}</text>'
        )
    return parts


def _row(label: str, derived: Derived, y: float, span: float, left: int) -> list[str]:
    dots = [
        f'<circle class="d" cx="{_x(_percent(value, derived.value), span, left)}" cy="{y:.1f}" r="4.5">'
        f"<title>{number(value)} {escape(derived.unit)}</title></circle>"
        for value in derived.values
    ]
    value = f"{number(derived.value)} {derived.unit}"
    return [
        f'<text x="{left - 12}" y="{y + 4:.1f}" text-anchor="end">{escape(label)}</text>',
        *dots,
        f'<text x="{left + _WIDTH - _LEFT - _RIGHT + 12}" y="{y + 4:.1f}">{escape(value)}</text>',
    ]

"""Text and numbers as they stand in a Markdown page; text from receipts stays text."""

import re
from collections.abc import Sequence

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")
_SIGNIFICANT = 4
NOTHING = "\N{EN DASH}"


def plain(text: str) -> str:
    """Text from outside as one line of Markdown that shows exactly that text."""
    one_line = "".join(character if character.isprintable() else " " for character in text)
    return _SPECIAL.sub(r"\\\1", one_line).strip()


def code(text: str) -> str:
    """Text from outside as a code span."""
    one_line = "".join(character if character.isprintable() else " " for character in text)
    return f"`{one_line.replace('`', chr(39)).replace('|', '¦')}`" if one_line.strip() else NOTHING


def number(value: float) -> str:
    """A number with four significant digits, without an exponent where that stays short."""
    if value == int(value) and abs(value) < 1e15:  # noqa: PLR2004  beyond that an exponent reads better
        return str(int(value))
    text = f"{value:.{_SIGNIFICANT}g}"
    return text if "e" in text else text.rstrip("0").rstrip(".") if "." in text else text


def gibibytes(size: int) -> str:
    """Bytes as GiB with one digit."""
    return f"{size / 2**30:.1f} GiB"


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]

"""Two builds of one artefact, as text for a person."""

from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from reproducer.rebuild.compare import Comparison

_ROWS = 40


def comparison_text(comparison: "Comparison") -> Text:
    """Each difference on a line, then the level."""
    lines = []
    for difference in comparison.differences[:_ROWS]:
        sides = ""
        if difference.expected is not None or difference.got is not None:
            sides = f": {difference.expected or 'absent'}, then {difference.got or 'absent'}"
        reason = f" ({difference.reason})" if difference.reason else ""
        lines.append(f"{difference.where}{sides}{reason}")
    hidden = len(comparison.differences) - _ROWS
    if hidden > 0:
        lines.append(f"and {hidden} more, which --json lists")
    return Text("\n".join([*lines, f"level {comparison.level}"]))

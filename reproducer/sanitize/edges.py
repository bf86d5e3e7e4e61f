r"""Where a thing may begin inside other text.

A token in a log stands after a blank as well as after `\n` in a quoted text, after `%3D` in a URL and after the codes
that colour a terminal; none of these is a part of it. All are looked at backwards and have a fixed width, so that no
pattern that begins with them can take more than linear time.
"""

_ESCAPES = r"(?<=\\[abfnrtv0])|(?<=%[0-9A-Fa-f]{2})|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})"
_COLOURS = r"(?<=\x1b\[m)|(?<=\x1b\[[0-9]m)|(?<=\x1b\[[0-9]{2}m)|(?<=\x1b\[[0-9];[0-9]{2}m)"
_WRITTEN_COLOURS = r"(?<=x1b\[[0-9]m)|(?<=x1b\[[0-9]{2}m)|(?<=033\[[0-9]m)|(?<=u001b\[[0-9]m)|(?<=u001b\[[0-9]{2}m)"


def begins(not_after: str) -> str:
    """A condition on a place: it comes after none of these characters, or after an escape."""
    return rf"(?:(?<![{not_after}])|{_ESCAPES}|{_COLOURS}|{_WRITTEN_COLOURS})"


WORD = begins("A-Za-z0-9_")
SEPARATOR = r"(?:\\{1,4}u002[Ff]|\\{0,4}/|\\{1,4}|%2[Ff]|%5[Cc])"

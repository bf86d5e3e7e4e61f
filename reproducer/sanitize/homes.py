"""Home paths of Linux, macOS and Windows, plain, escaped and percent-encoded."""

import re

from reproducer.sanitize.edges import SEPARATOR, begins
from reproducer.sanitize.kinds import Tally

_S = SEPARATOR
_USER = r"(?P<user>(?:(?!%2[Ff]|%5[Cc]|%20|%22|%27)[^/\\\s\"'`:,;|<>()\[\]{}?*&=\x1b]){1,128}+)"
# a path may hold an empty or a dotted part, and the codes that colour a terminal
_CODE = r"(?:(?:\x1b|\\{1,4}(?:x1b|033|u001b))\[[0-9;]{0,8}m)?"
_GAP = rf"{_CODE}(?:{_S}|\.{_S}){{0,2}}{_CODE}"
# a name with blanks is one only where a path goes on after it
_SPACED = r"(?P<spaced>[^/\\\n\"'`:,;|<>{}?*=]{1,64}(?=\\))"
_UNIX = re.compile(rf"(?:{_S}var|{_S}export|{_S}usr)?{_S}(?:home|Users|u){_S}{_GAP}{_USER}")
_WINDOWS = re.compile(
    rf"(?:(?<![A-Za-z0-9])[A-Za-z](?::|%3[Aa])|{_S}mnt{_S}[a-z]|(?<![\w.]){_S}[a-z])?{_S}"
    rf"(?:[Uu]sers|USERS|Documents and Settings|DOCUME~1){_S}(?:{_SPACED}|{_USER})"
)
_ROOT = re.compile(rf"{begins('A-Za-z0-9_.~')}(?:/|\\/|%2[Ff])root(?=/|\\|%2[Ff]|$|[\s\"'`:;,)\]}}&|<>])")
_BEFORE_TILDE = r"\w~/\\.{}-"
_TILDE = re.compile(begins(_BEFORE_TILDE) + r"~(?P<user>[A-Za-z_][\w.-]{0,63})(?=/)")
# what containers set HOME to: folders that every machine has, and that name nobody
_NO_HOMES = frozenset(
    {"/tmp", "/app", "/work", "/workspace", "/data", "/opt", "/usr", "/var", "/var/tmp", "/home", "/srv", "/mnt"}  # noqa: S108  texts
    | {"/nonexistent", "/code", "/build", "/dev/shm"}  # noqa: S108  a text
)
_HINTS = ("home", "users", "documents and", "docume~1", "/u/", "root")


def without_homes(text: str, lowered: str, tally: Tally, home: str) -> str:
    """A text without home paths; what stands below one stays.

    Args:
        text: the text.
        lowered: the same in small letters.
        tally: counts what is taken out.
        home: the home of this machine's user, wherever it lies; empty where it has none.
    """

    def replace(_: re.Match[str]) -> str:
        return tally.take("home")

    if len(home) > 1 and home in text and home not in _NO_HOMES:
        text = re.sub(rf"{begins(r'A-Za-z0-9_.~-')}{re.escape(home)}(?![\w.-])", replace, text)
    if any(hint in lowered for hint in _HINTS):
        for pattern in (_WINDOWS, _UNIX, _ROOT):
            text = pattern.sub(replace, text)
    return _TILDE.sub(replace, text) if "~" in text else text


def users_in(text: str, lowered: str) -> set[str]:
    """The names of users whose homes a text names."""
    found: set[str] = set()
    if "~" not in text and not any(hint in lowered for hint in _HINTS):
        return found
    for pattern in (_WINDOWS, _UNIX, _TILDE):
        for match in pattern.finditer(text):
            groups = match.groupdict()
            found.add(groups.get("spaced") or groups["user"] or "")
    return found - {""}

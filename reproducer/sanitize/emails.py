"""E-mail addresses."""

import re

from reproducer.sanitize.edges import begins
from reproducer.sanitize.kinds import Tally

_NO_COLOUR = r"(?<!\x1b\[)(?<!x1b\[)(?<!033\[)(?<!u001b\[)"
_ALONE = begins(r"\w.!#$%&*+?^~\\-")
_EMAIL = re.compile(
    rf"{_NO_COLOUR}{_ALONE}(?P<local>(?:(?!%40|&#64;)[\w.!#$%&*+?^~-]){{1,256}}+)(?:@|%40|\\u0040|&#64;)"
    r"(?P<domain>(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24})(?![\w-]|[\w-]*@)"
)
_SERVICES = frozenset({"git", "hg", "svn"})
_PACKAGE = re.compile(r"pkg:[a-z]{1,20}/(?:[\w.%-]{1,100}/){0,2}\Z")


def without_emails(text: str, tally: Tally) -> str:
    """A text without e-mail addresses; `git@github.com` is the way to a repository.

    A package URL names a version after its `@` (purl specification): `pkg:pypi/sglang@0.5.10.post1` is none.
    """

    def replace(match: re.Match[str]) -> str:
        if match["local"] in _SERVICES:
            return match[0]
        before = text[max(0, match.start() - 240) : match.start()]
        version = match["domain"][0].isdigit() and _PACKAGE.search(before)
        return match[0] if version else tally.take("email")

    if "@" not in text and "%40" not in text and "u0040" not in text and "&#64;" not in text:
        return text
    return _EMAIL.sub(replace, text)

"""The kinds of things that stay on the machine, and what stands in their place.

A placeholder is `{kind}`. No finder matches inside one, so sanitising a sanitised text finds nothing.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

Kind = Literal["address", "client", "email", "home", "key", "name", "request", "secret", "text", "token"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MEANINGS: dict[Kind, str] = {
    "address": "addresses of machines (IPv4, IPv6, hardware) with their ports",
    "client": "ports of clients on this machine",
    "email": "e-mail addresses",
    "home": "home paths",
    "key": "private and SSH keys",
    "name": "host and user names",
    "request": "request ids, each by the same pseudonym everywhere",
    "secret": "values that are secret by the name they go by",
    "text": "prompts and completions",
    "token": "tokens that are secret by their form",
}
PSEUDONYM = r"request_[0-9a-f]{16}(?![0-9a-zA-Z])"
_KINDS = "|".join(KINDS)
PLACEHOLDER = re.compile(rf"\{{(?:{_KINDS})\}}|{PSEUDONYM}")


def placeholder(kind: Kind) -> str:
    """What stands where something of this kind stood."""
    return f"{{{kind}}}"


def is_placeholder(text: str) -> bool:
    """Whether a text is a placeholder and nothing else."""
    return PLACEHOLDER.fullmatch(text) is not None


def plain_parts(text: str) -> Iterator[str]:
    """What of a text stands between placeholders."""
    at = 0
    for each in PLACEHOLDER.finditer(text):
        yield text[at : each.start()]
        at = each.end()
    yield text[at:]


@dataclass
class Tally:
    """How many things of each kind were taken out."""

    counts: Counter[Kind] = field(default_factory=Counter)

    def take(self, kind: Kind) -> str:
        """Count one, and say what stands in its place."""
        self.counts[kind] += 1
        return placeholder(kind)

    def by_kind(self) -> dict[str, int]:
        """The kinds that were found, by name."""
        return {kind: self.counts[kind] for kind in KINDS if self.counts[kind]}

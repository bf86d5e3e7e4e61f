"""Whether a value names this machine or a person: such values stand in no lock."""

from functools import cache

from reproducer.sanitize.text import Machine, leaks


@cache
def _here() -> Machine:
    return Machine.here()


def named_in(text: str) -> str:
    """What of this machine a text names, such as `an address`; empty where it names nothing of it."""
    found = [leak.what for leak in leaks(text, where="", machine=_here()) if leak.what != "a home path"]
    return found[0] if found else ""

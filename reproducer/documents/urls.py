"""Addresses of git repositories that a stranger may name: fetched over a network, and nothing else.

git runs commands for some addresses (`ext::`, an unknown scheme's `git-remote-SCHEME`) and reads others as options,
so only what is listed here passes. A place on a disk is no address: no other machine has it.
"""

import re
from urllib.parse import urlsplit

SCHEMES = ("https", "http", "ssh", "git")
_HOST = re.compile(r"^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9])?$|^[0-9A-Fa-f:]+$")
_USER = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9._-]*$")
_PATH = re.compile(r"^/[A-Za-z0-9._~%+@/,=:-]*$")


def git_url(text: str) -> str:
    """A git address, unchanged.

    Raises:
        ValueError: another scheme, a password or token in it, a host or path that git or ssh could read otherwise.
    """
    try:
        parts = urlsplit(text)
        host, user, password, _ = parts.hostname or "", parts.username, parts.password, parts.port
    except ValueError as error:
        msg = f"is no URL: {error}"
        raise ValueError(msg) from error
    if parts.scheme not in SCHEMES:
        msg = f"must be one of {', '.join(f'{each}://' for each in SCHEMES)}"
        raise ValueError(msg)
    if password is not None or (user is not None and parts.scheme != "ssh"):
        msg = "must not carry a user name, a password or a token"
        raise ValueError(msg)
    if not _HOST.match(host) or (user is not None and not _USER.match(user)):
        msg = "must name a host"
        raise ValueError(msg)
    if (
        not _PATH.match(parts.path)
        or "//" in parts.path
        or ".." in parts.path.split("/")
        or parts.query
        or parts.fragment
    ):
        msg = "must have a plain path, without a query or a fragment"
        raise ValueError(msg)
    return text

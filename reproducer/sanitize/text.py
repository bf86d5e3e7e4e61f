"""What must not leave the machine: home paths, host and user names, addresses, tokens.

Receipts are made so that they carry none. This is the check before anything is signed: it removes nothing, it names
where each one stands and refuses.
"""

import getpass
import ipaddress
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproducer.errors import UnsafeInputError

# fields in which four numbers with dots are a version and not an address
_VERSIONS = frozenset({"version", "filename", "kernel", "installer", "python", "penny_version"})
# what the model wrote for fixed prompts and cases; a name that happens to be a word there says nothing about a machine
_GENERATED = frozenset({"output_text", "tool_text", "arguments_text"})
# the page is made of penny's own words and of receipts that are searched themselves
_PAGE = "page"
# names that half the machines of the world share, and that texts hold for other reasons
_COMMON = frozenset(
    {"admin", "app", "build", "builder", "container", "docker", "host", "local", "localhost", "main", "nobody"}
    | {"node", "none", "penny", "root", "runner", "server", "sglang", "test", "ubuntu", "unknown", "user"}
)
_SHORTEST_NAME = 4
_HOME = re.compile(r"(?:/home|/Users|/var/home)/[^/\s\"']+|(?<![\w.])/root(?=/|$|[\s\"':])")
_IPV4 = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:[0-9A-Fa-f.:]*(?![\w:])")
_TOKENS = (
    re.compile(r"\b(?:hf|ghp|gho|ghs|ghu|glpat|npm|pypi)[-_][A-Za-z0-9_-]{16,}"),
    re.compile(r"\bgithub_pat_[A-Za-z0-9_]{20,}"),
    re.compile(r"\bsk-[A-Za-z0-9_-]{16,}"),
    re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{10,}"),
    re.compile(r"\bAKIA[0-9A-Z]{16}\b"),
    re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\."),
    re.compile(r"(?i)\bbearer\s+[A-Za-z0-9._~+/-]{12,}"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    re.compile(r"[a-z][a-z0-9+.-]*://[^/\s:@]+:[^/\s@]+@"),
)
_SECRET_NAME = re.compile(r"(?i)(?:^|_)(?:token|secret|password|passwd|api_?key|access_?key|credentials?)$")


@dataclass(frozen=True)
class Machine:
    """The names of this machine that must stay on it."""

    home: str
    names: frozenset[str]

    @classmethod
    def here(cls) -> "Machine":
        """The machine penny runs on."""
        try:
            user = getpass.getuser()
        except (KeyError, OSError):
            user = ""
        host = socket.gethostname()
        names = {user, host, host.split(".")[0]}
        return cls(
            str(Path.home()),
            frozenset(name for name in names if len(name) >= _SHORTEST_NAME and name.lower() not in _COMMON),
        )


@dataclass(frozen=True)
class Leak:
    """One thing that must not leave: where it stands and what kind of thing it is; never the thing itself."""

    where: str
    what: str


def leaks(content: Any, *, where: str, machine: Machine) -> tuple[Leak, ...]:
    """Every leak in plain parsed data or text.

    Args:
        content: parsed JSON or text.
        where: the file, for the findings.
        machine: whose names are looked for.
    """
    return tuple(
        Leak(f"{where}: {key or 'text'}", what)
        for key, field, text in _texts(content, "", "")
        for what in sorted(set(_found(field, text, machine)))
    )


def page(text: str) -> dict[str, list[str]]:
    """A page of text as the sanitizer takes it, line by line."""
    return {_PAGE: text.splitlines()}


def refuse_leaks(contents: dict[str, Any]) -> None:
    """Refuse contents that hold a leak; keys are the names of the files they will become.

    Raises:
        UnsafeInputError: names every place and kind.
    """
    machine = Machine.here()
    found = [leak for name in sorted(contents) for leak in leaks(contents[name], where=name, machine=machine)]
    if found:
        first = found[0]
        rest = "; ".join(f"{leak.where} holds {leak.what}" for leak in found[1:10])
        raise UnsafeInputError(
            f"holds {first.what}, which must not leave this machine",
            where=first.where,
            why=rest + ("; and more" if len(found) > 10 else "") if rest else "",  # noqa: PLR2004  a screenful
            todo="this is a fault of penny or of the lock's text; the bundle was not written",
        )


def _texts(content: Any, key: str, field: str) -> Iterator[tuple[str, str, str]]:
    """Every string with its dotted key and the name of the field it stands in; keys of objects are strings too."""
    if isinstance(content, str):
        yield key, field, content
    elif isinstance(content, dict):
        for name, value in content.items():
            inner = f"{key}.{name}" if key else str(name)
            yield inner, "", str(name)
            if isinstance(value, str) and value and _SECRET_NAME.search(str(name)):
                yield inner, "secret", value
            yield from _texts(value, inner, str(name))
    elif isinstance(content, list | tuple):
        for index, value in enumerate(content):
            yield from _texts(value, f"{key}[{index}]", field)


def _found(field: str, text: str, machine: Machine) -> Iterator[str]:
    if field == "secret":
        yield "a secret by its name"
        return
    if _HOME.search(text) or (len(machine.home) > 1 and machine.home in text):
        yield "a home path"
    if any(pattern.search(text) for pattern in _TOKENS):
        yield "a token"
    if field in _GENERATED or field == _PAGE:
        return
    if any(_names(name).search(text) for name in machine.names):
        yield "a host or user name"
    if field not in _VERSIONS and _addresses(text):
        yield "an address"


def _names(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])", re.IGNORECASE)


def _addresses(text: str) -> bool:
    """Whether a text holds an IP address of a machine; loopback and wildcard addresses name none."""
    for match in (*_IPV4.findall(text), *_IPV6.findall(text)):
        try:
            address = ipaddress.ip_address(match.strip("."))
        except ValueError:
            continue
        if not address.is_loopback and not address.is_unspecified:
            return True
    return False

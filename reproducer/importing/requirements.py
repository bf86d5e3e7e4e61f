"""What was installed, as `pip freeze` or `uv pip freeze` lists it."""

import re
from dataclasses import dataclass, field
from typing import Any

from reproducer.documents.urls import git_url
from reproducer.importing.found import Notes

_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[A-Za-z0-9._,-]*\])?===?([0-9][A-Za-z0-9.!+_-]*)$")
_DIRECT = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)\s*@\s*(\S+)$")
_GIT = re.compile(r"^git\+([^#@]+(?:@[^#@/]+/[^#@]+)?)@([0-9A-Za-z._/-]+)(?:#(.*))?$")
_ENGINES = ("sglang", "vllm")
_ELSEWHERE = "it is no release of an index: add a component for it"


@dataclass
class Installed:
    """The packages beside the engine, and where the engine itself came from.

    Attributes:
        requirements: exact pins.
        source: the engine's source as a manifest spells it; None where the list does not name it.
    """

    requirements: list[str] = field(default_factory=list)
    source: dict[str, Any] | None = None


def read_requirements(text: str, engine: str, notes: Notes) -> Installed:
    """Read a list of packages; what is neither a pin nor the engine's repository is noted."""
    found = Installed()
    for raw in text.splitlines():
        line = re.split(r"\s+#|\s+--hash|\s+;|\s+\\$", raw.strip(), maxsplit=1)[0].strip()
        if not line or line.startswith(("#", "--")):
            continue
        editable = line.removeprefix("-e ").strip() if line.startswith("-e ") else ""
        if match := _PIN.match(line):
            if match[1].lower() == engine:
                found.source = {"kind": "wheel", "project": engine, "version": f"=={match[2]}"}
            else:
                found.requirements.append(f"{match[1]}=={match[2]}")
            continue
        direct = _DIRECT.match(line)
        address = editable or (direct[2] if direct else "")
        source = _repository(address)
        named = direct[1].lower() if direct else _egg(address)
        if source is not None and named == engine:
            found.source = source
        else:
            notes.add(line, _ELSEWHERE if source or direct else "is no exact pin: add it to the requirements")
    return found


def _repository(address: str) -> dict[str, Any] | None:
    match = _GIT.match(address)
    if match is None:
        return None
    try:
        url = git_url(match[1])
    except ValueError:
        return None
    source = {"kind": "git", "url": url, "ref": match[2]}
    folder = re.search(r"(?:^|&)subdirectory=([A-Za-z0-9._/-]+)", match[3] or "")
    return {**source, "subfolder": folder[1]} if folder else source


def _egg(address: str) -> str:
    match = re.search(r"[#&]egg=([A-Za-z0-9._-]+)", address)
    return match[1].lower() if match else ""

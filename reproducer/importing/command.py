"""The command of a launch: what starts it (`prefixes.py`) is taken away; an engine with its arguments is left."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from reproducer.importing.found import Found, Notes, Unmapped
from reproducer.importing.prefixes import PREFIXES, PYTHON, State

EngineName = Literal["sglang", "vllm"]
ASSIGNMENT = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)=(.*)$", re.DOTALL)
MODULES: dict[str, EngineName] = {
    "sglang.launch_server": "sglang",
    "vllm.entrypoints.openai.api_server": "vllm",
}
# What `python -m` runs and that takes the same words as the program of that name.
_PROGRAMS = {"sglang": "sglang", "sglang.cli.main": "sglang", "vllm": "vllm", "vllm.entrypoints.cli.main": "vllm"}
_FILES: dict[str, EngineName] = {
    "sglang/launch_server.py": "sglang",
    "vllm/entrypoints/openai/api_server.py": "vllm",
}
_VERSIONED = re.compile(r"python3\.(\d{1,2})(?![\d])")
_PYTHON_VALUES = ("-X", "-W", "--check-hash-based-pycs")
_MOST_PREFIXES = 32


@dataclass(frozen=True)
class Command:
    """An engine's launch.

    Attributes:
        engine: which one.
        arguments: the words after the program, a model that stands alone among them included.
        environment: the variables it is given.
        folder: where relative paths start.
        where: what it was read from.
        python: the minor version of its interpreter, where a path or name tells.
        unmapped: what has no place.
        ran: whether a script was run to find it.
        made: the text of files that the script made for it, by path.
    """

    engine: EngineName
    arguments: tuple[str, ...]
    environment: dict[str, str]
    folder: Path
    where: str
    python: str | None = None
    unmapped: tuple[Unmapped, ...] = ()
    ran: bool = False
    made: Mapping[str, str] = field(default_factory=dict)


def command_of(found: Found) -> Command | None:
    """The engine's launch in a command; None where it starts something else."""
    state = State(list(found.argv), dict(found.environment), Notes(found.where), found.folder)
    for _ in range(_MOST_PREFIXES):
        while state.words and (match := ASSIGNMENT.match(state.words[0])):
            state.environment[match[1]] = match[2]
            state.words.pop(0)
        if not state.words:
            return None
        engine = _engine(state)
        if engine is not None:
            return Command(
                engine,
                tuple(state.words),
                state.environment,
                state.folder,
                found.where,
                state.python,
                (*found.unmapped, *state.notes.found),
                found.ran,
                found.made,
            )
        prefix = PREFIXES.get(PurePosixPath(state.words[0]).name)
        if prefix is None:
            return None
        name = state.take()
        prefix(state, PurePosixPath(name).name)
    return None


def _engine(state: State) -> EngineName | None:
    """The engine that the next words start, which are then taken away; None where they start something else."""
    name = PurePosixPath(state.words[0]).name
    if match := PYTHON.match(name):
        return _by_python(state, match[1])
    if name in ("sglang", "vllm") and state.words[1:2] == ["serve"]:
        state.words[:2] = []
        return "sglang" if name == "sglang" else "vllm"
    return None


def _by_python(state: State, minor: str | None) -> EngineName | None:
    words = state.words
    if minor is None and (match := _VERSIONED.search(words[0])):
        minor = match[1]
    at = 1
    while at < len(words) and words[at].startswith("-") and not words[at].startswith("-m") and words[at] != "-c":
        at += 2 if words[at] in _PYTHON_VALUES else 1
    if at >= len(words) or words[at] == "-c":
        return None
    if words[at].startswith("-m"):
        module, rest = (words[at][2:], at + 1) if words[at] != "-m" else ("".join(words[at + 1 : at + 2]), at + 2)
        engine = MODULES.get(module)
        program = _PROGRAMS.get(module)
        if engine is None and program is not None and words[rest : rest + 1] == ["serve"]:
            engine, rest = ("sglang" if program == "sglang" else "vllm"), rest + 1
    else:
        engine = next((each for file, each in _FILES.items() if f"/{words[at]}".endswith(f"/{file}")), None)
        rest = at + 1
        if (
            engine is None
            and PurePosixPath(words[at]).name in ("sglang", "vllm")
            and words[rest : rest + 1] == ["serve"]
        ):
            engine, rest = ("sglang" if PurePosixPath(words[at]).name == "sglang" else "vllm"), rest + 1
    if engine is not None:
        words[:rest] = []
        state.python = f"3.{minor}" if minor else None
    return engine


def shell_text(argv: Sequence[str]) -> str | None:
    """The text that `bash -c TEXT` is given, behind any of the prefixes that say nothing; None for another command."""
    words = list(argv)
    while words and PurePosixPath(words[0]).name in ("exec", "nohup", "tini", "dumb-init", "setsid"):
        words.pop(0)
        while words and words[0].startswith("-"):
            words.pop(0)
    if not words or PurePosixPath(words[0]).name not in ("sh", "bash", "dash", "ash"):
        return None
    for at, word in enumerate(words[1:], start=1):
        if re.fullmatch(r"-[A-Za-z]*c", word):
            return words[at + 1] if at + 1 < len(words) else None
        if not word.startswith("-"):
            return None
    return None

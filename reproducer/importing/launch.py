"""What `penny import` reads: which kind it is, and the one launch in it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from reproducer.documents.base import shown
from reproducer.documents.toml import read_text
from reproducer.errors import UsageError
from reproducer.importing.command import Command, command_of
from reproducer.importing.found import Found, NothingFoundError
from reproducer.importing.shell import Reading, read_script

LARGEST = 1 << 20
Kind = Literal["script", "compose", "unit"]
_SERVERS = ("sglang", "vllm", "launch_server", "api_server")


@dataclass(frozen=True)
class Asked:
    """How a launch is to be found.

    Attributes:
        variables: what the launch finds in its environment.
        service: of a compose file.
        pick: which of several launches, from 1; None where one alone is expected.
        accept: asks whether a script may be run, by the reason why reading it is not enough; raises where it may not.
    """

    accept: Callable[[str], None]
    variables: Mapping[str, str] = field(default_factory=dict)
    service: str | None = None
    pick: int | None = None


def of_words(words: tuple[str, ...], asked: Asked, folder: Path) -> Command:
    """The launch in a command line that is words already.

    Raises:
        NothingFoundError: no engine is started.
    """
    return _one([Found(words, dict(asked.variables), folder, "the command line")], asked, "the command line")


def of_text(text: str, asked: Asked, folder: Path) -> Command:
    """The launch in the text of a command line, split without a shell.

    Raises:
        NothingFoundError: no engine is started.
        UsageError: it holds what only a shell can fill in.
    """
    reading = read_script(text, folder=folder, where="the command line", variables=asked.variables, depth=1)
    if not reading.found and reading.stopped is not None:
        raise UsageError(
            "the command line cannot be read without a shell, and none is started",
            where="--command",
            why=reading.stopped.what,
            todo="write out what it stands for",
        )
    return _one(reading.found, asked, "the command line")


def of_file(path: Path, asked: Asked) -> Command:
    """The launch in a script, a compose file or a unit.

    Raises:
        UsageError: there is no such file, or the person must say which launch.
        InvalidDocumentError: it is malformed or too large.
        NothingFoundError: no engine is started.
        NotCheckedError: the script cannot be kept apart from this host.
    """
    text = read_text(path, what="script", limit=LARGEST)
    if "\0" in text:
        raise UsageError("it is no text", where=str(path), todo="name a script, a compose file or a unit")
    kind, folder = kind_of(path, text), path.absolute().parent
    if kind == "compose":
        from reproducer.importing.compose import read_compose

        found = read_compose(text, folder=folder, where=path.name, service=asked.service, variables=asked.variables)
        return _one(list(found), asked, path.name)
    if asked.service is not None:
        raise UsageError("only a compose file has services", where=str(path), todo="leave --service out")
    if kind == "unit":
        from reproducer.importing.units import read_unit

        return _one(list(read_unit(text, folder=folder, where=path.name, variables=asked.variables)), asked, path.name)
    return _of_script(path, text, folder, asked)


def kind_of(path: Path, text: str) -> Kind:
    """What a file is, by its name or by its first lines."""
    suffix = path.suffix.lower()
    if suffix in (".yml", ".yaml"):
        return "compose"
    if suffix == ".service":
        return "unit"
    lines = [
        line.strip() for line in text.splitlines()[:200] if line.strip() and not line.lstrip().startswith(("#", ";"))
    ]
    if lines[:1] in (["[Unit]"], ["[Service]"]):
        return "unit"
    return "compose" if "services:" in lines and not text.startswith("#!") else "script"


def _of_script(path: Path, text: str, folder: Path, asked: Asked) -> Command:
    where = path.name
    reading = read_script(text, folder=folder, where=where, variables=asked.variables, name=str(path.absolute()))
    if not _must_run(reading):
        return _one(reading.found, asked, where)
    asked.accept(str(reading.stopped or reading.other))
    from reproducer.importing.recording import record_script

    return _one(list(record_script(path, text, where=where, variables=asked.variables)), asked, where)


def _must_run(reading: Reading) -> bool:
    """Whether reading alone does not tell which server is started."""
    if reading.stopped is None:
        return not reading.found and bool(reading.other)
    return not reading.found or any(each in reading.rest for each in _SERVERS)


def _one(found: list[Found], asked: Asked, where: str) -> Command:
    commands = [command for each in found if (command := command_of(each)) is not None]
    if not commands:
        first = " ".join(found[0].argv)[:200] if found else ""
        why = f"it starts {shown(first)}" if first else ""
        raise NothingFoundError(
            "nothing of a launch was found",
            where=where,
            why=why,
            todo="name a `sglang serve`, `python -m sglang.launch_server`, `vllm serve` or "
            "`python -m vllm.entrypoints.openai.api_server`",
        )
    if asked.pick is not None:
        if not 1 <= asked.pick <= len(commands):
            raise UsageError(f"there are {len(commands)} launches", where=where, todo="choose one with --pick")
        return commands[asked.pick - 1]
    if len(commands) > 1:
        raise UsageError(
            f"{len(commands)} launches were found",
            where=where,
            why="; ".join(
                f"{number}: {each.engine} {' '.join(each.arguments)[:60]}" for number, each in enumerate(commands, 1)
            ),
            todo="choose one with --pick NUMBER",
        )
    return commands[0]

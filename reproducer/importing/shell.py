"""The first pass over a shell script: it is read, and nothing of it is run.

Assignments, exports, arrays, continuation lines and the commands around a launch are understood; a launch whose words
are then all known has been found. Loops, conditions and functions are not guessed at: the pass ends there and says on
which line, and what remains is to record the script (`recording.py`).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reproducer.documents.base import shown
from reproducer.importing.command import ASSIGNMENT, command_of, shell_text
from reproducer.importing.expansion import Place, Variables, assigned_name
from reproducer.importing.found import Found, Notes
from reproducer.importing.words import NotReadError, Word

_RESERVED = frozenset(
    "if then else elif fi for while until do done case esac select function { } ! [[ (( coproc".split()  # noqa: SIM905
)
_OUTPUT = (">", ">>", "&>", "&>>", ">&", ">|", "<", "<&", "<>")
_SEPARATORS = ("\n", ";", "&", "|", "&&", "||", "|&")
_SILENT = frozenset(
    "echo printf : true wait trap hash date hostname uname id shopt sleep pwd which".split()  # noqa: SIM905
)
_SWITCHES = frozenset(("conda", "mamba", "micromamba", "module", "pyenv", "nvm", "spack", "ml"))
_NOT_LOOKED = "the environment it chooses is not looked into: give --requirements FILE or --engine-version"
_MOST_COMMANDS = 20_000
_HOLE = "\0"  # no word of a command can hold it


@dataclass
class _Line:
    """One simple command of a script."""

    words: list[Word] = field(default_factory=list)
    redirections: list[tuple[str, Word]] = field(default_factory=list)
    ends: str = ""
    line: int = 0


@dataclass
class Reading:
    """What the pass came to.

    Attributes:
        found: the launches, in order.
        stopped: where and why the pass ended before the script did; None where it read all of it.
        rest: the lines that were not read.
        other: a command that would have run and might start a server of its own; empty where there is none.
    """

    found: list[Found] = field(default_factory=list)
    stopped: NotReadError | None = None
    rest: str = ""
    other: str = ""


def read_script(
    text: str, *, folder: Path, where: str, variables: Mapping[str, str] | None = None, name: str = "", depth: int = 0
) -> Reading:
    """Read a script without running anything.

    Args:
        text: the script.
        folder: the folder that it is started in.
        where: its file, for people.
        variables: what it finds in its environment.
        name: what `$0` is.
        depth: how many `bash -c` it lies in.
    """
    reading = Reading()
    state = _Script(Place(folder, where, name or where, depth), text, dict(variables or {}), reading)
    try:
        state.read()
    except NotReadError as error:
        reading.stopped = error
        lines = text.splitlines()
        reading.rest = "\n".join(lines[max(error.line - 1, 0) :])
    return reading


class _Script(Variables):
    """The state of a shell that runs nothing."""

    def __init__(self, place: Place, text: str, variables: dict[str, str], reading: Reading) -> None:
        super().__init__(place, text, variables)
        self.where = place.where
        self.depth = place.depth
        self.notes = Notes(place.where)
        self.reading = reading
        self._own: dict[str, Callable[[list[Word]], None]] = {
            "set": self._options,
            "unset": self._unset,
            "cd": self._cd,
            ":": self._colon,
        }

    def read(self) -> None:
        skip = False
        for count, line in enumerate(self._lines()):
            if count > _MOST_COMMANDS:
                raise NotReadError(line.line, f"there are more than {_MOST_COMMANDS} commands")
            if not skip and self._ends_script(line):
                return
            skip = line.ends == "||"

    def _lines(self) -> Iterator[_Line]:
        line, redirect = _Line(), ""
        for token in self.lexer.tokens():
            if isinstance(token, Word):
                if redirect:
                    line.redirections.append((redirect, token))
                    redirect = ""
                    continue
                if not line.words and token.bare in _RESERVED:
                    raise NotReadError(token.line, f"`{token.bare}`")
                line.line = line.line or token.line
                line.words.append(token)
            elif token.text in _OUTPUT:
                redirect = token.text
                line.line = line.line or token.line
            else:
                if line.words or line.redirections:
                    line.ends = token.text
                    yield line
                line = _Line()
        if line.words or line.redirections:
            yield line

    # ------------------------------------------------------------------------------------------------ commands

    def _ends_script(self, line: _Line) -> bool:
        """Take one command in; whether nothing after it is reached."""
        words = list(line.words)
        own: dict[str, str | NotReadError] = {}
        while words and (name := assigned_name(words[0])):
            word = words.pop(0)
            if word.array is not None:
                self._set_array(word)
            elif words or own:
                self._check_assignable(name[0])
                own[name[0]] = self._added(name, self._value(word, name))
            else:
                self._assign(name, self._value(word, name))
        if own and not words:
            for each, value in own.items():
                self._assign((each, False), value)
        if not words:
            return False
        first = words[0].plain
        if first is not None and (done := self._builtin(first, words[1:], line)) is not None:
            return done
        self._program(words, own, line)
        return first == "exec"

    def _builtin(self, first: str, rest: list[Word], line: _Line) -> bool | None:
        """A command that changes the shell itself, and whether it ends the script; None where it is another one."""
        if first in ("export", "readonly", "declare", "typeset", "local"):
            self._declare(first, rest)
        elif first in ("eval", "alias", "shift", "getopts", "read", "mapfile", "readarray"):
            raise NotReadError(line.line, f"`{first}`")
        elif first in ("test", "[") and line.ends in ("&&", "||"):
            raise NotReadError(line.line, "a condition")
        elif first in (".", "source") or (first in _SWITCHES and [each.plain for each in rest[:1]] != ["run"]):
            self._switched(first, rest, line)
        elif first in self._own:
            self._own[first](rest)
        elif first == "ulimit":
            self._note(line, f"ulimit {self._told(rest)}", "limits of the process have no place in a manifest")
        elif first == "exit":
            return True
        elif first not in _SILENT and first not in ("test", "[") and not (first == "exec" and not rest):
            return None
        return False

    def _switched(self, first: str, rest: list[Word], line: _Line) -> None:
        """Another environment is chosen; another script that is read could do anything."""
        text = self._told(rest)
        if first in (".", "source") and not text.endswith("/activate") and text != "activate":
            raise NotReadError(line.line, f"it reads {shown(text)}")
        self._note(line, f"{first} {text}", _NOT_LOOKED)

    def _unset(self, rest: list[Word]) -> None:
        for each in rest:
            self.values.pop(each.plain or "", None)
            self.arrays.pop(each.plain or "", None)
            self.exported.discard(each.plain or "")

    def _cd(self, rest: list[Word]) -> None:
        self.folder = self._folder(rest)

    def _colon(self, rest: list[Word]) -> None:
        """`: ${NAME:=value}` is there for its effect."""
        for each in rest:
            self._fields(each)

    def _program(self, words: list[Word], own: Mapping[str, "str | NotReadError"], line: _Line) -> None:
        argv, holes = self._argv(words)
        environment, poisoned = self._environment(own)
        where = self.where if self.depth else f"{self.where}, line {line.line}"
        found = Found(tuple(argv), environment, self.folder, where, tuple(self.notes.found))
        if (inner := shell_text(argv)) is not None:
            if holes:
                raise holes[0]
            self._inner(inner, environment, where, line)
        elif holes and (argv[0] == _HOLE or _may_launch(argv)):
            raise holes[0]
        elif command_of(found) is not None:
            if poisoned:
                raise poisoned[0]
            self._launched(found, line)
        elif _may_launch(argv):
            raise NotReadError(line.line, f"`{shown(argv[0])}` may start the server in a way of its own")
        else:
            told = self._told(words)[:200]
            if argv[0] not in _LOOKING:
                self.reading.other = self.reading.other or f"line {line.line}: `{told}` may start the server"
            self._note(line, told, "another command of the script; it was not run")

    def _argv(self, words: list[Word]) -> tuple[list[str], list[NotReadError]]:
        """The words of a command, and what only a shell could fill in."""
        argv: list[str] = []
        holes: list[NotReadError] = []
        for word in words:
            try:
                argv += self._fields(word)
            except NotReadError as error:
                holes.append(error)
                argv.append(_HOLE)
        return argv or [""], holes

    def _environment(self, own: Mapping[str, "str | NotReadError"]) -> tuple[dict[str, str], list[NotReadError]]:
        """The variables that a command is given, and those that only a shell could fill in."""
        environment: dict[str, str] = {}
        poisoned: list[NotReadError] = []
        for name in [*(each for each in self.values if each in self.exported and each not in own), *own]:
            value = own[name] if name in own else self.values[name]
            if isinstance(value, NotReadError):
                poisoned.append(value)
            else:
                environment[name] = value
        return environment, poisoned

    def _launched(self, found: Found, line: _Line) -> None:
        notes = Notes(found.where, list(found.unmapped))
        for operator, word in line.redirections:
            notes.add(f"{operator} {self._told([word])}", "penny keeps the server's output itself")
        if line.ends in ("|", "|&"):
            notes.add(line.ends, "penny keeps the server's output itself; what reads it here has no place")
        for name, at in self.unset.items():
            notes.add(
                f"${name}",
                "it is set nowhere, so it was empty: give --env NAME=VALUE",
                where=f"{self.where}, line {at}",
            )
        self.reading.found.append(Found(found.argv, found.environment, found.folder, found.where, tuple(notes.found)))
        self.notes = Notes(self.where)

    def _inner(self, text: str, environment: dict[str, str], where: str, line: _Line) -> None:
        """`bash -c TEXT`: the text is a script of its own."""
        if self.depth > 2:  # noqa: PLR2004  one for the container, one for the shell in it
            raise NotReadError(line.line, "a shell in a shell in a shell")
        inner = read_script(
            text, folder=self.folder, where=where, variables=environment, name=self.name, depth=self.depth + 1
        )
        self.reading.found += inner.found
        if inner.stopped is not None:
            raise NotReadError(line.line, f"in the text of `-c`: {inner.stopped.what}")

    def _note(self, line: _Line, text: str, why: str) -> None:
        self.notes.add(text, why, where=f"{self.where}, line {line.line}")


_SERVERS = re.compile(r"(?:^|/)(?:sglang|vllm)$|launch_server|api_server|^(?:sglang|vllm)\b")


def _may_launch(argv: list[str]) -> bool:
    """Whether a command that penny does not know names a server among its words."""
    names = [each for each in argv if not each.startswith("-") and not ASSIGNMENT.match(each)]
    return any(_SERVERS.search(each) for each in names) and argv[0] not in _LOOKING


_LOOKING = frozenset(
    [
        "pip",
        "pip3",
        "pkill",
        "killall",
        "pgrep",
        "grep",
        "ps",
        "which",
        "git",
        "mkdir",
        "rm",
        "ls",
        "cat",
        "tail",
        "head",
        "cp",
        "mv",
        "ln",
        "du",
        "df",
        "hf",
        "huggingface-cli",
    ]
)

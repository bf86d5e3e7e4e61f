"""The first pass over a shell script: it is read, and nothing of it is run.

Assignments, exports, arrays, continuation lines and the commands around a launch are understood; a launch whose words
are then all known has been found. Loops, conditions and functions are not guessed at: the pass ends there and says on
which line, and what remains is to record the script (`recording.py`).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from reproducer.documents.base import shown
from reproducer.importing.command import ASSIGNMENT, command_of, shell_text
from reproducer.importing.found import Found, Notes
from reproducer.importing.words import Lexer, NotReadError, Piece, Word

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
_SCRIPT_FOLDER = re.compile(
    r"""^[$]\( \s* (?:cd \s+ (?:-P\s+)? (?:--\s+)? "?[$]\( \s* )? dirname \s+ (?:--\s+)?
        "?[$](?:0|\{0\}|BASH_SOURCE|\{BASH_SOURCE(?:\[0\])?\})"? \s* \)
        (?: "? \s* (?:>\s*/dev/null(?:\s*2>&1)?)? \s* && \s* pwd (?:\s+-P)? \s* \) )?$""",
    re.VERBOSE,
)
_MOST_COMMANDS = 20_000
_MOST_ITEMS = 10_000
_LONGEST = 1 << 20
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
    state = _Script(_Place(folder, where, name or where, depth), text, dict(variables or {}), reading)
    try:
        state.read()
    except NotReadError as error:
        reading.stopped = error
        lines = text.splitlines()
        reading.rest = "\n".join(lines[max(error.line - 1, 0) :])
    return reading


@dataclass(frozen=True)
class _Place:
    """Where a script stands: its folder, its file, what `$0` is, how many `bash -c` it lies in."""

    folder: Path
    where: str
    name: str
    depth: int


class _Script:
    """The state of a shell that runs nothing."""

    def __init__(self, place: _Place, text: str, variables: dict[str, str], reading: Reading) -> None:
        self.lexer = Lexer(text)
        self.folder = self.start = place.folder
        self.where = place.where
        self.name = place.name
        self.depth = place.depth
        self.values: dict[str, str | NotReadError] = dict(variables)
        self.arrays: dict[str, list[str] | NotReadError] = {}
        self.exported = set(variables)
        self.all_exported = False
        self.strict = False
        self.notes = Notes(place.where)
        self.unset: dict[str, int] = {}
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
        while words and (name := _assigned(words[0])):
            word = words.pop(0)
            if word.array is not None:
                self._set_array(word)
            elif words or own:
                own[name[0]] = self._value(word, name)
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

    # ------------------------------------------------------------------------------------------------ variables

    def _declare(self, first: str, rest: list[Word]) -> None:
        exports = first == "export"
        for word in rest:
            text = word.plain
            if text is not None and text.startswith("-") and not _assigned(word):
                if set(text[1:]) & set("AianfpF") and (first != "declare" or text != "-a"):
                    raise NotReadError(word.line, f"`{first} {text}`")
                exports = exports or "x" in text
                continue
            name = _assigned(word)
            if name is None:
                for each in self._fields(word):
                    if exports:
                        self.exported.add(each)
            elif word.array is not None:
                self._set_array(word)
            else:
                self._assign(name, self._value(word, name))
                if exports:
                    self.exported.add(name[0])

    def _assign(self, name: tuple[str, bool], value: "str | NotReadError") -> None:
        before = self.values.get(name[0], "")
        if name[1] and isinstance(value, str):
            value = before if isinstance(before, NotReadError) else before + value
        if isinstance(value, str) and len(value) > _LONGEST:
            value = NotReadError(self.lexer.line, f"the value of ${name[0]} is longer than {_LONGEST} characters")
        self.values[name[0]] = value
        self.arrays.pop(name[0], None)
        if self.all_exported:
            self.exported.add(name[0])

    def _set_array(self, word: Word) -> None:
        text = "".join(each.text for each in word.pieces)
        name, more = text.rstrip("+="), text.endswith("+=")
        try:
            items = [each for inner in word.array or () for each in self._fields(inner)]
        except NotReadError as error:
            self.arrays[name] = error
            return
        before = self.arrays.get(name, [])
        if isinstance(before, NotReadError):
            return
        items = [*before, *items] if more else items
        if len(items) > _MOST_ITEMS:
            raise NotReadError(word.line, f"an array of more than {_MOST_ITEMS} words")
        self.arrays[name] = items

    def _value(self, word: Word, name: tuple[str, bool]) -> "str | NotReadError":
        """The value of an assignment; a hole in it is an error only where the value is used."""
        skip = len(name[0]) + (2 if name[1] else 1)
        try:
            return "".join(self._expanded(_dropped(word.pieces, skip), word.line, assigned=True))
        except NotReadError as error:
            return error

    def _options(self, rest: list[Word]) -> None:
        words = [each.plain or "" for each in rest]
        if not words or (words[0] == "--" and len(words) > 1) or not words[0].startswith(("-", "+")):
            raise NotReadError(self.lexer.line, "the arguments of the script are set")
        for at, word in enumerate(words):
            if word in ("allexport", "nounset") and at:
                setattr(self, "all_exported" if word == "allexport" else "strict", words[at - 1].startswith("-"))
            elif word[:1] in "-+" and not word.startswith("--"):
                if "a" in word:
                    self.all_exported = word[0] == "-"
                if "u" in word:
                    self.strict = word[0] == "-"

    def _folder(self, rest: list[Word]) -> Path:
        fields = [each for word in rest for each in self._fields(word) if each not in ("--", "-P", "-L")]
        if not fields:
            home = self.values.get("HOME", "/")
            return Path(home) if isinstance(home, str) else self.folder
        if fields == ["-"]:
            raise NotReadError(rest[0].line, "`cd -`")
        return self.folder / fields[0]

    # ------------------------------------------------------------------------------------------------ expansion

    def _told(self, words: list[Word]) -> str:
        """Words as a person may read them, holes as they stand."""
        parts = []
        for word in words:
            try:
                parts += self._fields(word)
            except NotReadError:
                parts.append("".join(each.text for each in word.pieces))
        return " ".join(parts)

    def _fields(self, word: Word) -> list[str]:
        """What a word becomes: one field, none, or several where it is not quoted."""
        if any(
            each.kind == "text" and not each.quoted and re.search(r"[*?]|\[.+\]", each.text) for each in word.pieces
        ):
            raise NotReadError(word.line, "a pattern over file names")
        if any(each.kind == "splice" for each in word.pieces) or any(
            each.kind == "parameter" and each.text in "@*" for each in word.pieces
        ):
            return self._spliced(word)
        fields: list[str] = []
        current: str | None = None
        for piece, text in zip(word.pieces, self._expanded(word.pieces, word.line), strict=True):
            if piece.kind == "text" or piece.quoted:
                current = (current or "") + text
                continue
            if re.search(r"[*?\[]", text):
                raise NotReadError(word.line, f"the value of ${piece.text} is a pattern over file names")
            current = _split_into(fields, current, text)
        if current is not None:
            fields.append(current)
        return fields

    def _spliced(self, word: Word) -> list[str]:
        if len(word.pieces) != 1:
            raise NotReadError(word.line, "an array inside a word")
        piece = word.pieces[0]
        if piece.kind == "parameter":  # `$@`: a script that is imported is given no arguments
            return []
        items = self.arrays.get(piece.text, [])
        if isinstance(items, NotReadError):
            raise items
        return list(items) if piece.quoted else [each for item in items for each in item.split()]

    def _expanded(self, pieces: tuple[Piece, ...], line: int, *, assigned: bool = False) -> list[str]:
        texts: list[str] = []
        size = 0
        for at, piece in enumerate(pieces):
            if piece.kind == "text":
                home = not piece.quoted and at == 0 and piece.text.startswith("~")
                text = self._home(piece.text, line) if home else piece.text
            elif piece.kind == "parameter":
                text = self._parameter(piece, line)
            elif piece.kind == "hole":
                text = self._filled(piece, line)
            else:
                text = self._joined(piece, line, assigned=assigned)
            texts.append(text)
            size += len(text)
            if size > _LONGEST:
                raise NotReadError(line, f"a word of more than {_LONGEST} characters")
        return texts

    def _filled(self, piece: Piece, line: int) -> str:
        """The two substitutions whose output is known: the folder of the script, and the one it is in."""
        if _SCRIPT_FOLDER.match(piece.text):
            return str(self._script_folder())
        if piece.text in ("$(pwd)", "`pwd`"):
            return str(self.folder)
        raise NotReadError(line, f"{shown(piece.text)} is a command whose output is used")

    def _joined(self, piece: Piece, line: int, *, assigned: bool) -> str:
        """An array as one text, which it is in an assignment only."""
        if not assigned:
            raise NotReadError(line, "an array inside a word")
        items = self.arrays.get(piece.text, [])
        if isinstance(items, NotReadError):
            raise items
        return " ".join(items)

    def _script_folder(self) -> Path:
        return (self.start / self.name).parent

    def _home(self, text: str, line: int) -> str:
        if text != "~" and not text.startswith("~/"):
            raise NotReadError(line, "another person's home")
        home = self.values.get("HOME", "~")
        return f"{home if isinstance(home, str) else '~'}{text[1:]}"

    def _parameter(self, piece: Piece, line: int) -> str:
        name = piece.text
        value = self._looked_up(name, line)
        missing = value is None or (not value and piece.operator.startswith(":"))
        kind = piece.operator[-1:]
        if kind == "+":
            return "" if missing else "".join(self._expanded(piece.other, line))
        if not missing:
            return value or ""
        if kind in ("-", "="):
            text = "".join(self._expanded(piece.other, line))
            if kind == "=":
                self.values[name] = text
            return text
        if kind == "?":
            _stop(line, f"${name} must be given: pass --env {name}=VALUE")
        if value is None and name.isidentifier():
            if self.strict:
                _stop(line, f"${name} is set nowhere and the script ends there (set -u): pass --env {name}=VALUE")
            self.unset.setdefault(name, line)
        return ""

    def _looked_up(self, name: str, line: int) -> str | None:
        if name == "0":
            return self.name
        if name.isdigit():
            return None
        if name in ("#", "@", "*"):
            return "0" if name == "#" else ""
        if name in ("?", "$", "!", "-", "RANDOM", "LINENO", "SECONDS", "BASHPID"):
            raise NotReadError(line, f"${name} is known to a shell that runs only")
        if name == "BASH_SOURCE":
            return self.name
        if name == "PWD":
            return str(self.folder)
        value = self.values.get(name)
        if isinstance(value, NotReadError):
            raise value
        return value


def _stop(line: int, what: str) -> NoReturn:
    raise NotReadError(line, what)


def _assigned(word: Word) -> tuple[str, bool] | None:
    """The name that a word assigns to, and whether it adds to the value."""
    if not word.pieces or word.pieces[0].kind != "text" or word.pieces[0].quoted:
        return None
    match = re.match(r"^([A-Za-z_][A-Za-z0-9_]*)(\+?)=", word.pieces[0].text)
    return (match[1], bool(match[2])) if match else None


def _dropped(pieces: tuple[Piece, ...], count: int) -> tuple[Piece, ...]:
    """The pieces behind the name and the sign of an assignment."""
    first = pieces[0]
    rest = Piece("text", first.text[count:], first.quoted)
    return (rest, *pieces[1:]) if rest.text else pieces[1:]


def _split_into(fields: list[str], current: str | None, text: str) -> str | None:
    """Split the value of an unquoted parameter at its blanks; what is left open at its end."""
    parts = text.split()
    if not parts:
        if text and current is not None:
            fields.append(current)
            return None
        return current
    if text[0].isspace() and current is not None:
        fields.append(current)
        current = None
    fields += [(current or "") + parts[0], *parts[1:]] if len(parts) > 1 else []
    last = fields.pop() if len(parts) > 1 else (current or "") + parts[0]
    if text[-1].isspace():
        fields.append(last)
        return None
    return last


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

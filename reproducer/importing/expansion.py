"""The variables of a shell that runs nothing, and what a word becomes with them.

Assignments, exports, arrays and expansions are followed by a shell's rules; what only a shell that runs can know is
`NotReadError`, and for the value of a variable it is one only where that value is used.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from reproducer.documents.base import shown
from reproducer.importing.words import Lexer, NotReadError, Piece, Word

_SCRIPT_FOLDER = re.compile(
    r"""^[$]\( \s* (?:cd \s+ (?:-P\s+)? (?:--\s+)? "?[$]\( \s* )? dirname \s+ (?:--\s+)?
        "?[$](?:0|\{0\}|BASH_SOURCE|\{BASH_SOURCE(?:\[0\])?\})"? \s* \)
        (?: "? \s* (?:>\s*/dev/null(?:\s*2>&1)?)? \s* && \s* pwd (?:\s+-P)? \s* \) )?$""",
    re.VERBOSE,
)
_MOST_ITEMS = 10_000
_LONGEST = 1 << 20


@dataclass(frozen=True)
class Place:
    """Where a script stands: its folder, its file, what `$0` is, how many `bash -c` it lies in."""

    folder: Path
    where: str
    name: str
    depth: int


class Variables:
    """What a script has set so far."""

    def __init__(self, place: Place, text: str, variables: dict[str, str]) -> None:
        self.lexer = Lexer(text)
        self.folder = self.start = place.folder
        self.name = place.name
        self.values: dict[str, str | NotReadError] = dict(variables)
        self.arrays: dict[str, list[str] | NotReadError] = {}
        self.exported = set(variables)
        self.all_exported = False
        self.strict = False
        self.unset: dict[str, int] = {}
        self.fixed: set[str] = set()

    # ------------------------------------------------------------------------------------------------ variables

    def _declare(self, first: str, rest: list[Word]) -> None:
        marks = {"export": [self.exported], "readonly": [self.fixed]}.get(first, [])
        for word in rest:
            text = word.plain
            if text is not None and text.startswith("-") and not assigned_name(word):
                if set(text[1:]) & set("AianfpF") and (first != "declare" or text != "-a"):
                    raise NotReadError(word.line, f"`{first} {text}`")
                marks += [*([self.exported] if "x" in text else []), *([self.fixed] if "r" in text else [])]
                continue
            name = assigned_name(word)
            if name is None:
                for each in self._fields(word):
                    for mark in marks:
                        mark.add(each)
            elif word.array is not None:
                self._set_array(word)
            else:
                self._assign(name, self._value(word, name))
                for mark in marks:
                    mark.add(name[0])

    def _assign(self, name: tuple[str, bool], value: "str | NotReadError") -> None:
        self._check_assignable(name[0])
        value = self._added(name, value)
        if isinstance(value, str) and len(value) > _LONGEST:
            value = NotReadError(self.lexer.line, f"the value of ${name[0]} is longer than {_LONGEST} characters")
        self.values[name[0]] = value
        self.arrays.pop(name[0], None)
        if self.all_exported:
            self.exported.add(name[0])

    def _check_assignable(self, name: str) -> None:
        if name in self.fixed:
            raise NotReadError(self.lexer.line, f"${name} is read-only and assigned")
        if name == "IFS":
            raise NotReadError(self.lexer.line, "words are split at other characters ($IFS)")

    def _added(self, name: tuple[str, bool], value: "str | NotReadError") -> "str | NotReadError":
        """The value of an assignment, behind the value before where it is `+=`."""
        before = self.values.get(name[0], "")
        if not name[1] or isinstance(value, NotReadError):
            return value
        return before if isinstance(before, NotReadError) else before + value

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
        for piece, text, whole in self._texts(word.pieces, word.line):
            if whole:
                current = (current or "") + text
                continue
            if re.search(r"[*?\[]", text):
                raise NotReadError(word.line, f"the value of ${piece.text} is a pattern over file names")
            current = _split_into(fields, current, text)
        if current is not None:
            fields.append(current)
        return fields

    def _texts(self, pieces: tuple[Piece, ...], line: int, *, inner: bool = False) -> Iterator[tuple[Piece, str, bool]]:
        """Each part of a word with its text, and whether no blank in it separates words.

        The word behind `${NAME:-` keeps its own quotes where the parameter has none.
        """
        for piece, text in zip(pieces, self._expanded(pieces, line), strict=True):
            if piece.kind == "parameter" and not piece.quoted and self._other_taken(piece, line):
                yield from self._texts(piece.other, line, inner=True)
            else:
                yield piece, text, piece.quoted or (piece.kind == "text" and not inner)

    def _other_taken(self, piece: Piece, line: int) -> bool:
        value = self._looked_up(piece.text, line)
        missing = value is None or (not value and piece.operator.startswith(":"))
        return missing if piece.operator[-1:] == "-" else piece.operator[-1:] == "+" and not missing

    def _spliced(self, word: Word) -> list[str]:
        if len(word.pieces) != 1:
            raise NotReadError(word.line, "an array inside a word")
        piece = word.pieces[0]
        if piece.kind == "parameter":  # `$@`: a script that is imported is given no arguments
            return [""] if piece.quoted and piece.text == "*" else []
        items = self.arrays.get(piece.text, [])
        if isinstance(items, NotReadError):
            raise items
        if piece.quoted and piece.operator == "*":
            return [" ".join(items)]
        return list(items) if piece.quoted else [each for item in items for each in item.split()]

    def _expanded(self, pieces: tuple[Piece, ...], line: int, *, assigned: bool = False) -> list[str]:
        texts: list[str] = []
        size = 0
        for at, piece in enumerate(pieces):
            if piece.kind == "text":
                last = at == len(pieces) - 1
                text = piece.text if piece.quoted else self._homes(piece.text, line, (at == 0, last, assigned))
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

    def _homes(self, text: str, line: int, place: tuple[bool, bool, bool]) -> str:
        """Text with the homes it names: at its start, and in an assignment behind every colon.

        `place` says whether the text begins its word, ends it, and is assigned.
        """
        first, last, assigned = place
        parts = text.split(":") if assigned else [text]
        for at, part in enumerate(parts):
            if part.startswith("~") and (first or at):
                if part == "~" and at == len(parts) - 1 and not last:
                    raise NotReadError(line, "a ~ before a quote or a parameter")
                parts[at] = self._home(part, line)
        return ":".join(parts)

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
                self._assign((name, False), text)
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
        if name in ("?", "$", "!", "-", "RANDOM", "LINENO", "SECONDS", "BASHPID", "_"):
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


def assigned_name(word: Word) -> tuple[str, bool] | None:
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

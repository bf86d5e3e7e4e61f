"""Words of a shell, read by its rules and never run: quotes, continuation lines, parameters, redirections, arrays.

What only a shell can know (a command substitution, a pattern over file names) stays in the word as a hole with its
reason, and whoever needs that word learns it there. What cannot be read at all is `NotReadError`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "parameter", "hole", "splice"]
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIAL = "@*#?$!-"
_BLANK = " \t"
_META = " \t\n;&|<>()"
_PARAMETER = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])(:?[-=+?])?", re.DOTALL)
_ARRAY = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)\[[@*]\]$")
_DEEPEST = 20


class NotReadError(Exception):
    """What stands on a line can only be understood by running it."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")
        self.line = line
        self.what = what


@dataclass(frozen=True)
class Piece:
    """A part of a word.

    Attributes:
        kind: `text`; a `parameter` with its operator; a `splice` of a whole array; a `hole` that only a shell fills.
        text: the text, the parameter's name, or the source of the hole.
        quoted: whether no blank in it separates words.
        operator: such as `:-`, with its word in `other`.
    """

    kind: Kind
    text: str
    quoted: bool = True
    operator: str = ""
    other: tuple["Piece", ...] = ()


@dataclass(frozen=True)
class Word:
    """One word; `array` holds the words between the brackets of `NAME=(...)`."""

    pieces: tuple[Piece, ...]
    line: int
    array: "tuple[Word, ...] | None" = None

    @property
    def plain(self) -> str | None:
        """Its text where it holds nothing to expand."""
        return "".join(each.text for each in self.pieces) if all(each.kind == "text" for each in self.pieces) else None

    @property
    def bare(self) -> str:
        """Its text where no part of it is quoted, for words that mean something to the shell."""
        unquoted = all(each.kind == "text" and not each.quoted for each in self.pieces)
        return "".join(each.text for each in self.pieces) if unquoted else ""


@dataclass(frozen=True)
class Operator:
    """`;`, `&`, `|`, `&&`, `||`, a line's end, or a redirection."""

    text: str
    line: int


class Lexer:
    """Reads one token after another, so that what a script ends with is not looked at before it matters."""

    def __init__(self, text: str, *, line: int = 1, depth: int = 0) -> None:
        self.text = text.replace("\r\n", "\n")
        self.at = 0
        self.line = line
        self._depth = depth
        self._in_array = False
        if depth > _DEEPEST:
            raise NotReadError(line, "it is nested too deep")

    def tokens(self) -> Iterator[Word | Operator]:
        """Every token in order; raises NotReadError where a shell would have to run."""
        while True:
            self._blanks()
            if self.at >= len(self.text):
                return
            character = self.text[self.at]
            if character == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif character == "\n":
                self.at += 1
                yield Operator("\n", self.line)
                self.line += 1
            elif character in ";&|<>()":
                yield self._operator()
            else:
                word = self._word()
                follows = self.text[self.at : self.at + 1]
                if word.bare.isdigit() and follows in ("<", ">"):
                    continue  # the number of a descriptor in front of a redirection
                yield word

    def _blanks(self) -> None:
        while self.at < len(self.text):
            if self.text[self.at] in _BLANK:
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
                self.line += 1
            else:
                return

    def _operator(self) -> Operator:
        for text in ("<<<", "<<-", "&>>", "<<", ">>", "&>", ">&", "<&", ">|", "<>", "&&", "||", ";;", "|&"):
            if self.text.startswith(text, self.at):
                break
        else:
            text = self.text[self.at]
        here = self.line
        if text in ("<<", "<<-", "<<<"):
            raise NotReadError(here, "a here-document")
        if text == ";;":
            raise NotReadError(here, "a case")
        if text in "()" or (text in "<>" and self.text.startswith("(", self.at + 1)):
            raise NotReadError(here, "a subshell, a function or a process substitution")
        self.at += len(text)
        return Operator(text, here)

    def _word(self) -> Word:
        start, pieces = self.line, list[Piece]()
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in _META:
                if character == "(" and not self._in_array and _opens_array(pieces):
                    self._in_array = True
                    array = self._array()
                    self._in_array = False
                    return Word(tuple(pieces), start, array=array)
                if character == "(":
                    raise NotReadError(self.line, "a subshell or a function")
                break
            pieces += self._piece(character)
        _refuse_braces(pieces, start)
        return Word(tuple(pieces), start)

    def _piece(self, character: str) -> list[Piece]:
        if character == "'":
            return [Piece("text", self._single())]
        if character == '"':
            self.at += 1
            return self._double() or [Piece("text", "")]
        if character in "`$":
            return [self._backquotes() if character == "`" else self._dollar(quoted=False)]
        if character == "\\":
            return self._escaped()
        end = self.at + 1
        while end < len(self.text) and self.text[end] not in _META + "'\"\\`$":
            end += 1
        text, self.at = self.text[self.at : end], end
        return [Piece("text", text, quoted=False)]

    def _escaped(self) -> list[Piece]:
        """A backslash and what follows it; at a line's end both go."""
        text = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if text == "\n":
            self.line += 1
            return []
        return [Piece("text", text)]

    def _single(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise NotReadError(self.line, "a quote is not closed")
        text, self.at = self.text[self.at + 1 : end], end + 1
        self.line += text.count("\n")
        return text

    def _double(self) -> list[Piece]:
        """What stands between double quotes, of which the first was read."""
        pieces: list[Piece] = []
        kept = ""
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == '"':
                self.at += 1
                return [*pieces, Piece("text", kept)] if kept else pieces
            if character in "$`":
                if kept:
                    pieces.append(Piece("text", kept))
                    kept = ""
                pieces.append(self._dollar(quoted=True) if character == "$" else self._backquotes())
                continue
            if character == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                self.at += 1
                character = "" if self.text[self.at] == "\n" else self.text[self.at]
                self.line += not character
            self.line += character == "\n"
            kept += character
            self.at += 1
        raise NotReadError(self.line, "a quote is not closed")

    def _dollar(self, *, quoted: bool) -> Piece:
        rest = self.text[self.at + 1 : self.at + 2]
        if rest == "(":
            return self._substitution(quoted=quoted)
        if rest == "{":
            return self._braced(quoted=quoted)
        if rest in ("'", '"') and rest and not quoted:
            raise NotReadError(self.line, f"a $ before {rest}")
        if match := NAME.match(self.text, self.at + 1):
            self.at = match.end()
            return Piece("parameter", match[0], quoted)
        if rest and (rest in _SPECIAL or rest.isdigit()):
            self.at += 2
            return Piece("parameter", rest, quoted)
        self.at += 1
        return Piece("text", "$", quoted)

    def _braced(self, *, quoted: bool) -> Piece:
        start = self.at
        end = self._closing("{", "}")
        inside = self.text[start + 2 : end]
        if match := _ARRAY.match(inside):
            return Piece("splice", match[1], quoted, "*" if inside.endswith("[*]") else "")
        match = _PARAMETER.match(inside)
        if match is None or (match[2] is None and match.end() != len(inside)):
            return Piece("hole", self.text[start : self.at], quoted)
        if match[2] is None:
            return Piece("parameter", match[1], quoted)
        other = _parts(inside[match.end() :], self.line, self._depth + 1, quoted=quoted)
        return Piece("parameter", match[1], quoted, match[2], other)

    def _substitution(self, *, quoted: bool) -> Piece:
        start = self.at
        self._closing("(", ")")
        return Piece("hole", self.text[start : self.at], quoted)

    def _backquotes(self) -> Piece:
        end = self.at + 1
        while end < len(self.text) and self.text[end] != "`":
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text):
            raise NotReadError(self.line, "a quote is not closed")
        text, self.at = self.text[self.at : end + 1], end + 1
        self.line += text.count("\n")
        return Piece("hole", text)

    def _closing(self, opening: str, closing: str) -> int:
        """Go behind the bracket that closes the one after a `$`; where it stands."""
        depth, at, double = 0, self.at + 1, False
        while at < len(self.text):
            character = self.text[at]
            if character == "\\":
                at += 1
            elif character == '"':
                double = not double
            elif character == "'" and not double:
                at = self.text.find("'", at + 1)
                if at < 0:
                    break
            elif character == opening:
                depth += 1
            elif character == closing:
                depth -= 1
                if depth == 0:
                    self.line += self.text.count("\n", self.at, at)
                    self.at = at + 1
                    return at
            at += 1
        raise NotReadError(self.line, f"a {opening} is not closed")

    def _array(self) -> "tuple[Word, ...]":
        self.at += 1
        words: list[Word] = []
        while self.at < len(self.text):
            self._blanks()
            character = self.text[self.at : self.at + 1]
            if character == ")":
                self.at += 1
                return tuple(words)
            if character == "\n":
                self.at += 1
                self.line += 1
            elif character == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif not character or character in _META:
                break
            else:
                word = self._word()
                if word.array is not None or word.bare.startswith("["):
                    raise NotReadError(word.line, "an array with keys")
                words.append(word)
        raise NotReadError(self.line, "an array that is not closed")


def _opens_array(pieces: list[Piece]) -> bool:
    text = "".join(each.text for each in pieces)
    return all(each.kind == "text" and not each.quoted for each in pieces) and bool(
        re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*\+?=", text)
    )


def _parts(text: str, line: int, depth: int, *, quoted: bool) -> tuple[Piece, ...]:
    """The word behind an operator of a parameter; blanks in it do not end it."""
    lexer = Lexer(text, line=line, depth=depth)
    pieces: list[Piece] = []
    while lexer.at < len(text):
        character = text[lexer.at]
        if character in _META or (quoted and character == "'"):
            pieces.append(Piece("text", character, quoted))
            lexer.at += 1
        else:
            pieces += lexer._piece(character)  # noqa: SLF001  the same class, one word further
    return tuple(pieces)


def _refuse_braces(pieces: list[Piece], line: int) -> None:
    """`{a,b}` and `{1..3}` outside quotes make several words."""
    text = "".join(each.text if each.kind == "text" and not each.quoted else "\0" for each in pieces)
    if any("," in each or ".." in each for each in re.findall(r"\{([^{}]*)\}", text)):
        raise NotReadError(line, "a brace expansion")

"""Reading unified-diff patch files strictly: text changes to plain files below the tree, and nothing else."""

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from reproducer.documents.base import shown
from reproducer.errors import DriftError, UnsafeInputError

_HUNK = re.compile(rb"^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(?: .*)?\r?$")
_FORBIDDEN = {
    b"GIT binary patch": "a binary patch",
    b"Binary files ": "a binary patch",
    b"Files ": "a binary patch",
    b"Only in ": "a file that one side lacks",
}
# A mail's text above the first file may use these words.
_FORBIDDEN_IN_HEADERS = {
    **_FORBIDDEN,
    b"similarity ": "a rename or copy",
    b"dissimilarity ": "a rewrite",
    b"rename ": "a rename",
    b"copy ": "a copy",
    b"old mode ": "a mode change",
    b"new mode ": "a mode change",
}
_MODE_LINES = (b"new file mode ", b"deleted file mode ")
_MODES = {b"100644": False, b"100755": True}
_NO_NEWLINE = b"\\ No newline at end of file"
_SIGNATURE = b"-- "


@dataclass
class Hunk:
    """One hunk as its header states it; `lines` are (sign, content with its newline)."""

    number: int
    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: list[tuple[bytes, bytes]] = field(default_factory=list)


@dataclass
class FilePatch:
    """What one patch file does to one file."""

    path: str
    creates: bool
    deletes: bool
    executable: bool
    hunks: list[Hunk] = field(default_factory=list)


def parse_patch(data: bytes, *, where: str) -> tuple[FilePatch, ...]:
    """The file patches of one unified diff.

    Raises:
        UnsafeInputError: paths that leave, renames, links, mode changes, binary content.
        DriftError: not a unified diff, or its counts do not fit its lines.
    """
    return _Parser(data, where).parse()


class _Parser:
    """One pass over the lines; `index` is the line that comes next."""

    def __init__(self, data: bytes, where: str) -> None:
        self.lines = data.split(b"\n")
        if not self.lines[-1]:
            self.lines.pop()
        self.where = where
        self.index = 0
        self.mode: bytes | None = None
        self.patches: list[FilePatch] = []

    @property
    def place(self) -> str:
        return f"{self.where}, line {self.index + 1}"

    def parse(self) -> tuple[FilePatch, ...]:
        started = False
        while self.index < len(self.lines):
            line = self.lines[self.index]
            if self._names_a_file():
                started = True
                self._file()
                continue
            started = started or line.startswith(b"diff ")
            self._header(line, started=started)
            self.index += 1
        self._settle_mode()
        if not self.patches:
            raise DriftError("changes no file", where=self.where, why="no `---` and `+++` pair in it")
        return tuple(self.patches)

    def _names_a_file(self) -> bool:
        pair = self.lines[self.index : self.index + 2]
        return len(pair) == 2 and pair[0].startswith(b"--- ") and pair[1].startswith(b"+++ ")  # noqa: PLR2004  a pair

    def _header(self, line: bytes, *, started: bool) -> None:
        """One line outside hunks."""
        for start, kind in (_FORBIDDEN_IN_HEADERS if started else _FORBIDDEN).items():
            if line.startswith(start):
                raise UnsafeInputError(f"{kind} is not allowed in a patch", where=self.place)
        if line.startswith(b"diff "):
            self._settle_mode()
        elif started and line.startswith(_MODE_LINES):
            self.mode = line.rsplit(b" ", 1)[1]
            if self.mode not in _MODES:
                mode = shown(text_of(self.mode))
                raise UnsafeInputError(f"mode {mode} is no plain file's", where=self.place)
        elif started and line.strip() and not line.startswith(b"index ") and not self._is_signature():
            raise DriftError("not part of a unified diff", where=self.place, why=f"got {shown(text_of(line))}")

    def _is_signature(self) -> bool:
        """Whether this is one of the two lines with which git ends a mailed patch."""
        rest = [line for line in self.lines[self.index :] if line.strip()]
        return self.lines[self.index] == _SIGNATURE or (len(rest) == 1 and self.lines[self.index - 1] == _SIGNATURE)

    def _settle_mode(self) -> None:
        """Refuse a header that creates or deletes a file and then shows no lines of it."""
        if self.mode is not None:
            raise DriftError(
                "creates or deletes a file without showing its lines",
                where=self.place,
                why="an empty file cannot be told from a patch that was cut short",
            )

    def _file(self) -> None:
        old = self._name()
        new = self._name()
        path = new if new is not None else old
        if path is None or (old is not None and new is not None and old != new):
            raise UnsafeInputError("a patch must change one file in its place", where=self.place, why=f"{old} to {new}")
        patch = FilePatch(path, old is None, new is None, _MODES.get(self.mode or b"", False))
        self.mode = None
        while self.index < len(self.lines) and (match := _HUNK.match(self.lines[self.index])):
            patch.hunks.append(self._hunk(len(patch.hunks) + 1, match))
        if not patch.hunks:
            raise DriftError(f"shows no hunk for {path}", where=self.place)
        self.patches.append(patch)

    def _name(self) -> str | None:
        """The path of a `---` or `+++` line without its `a/` or `b/`; None for /dev/null."""
        raw = self.lines[self.index][4:].split(b"\t", 1)[0].rstrip(b"\r")
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UnsafeInputError("a path is not UTF-8", where=self.place) from error
        prefix, _, rest = text.partition("/")
        if text == "/dev/null":
            self.index += 1
            return None
        if text.startswith('"') or prefix not in ("a", "b") or ".." in PurePosixPath(text).parts:
            raise UnsafeInputError(
                f"path {shown(text)} is not a path below a/ or b/",
                where=self.place,
                why="a patch must stay inside the source tree",
            )
        plain = rest and str(PurePosixPath(rest)) == rest and not rest.startswith("/")
        if not plain or "\\" in rest or any(character < " " for character in rest):
            raise UnsafeInputError(f"path {shown(text)} is not a plain path", where=self.place)
        self.index += 1
        return rest

    def _hunk(self, number: int, match: re.Match[bytes]) -> Hunk:
        """Read exactly as many lines as the header counts; a line's newline is part of it."""
        old_start, old, new_start, new = (1 if group is None else int(group) for group in match.groups())
        hunk = Hunk(number, old_start, old, new_start, new)
        self.index += 1
        while old > 0 or new > 0:
            if self.index >= len(self.lines):
                raise DriftError(
                    f"hunk {number} is cut short", where=self.place, why=f"{old} old and {new} new lines are missing"
                )
            line = self.lines[self.index]
            sign, content = (line[:1], line[1:]) if line else (b" ", b"")
            if line == _NO_NEWLINE:
                self._drop_newline(hunk)
                continue
            if sign not in (b" ", b"-", b"+"):
                raise DriftError(f"a line of hunk {number} has no sign", where=self.place, why=shown(text_of(line)))
            old -= sign != b"+"
            new -= sign != b"-"
            hunk.lines.append((sign, content + b"\n"))
            self.index += 1
        if old or new:
            raise DriftError(f"the counts of hunk {number} do not fit its lines", where=self.place)
        if self.index < len(self.lines) and self.lines[self.index] == _NO_NEWLINE:
            self._drop_newline(hunk)
        return hunk

    def _drop_newline(self, hunk: Hunk) -> None:
        if not hunk.lines or not hunk.lines[-1][1].endswith(b"\n"):
            raise DriftError("a missing newline is stated for no line", where=self.place)
        sign, content = hunk.lines[-1]
        hunk.lines[-1] = (sign, content[:-1])
        self.index += 1


def text_of(line: bytes) -> str:
    """A line of a patch as text for an error."""
    return line.decode("utf-8", "backslashreplace").rstrip("\n")

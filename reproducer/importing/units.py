"""A systemd unit: `ExecStart=` by systemd's own quoting rules, `Environment=`, `EnvironmentFile=`.

The rules are those of systemd.syntax(7), systemd.service(5) and systemd.exec(5): quotes and C escapes, `$NAME` as
words and `${NAME}` inside one, `%` specifiers, a backslash at a line's end.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from reproducer.documents.base import shown
from reproducer.documents.toml import read_text
from reproducer.errors import InvalidDocumentError, UsageError
from reproducer.importing.command import shell_text
from reproducer.importing.found import Found, Notes, NothingFoundError
from reproducer.importing.secrets import is_secret
from reproducer.importing.shell import read_script
from reproducer.importing.variable_files import LARGEST

_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " "}
_NUMBERED = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-3][0-7]{2})")
_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
_REFERENCE = re.compile(r"\$(?:(\$)|\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_TAKEN = frozenset({"ExecStart", "Environment", "EnvironmentFile", "WorkingDirectory", "Type", "UnsetEnvironment"})
_DESCRIBED = frozenset({"Description", "Documentation"})
_SUPERVISED = "penny starts, watches and ends the server itself"
_LONGEST_LINE = 256 << 10


@dataclass(frozen=True)
class Setting:
    """One `Key=value` of a unit."""

    section: str
    key: str
    value: str
    line: int


def read_unit(text: str, *, folder: Path, where: str, variables: Mapping[str, str]) -> tuple[Found, ...]:
    """The launch of a unit.

    Raises:
        InvalidDocumentError: not a unit, or quotes that systemd would refuse.
        UsageError: a file of variables that is not there.
        NothingFoundError: it has no `ExecStart=`.
    """
    service = _Service(where, folder, dict(variables))
    for each in settings(text, where=where):
        service.take(each)
    service.notes.add(f"{Path(where).name}.d/", "drop-ins of the unit are not read", where=where)
    for section, lines in service.others.items():
        service.notes.add("; ".join(lines)[:400], _SUPERVISED, where=f"{where}, {section}")
    if service.command is None:
        raise NothingFoundError("the unit has no ExecStart=", where=where)
    environment, notes = {**service.environment, **service.from_files}, service.notes
    place = f"{where}, line {service.command.line}"
    argv = _exec_words(service.command.value, environment, place, notes)
    found = Found(tuple(argv), environment, service.start, place, tuple(notes.found))
    script = shell_text(argv)
    if script is None:
        return (found,)
    reading = read_script(script, folder=service.start, where=place, variables=environment, depth=1)
    if not reading.found:
        if reading.stopped is None:
            return (found,)
        raise UsageError(
            "its command is a script that cannot be understood without running it",
            where=place,
            why=str(reading.stopped),
            todo="write the script to a file and import that",
        )
    return tuple(
        Found(each.argv, each.environment, each.folder, place, (*notes.found, *each.unmapped)) for each in reading.found
    )


class _Service:
    """What the settings of a unit come to, one after another."""

    def __init__(self, where: str, folder: Path, variables: dict[str, str]) -> None:
        self.where = where
        self.folder = folder
        self.given = variables
        self.environment = dict(variables)
        self.from_files: dict[str, str] = {}
        self.command: Setting | None = None
        self.start = Path("/")
        self.notes = Notes(where)
        self.others: dict[str, list[str]] = {}

    def take(self, setting: Setting) -> None:
        """One more setting; an empty value forgets those before it."""
        place = f"{self.where}, line {setting.line}"
        if setting.section != "Service":
            if setting.key not in _DESCRIBED:
                self.others.setdefault(f"[{setting.section}]", []).append(f"{setting.key}={setting.value}")
        elif setting.key == "ExecStart":
            self._exec_start(setting, place)
        elif setting.key == "Environment":
            more = _assignments(setting, place, self.notes)
            self.environment = {**self.environment, **more} if setting.value else dict(self.given)
        elif setting.key == "EnvironmentFile":
            more = _file(setting.value, self.folder, place, self.notes) if setting.value else {}
            self.from_files = {**self.from_files, **more} if setting.value else {}
        elif setting.key == "WorkingDirectory":
            self.start = Path(setting.value.removeprefix("-"))
        elif setting.key not in _TAKEN:
            shown_value = "…" if is_secret(setting.key, setting.value) else setting.value
            self.others.setdefault("[Service]", []).append(f"{setting.key}={shown_value}")

    def _exec_start(self, setting: Setting, place: str) -> None:
        if self.command is not None and setting.value:
            self.notes.add("ExecStart=", "there are several; the last one is the server", where=place)
        self.command = setting if setting.value else None


def settings(text: str, *, where: str) -> Iterator[Setting]:
    """Every assignment in order; a backslash at the end joins lines, comments in between are skipped.

    Raises:
        InvalidDocumentError: a line that is no section, comment or assignment, or that is too long.
    """
    section, kept, start = "", "", 0
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.rstrip("\r").strip()
        if line.startswith(("#", ";")) or (not line and not kept):
            continue
        start = start or number
        kept += line
        if len(kept) > _LONGEST_LINE:
            raise InvalidDocumentError(f"line {start}: is longer than {_LONGEST_LINE} characters", where=where)
        if kept.endswith("\\"):
            kept = kept[:-1] + " "
            continue
        joined, kept, at, start = kept.strip(), "", start, 0
        if joined.startswith("[") and joined.endswith("]"):
            section = joined[1:-1]
            continue
        key, equals, value = joined.partition("=")
        if not equals or not section:
            raise InvalidDocumentError(f"line {at}: is no setting of a unit: {shown(joined)}", where=where)
        yield Setting(section, key.strip(), value.strip(), at)


def split_words(text: str, *, where: str) -> list[str]:
    """Words by systemd's rules; a ` ; ` is a word of its own.

    Raises:
        InvalidDocumentError: a quote that is not closed, or an escape that systemd does not know.
    """
    words: list[str] = []
    current: str | None = None
    quote = ""
    at = 0
    while at < len(text):
        character = text[at]
        at += 1
        if character == "\\":
            piece, at = _escape(text, at, where)
            current = (current or "") + piece
        elif quote:
            if character == quote:
                quote = ""
            else:
                current = (current or "") + character
        elif character in "'\"":
            quote = character
            current = current or ""
        elif character in " \t\n\r":
            if current is not None:
                words.append(current)
            current = None
        else:
            current = (current or "") + character
    if quote:
        raise InvalidDocumentError("a quote is not closed", where=where)
    return words if current is None else [*words, current]


def _escape(text: str, at: int, where: str) -> tuple[str, int]:
    """What stands for a backslash and what follows it, and where the text goes on."""
    following = text[at : at + 1]
    if following in ("\\", '"', "'") and following:
        return following, at + 1
    if following in _ESCAPES:
        return _ESCAPES[following], at + 1
    if match := _NUMBERED.match(text, at):
        number = int(match[4], 8) if match[4] else int(match[1] or match[2] or match[3], 16)
        if 0 < number <= 0x10FFFF and not 0xD800 <= number < 0xE000:  # noqa: PLR2004  Unicode
            return chr(number), match.end()
    raise InvalidDocumentError(f"systemd knows no escape \\{following}", where=where)


def _specified(text: str, where: str, notes: Notes) -> str:
    """`%%` is a percent sign; every other specifier depends on the host or the unit's instance."""
    for match in re.finditer(r"%(.)", text):
        if match[1] != "%":
            notes.add(match[0], "a specifier that only systemd fills in; it stands as it is", where=where)
    return text.replace("%%", "%")


def _assignments(setting: Setting, where: str, notes: Notes) -> dict[str, str]:
    found = {}
    for word in split_words(setting.value, where=where):
        name, equals, value = word.partition("=")
        if not equals or not _NAME.match(name):
            notes.add(name, "is no assignment; systemd ignores it", where=where)
            continue
        found[name] = _specified(value, where, notes)
    return found


def _file(value: str, folder: Path, where: str, notes: Notes) -> dict[str, str]:
    """The variables of an `EnvironmentFile=`; one that may be missing begins with a dash."""
    path = folder / value.removeprefix("-")
    if not path.is_file():
        if value.startswith("-"):
            notes.add(f"EnvironmentFile={value}", "it is not here", where=where)
            return {}
        raise UsageError(
            "a file of variables is not here", where=where, why=str(path), todo="put it there, or take the line out"
        )
    found: dict[str, str] = {}
    text = read_text(path, what="file of variables", limit=LARGEST)
    for line in re.sub(r"\\\n", "", text).splitlines():
        name, equals, rest = line.strip().partition("=")
        if equals and not name.startswith(("#", ";")) and _NAME.match(name.strip()):
            rest = rest.strip()
            quoted = len(rest) > 1 and rest[0] in "\"'" and rest.endswith(rest[0])
            found[name.strip()] = rest[1:-1] if quoted else rest
    return found


def _exec_words(value: str, environment: Mapping[str, str], where: str, notes: Notes) -> list[str]:
    """The words of `ExecStart=`: prefixes away, variables filled in as systemd does it."""
    prefix = re.match(r"^[@:+!-]*", value)
    signs = prefix[0] if prefix else ""
    words = split_words(value[len(signs) :], where=where)
    if "@" in signs and len(words) > 1:
        words.pop(1)  # the name that the process is told
    if ";" in words:
        notes.add("ExecStart= with several commands", "the last one is the server", where=where)
        words = words[len(words) - words[::-1].index(";") :]
    found: list[str] = []
    for word in words:
        text = _specified(word, where, notes)
        if ":" in signs:
            found.append(text)
        elif (alone := re.fullmatch(r"\$([A-Za-z_][A-Za-z0-9_]*)", text)) is not None:
            found += _looked_up(alone[1], environment, where, notes).split()
        else:
            found.append(_REFERENCE.sub(lambda match: _filled(match, environment, where, notes), text))
    return found


def _filled(match: "re.Match[str]", environment: Mapping[str, str], where: str, notes: Notes) -> str:
    """Inside a word only `${NAME}` is filled in, and `$$` is one dollar sign."""
    if match[1]:
        return "$"
    return _looked_up(match[2], environment, where, notes) if match[2] else match[0]


def _looked_up(name: str, environment: Mapping[str, str], where: str, notes: Notes) -> str:
    if name not in environment:
        why = "a secret; left out" if is_secret(name) else "it is set nowhere, so it was empty: give --env NAME=VALUE"
        notes.add(f"${name}", why, where=where)
    return environment.get(name, "")

"""Paths of a launch: each becomes a placeholder, a file beside the lock, or is named as having no place."""

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reproducer.documents.lock import ArgumentValue
from reproducer.importing.models import Model
from reproducer.importing.secrets import is_secret

LARGEST_FILE = 1 << 20
SUFFIXES = frozenset({".jinja", ".jinja2", ".j2", ".json", ".yaml", ".yml", ".toml", ".txt"})
_ABSOLUTE = re.compile(r"""(?:^|[\s"'=:,])(?:file:/+|~?/)[A-Za-z0-9._~-]""")
_PLACEHOLDER = re.compile(r"\{[A-Za-z_][A-Za-z0-9_.-]*\}")
# Keys of JSON and variables that name the folder in which pages outlive the server.
_STORED = re.compile(
    r'("(?:file_storage_path|shared_storage_path|disk_path|root_dir)"\s*:\s*")((?:file:/+|/)[^"\\]*)(")'
)
STORAGE_VARIABLES = frozenset({"SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR", "SGLANG_HICACHE_NIXL_BACKEND_STORAGE_DIR"})
_FILE_ARGUMENTS = frozenset({"chat-template", "completion-template", "reasoning-parser-plugin", "tool-parser-plugin"})
_HOST = "an absolute path, which no other machine has"


@dataclass(frozen=True)
class Copy:
    """A file that goes beside the lock.

    Attributes:
        source: where it lies, or lay.
        path: relative to the lock's folder.
        data: its bytes.
    """

    source: Path
    path: str
    data: bytes


@dataclass
class Paths:
    """What stands for the paths of one launch.

    Attributes:
        models: the checkpoints.
        folder: where relative paths start.
        beside: the folder, relative to the lock's, that files go to.
        made: the text of files that a script made when it was recorded, by path.
    """

    models: tuple[Model, ...]
    folder: Path
    beside: str
    made: Mapping[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    copies: list[Copy] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    def placed(self, name: str, value: ArgumentValue) -> tuple[ArgumentValue | None, str]:
        """The value with placeholders; None and the reason where it has no place."""
        if isinstance(value, tuple):
            several = [self._text(name, each) for each in value]
            bad = next((why for text, why in several if text is None), "")
            return (None, bad) if bad else (tuple(text for text, _ in several if text is not None), "")
        return self._text(name, value) if isinstance(value, str) else (value, "")

    def _text(self, name: str, text: str) -> tuple[str | None, str]:
        if not {*_PLACEHOLDER.findall(text)} <= {each.placeholder for each in self.models}:
            return None, "its braces read as a placeholder that nothing fills"
        for model in sorted(self.models, key=lambda each: -len(each.prefix)):
            if model.prefix and (
                text == model.prefix or text.startswith(f"{model.prefix}/") or _within(text, model.prefix)
            ):
                text = _replaced(text, model.prefix, model.placeholder)
        if name in STORAGE_VARIABLES and text.startswith(("/", "~", ".")):
            return "{namespace}", ""
        text = _STORED.sub(lambda match: f"{match[1]}{{namespace}}{match[3]}", text)
        file = self._file(name, text)
        if file is not None:
            return file
        return (None, _HOST) if _ABSOLUTE.search(text) else (text, "")

    def _file(self, name: str, text: str) -> tuple[str | None, str] | None:
        """A file that the server reads, put beside the lock; None where the text is no file."""
        sign, plain = ("@", text[1:]) if text.startswith("@") else ("", text)
        if not plain or "{" in plain or "\n" in plain or len(plain) > 1024:  # noqa: PLR2004  longer than a path
            return None
        path = self.folder / Path(plain).expanduser()
        suffix = path.suffix.lower()
        wanted = bool(sign) or (name in _FILE_ARGUMENTS and ("/" in plain or suffix in SUFFIXES))
        if not wanted and suffix not in SUFFIXES:
            return None
        data, why = self._contents(path)
        if data is None and not wanted and not _ABSOLUTE.search(plain):
            return None
        placeholder = re.sub(r"[^a-z0-9._-]", "-", name.lower()).strip("-._")[:60] or "file"
        relative = f"{self.beside}/{re.sub(r'[^A-Za-z0-9._-]', '_', path.name).lstrip('-.') or 'file'}"
        taken = {each for key, each in self.files.items() if key != placeholder}
        if relative in taken:
            relative = f"{self.beside}/{placeholder}-{Path(relative).name}"
        self.files[placeholder] = relative
        if data is not None:
            self.copies.append(Copy(path, relative, data))
        else:
            self.missing[placeholder] = f"{why}: put the file at {relative}"
        return f"{sign}{{file.{placeholder}}}", ""

    def _contents(self, path: Path) -> tuple[bytes | None, str]:
        made = self.made.get(str(path))
        data, why = (made.encode(), "") if made is not None else _read(path)
        if data is not None and is_secret("", data.decode("utf-8", "replace")):
            return None, "it looks as if it held a secret, and is not copied"
        return data, why


def _within(text: str, prefix: str) -> bool:
    """Whether a path stands in a longer text, such as JSON or `name=path`."""
    return prefix.startswith("/") and re.search(rf"(?<![\w./-]){re.escape(prefix)}(?![\w.-])", text) is not None


def _replaced(text: str, prefix: str, placeholder: str) -> str:
    return re.sub(rf"(?<![\w./-]){re.escape(prefix)}(?![\w.-])", lambda _: placeholder, text)


def _read(path: Path) -> tuple[bytes | None, str]:
    """The bytes of a file that may be copied: a regular one, small, and by its suffix a template or a configuration.

    The suffix counts behind every link, so that no name of another's choosing brings a private file in.
    """
    try:
        real = path.resolve(strict=True)
        if real.suffix.lower() not in SUFFIXES:
            return None, f"only {', '.join(sorted(SUFFIXES))} files are copied"
        with os.fdopen(os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None, "it is no regular file"
            data = file.read(LARGEST_FILE + 1)
    except OSError:
        return None, "it is not here"
    except (RuntimeError, ValueError):
        return None, "its path leads nowhere"
    return (data, "") if len(data) <= LARGEST_FILE else (None, f"it is larger than {LARGEST_FILE} bytes")

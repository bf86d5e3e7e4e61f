"""What build files want to fetch by themselves: sources that no lock names, often at a branch.

A build has no network and git none of its transports, so such a fetch fails; this says which line asked for what.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reproducer.documents.base import shown

_NAMES = re.compile(r"^(CMakeLists\.txt|.*\.cmake|meson\.build|.*\.wrap|setup\.py|pyproject\.toml|setup\.cfg)$")
_WHERE = re.compile(
    r"""\b(GIT_REPOSITORY|URL|GITHUB_REPOSITORY)\s+["']?([^\s"')]+)|^\s*(?:url|source_url)\s*=\s*(\S+)"""
)
_WHICH = re.compile(r"""\b(GIT_TAG)\s+["']?([^\s"')]+)|^\s*(?:revision)\s*=\s*(\S+)""")
_CLONE = re.compile(r"\bgit['\"]?\s*,?\s*['\"]?\s*clone\b|\bgit\+(?:https?|ssh|file)://[^\s'\"]+")
_FULL = re.compile(r"^[0-9a-f]{40}([0-9a-f]{24})?$")
_LARGEST = 1 << 20
_MOST_FILES = 20_000
_MOST = 20
_LONGEST = 500


@dataclass(frozen=True)
class Fetch:
    """One fetch that a build file asks for.

    Attributes:
        file: the build file, below the source tree.
        line: where in it.
        what: what is fetched, as it stands there.
        revision: at which one; empty where it names none.
    """

    file: str
    line: int
    what: str
    revision: str = ""

    @property
    def exact(self) -> bool:
        """Whether it is named by a full commit."""
        return bool(_FULL.match(self.revision))

    def __str__(self) -> str:
        revision = f" at {shown(self.revision)}" if self.revision else ""
        moving = "" if self.exact else ", which may move"
        return f"{shown(self.file)}, line {self.line}: {shown(self.what)}{revision}{moving}"


def fetches(tree: Path) -> tuple[Fetch, ...]:
    """What the build files of a source tree ask to be fetched, in the order of files and lines."""
    found: list[Fetch] = []
    for number, path in enumerate(_build_files(tree)):
        if number >= _MOST_FILES or len(found) >= _MOST:
            break
        with path.open("rb") as file:
            text = file.read(_LARGEST).decode("utf-8", "replace")
        found += _in_file(path.relative_to(tree).as_posix(), text)
    return tuple(found[:_MOST])


def _build_files(tree: Path) -> Iterator[Path]:
    for top, folders, files in os.walk(tree):
        folders.sort()
        for name in sorted(files):
            path = Path(top, name)
            if _NAMES.match(name) and path.is_file() and not path.is_symlink():
                yield path


def _in_file(name: str, text: str) -> Iterator[Fetch]:
    """The fetches in one build file; a revision belongs to the repository above it."""
    pending: tuple[int, str] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("#"):
            continue
        where, which, clone = _WHERE.search(line), _WHICH.search(line), _CLONE.search(line)
        if where is not None:
            if pending is not None:
                yield Fetch(name, *pending)
            address = where[2] or where[3]
            pending = (number, address[:_LONGEST]) if _is_remote(where[1], address) else None
        if which is not None and pending is not None:
            yield Fetch(name, *pending, (which[2] or which[3])[:_LONGEST])
            pending = None
        elif clone is not None:
            said = clone[0] if clone[0].startswith("git+") else line.strip()
            yield Fetch(name, number, said[:_LONGEST])
    if pending is not None:
        yield Fetch(name, *pending)


def _is_remote(keyword: str | None, address: str) -> bool:
    """Whether it is fetched from somewhere; `URL` and wraps may also name a file of the tree."""
    return keyword in ("GIT_REPOSITORY", "GITHUB_REPOSITORY") or "://" in address

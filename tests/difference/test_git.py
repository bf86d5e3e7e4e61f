"""Git shows what a change of a lock costs: real git, set up as docs/diff.md says."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from reproducer.difference.versions import opened_version
from reproducer.documents.base import FileReference
from reproducer.errors import DriftError
from tests.difference.beside import PATCHES, opened
from tests.identity.factory import Edit

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "diff.md").read_text("utf-8")
OLD, NEW = b"+a = 1\n", b"+a = 2\n"


class Repository:
    """A repository whose lock git shows through penny; the lock lies in a folder of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "work tree" / "deep er"
        self.environment = {
            "PATH": f"{root / 'bin'}:{os.environ['PATH']}",
            "HOME": str(root),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a",
            "PYTHONPATH": str(ROOT),
        }
        (root / "bin").mkdir()
        program = root / "bin" / "penny"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m reproducer "$@"\n')
        program.chmod(0o755)
        (root / "work tree").mkdir()
        self.git("init", "-q")

    def git(self, *arguments: str, **more: str) -> str:
        """What git prints; it must succeed."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.root / "work tree",
            env={**self.environment, **more},
            capture_output=True,
            check=False,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert "fatal" not in done.stderr
        return done.stdout

    def write(self, patch: bytes, *edits: Edit) -> None:
        """Another lock and patch in the working tree."""
        shutil.rmtree(self.folder, ignore_errors=True)
        opened(self.folder, {PATCHES[0]: patch}, *edits)

    def commit(self) -> None:
        """What lies there."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")


def page(data: dict[str, Any]) -> None:
    """Another page size."""
    data["launch"]["effective"]["page_size"] = 32
    data["launch"]["arguments"]["page-size"] = 32


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """One commit, attributes and config from the document."""
    found = Repository(tmp_path)
    (attributes,) = re.findall(r"```\n(penny\.lock\.toml diff=penny\n)```", DOCUMENT)
    (tmp_path / "work tree" / ".gitattributes").write_text(attributes)
    commands = re.findall(r"^git config .*$", DOCUMENT, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        subprocess.run(["sh", "-c", command], cwd=tmp_path / "work tree", env=found.environment, check=True)
    found.write(OLD)
    found.commit()
    return found


def test_git_diff_shows_what_a_change_costs(repository: Repository) -> None:
    """With the lines of a changed patch: its old version comes out of the history."""
    repository.write(NEW, page)
    text = repository.git("diff", "--", "deep er/penny.lock.toml")

    assert text.startswith("penny diff deep er/penny.lock.toml\ncache-identity (3) another namespace")
    assert "launch.effective.page_size 16 → 32" in text
    assert "-+a = 1" in text
    assert "++a = 2" in text
    assert "not compared" not in text


def test_between_commits_both_versions_come_out_of_the_history(repository: Repository) -> None:
    """The working tree has a third version."""
    repository.write(NEW)
    repository.commit()
    repository.write(b"+a = 3\n")
    text = repository.git("diff", "HEAD~", "HEAD", "--", "deep er/penny.lock.toml")

    assert "-+a = 1" in text
    assert "++a = 2" in text


def test_what_the_history_does_not_have_is_said(repository: Repository) -> None:
    """Under not compared, with the name of the file."""
    repository.write(NEW)
    repository.git("add", "deep er/penny.lock.toml")
    repository.write(b"+a = 3\n")
    text = repository.git("diff", "--cached", "--", "deep er/penny.lock.toml").replace("\n", "")

    assert f"not compared: patch {PATCHES[0]} of component sglang" in text
    assert "is not the file that the lock pins" in text


def test_only_a_version_of_the_pinned_size_is_read(repository: Repository) -> None:
    """A file that once had any size costs no memory."""
    place = repository.folder
    (place / "large").write_bytes(bytes(64 << 20))
    repository.commit()
    (place / "large").write_bytes(b"small")
    repository.commit()
    lock = opened_version(place / "penny.lock.toml", place / "penny.lock.toml")
    (place / "large").write_bytes(b"other")
    pinned = FileReference(path="large", sha256=hashlib.sha256(b"small").hexdigest(), size=5)
    never = FileReference(path="large", sha256="0" * 64, size=5)

    tracemalloc.start()
    try:
        assert lock.read(pinned) == b"small"
        with pytest.raises(DriftError):
            lock.read(never)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_text_shows_facts_and_no_order(repository: Repository) -> None:
    """`git log -p` and `--no-ext-diff` show one line out and one in for each fact, with its class."""
    repository.write(OLD, page, lambda data: data["components"].reverse())
    lines = [
        line
        for line in repository.git("diff", "--no-ext-diff", "-U0", "--", "deep er/penny.lock.toml").splitlines()
        if re.match(r"[-+][^-+]", line)
    ]
    assert [line.split(" = ")[0].split("-target-")[0] for line in lines] == [
        "-namespace small", "+namespace small",
        "-launch.arguments.page-size", "+launch.arguments.page-size",
        "-launch.effective.page_size", "+launch.effective.page_size",
    ]  # fmt: skip
    assert "+launch.effective.page_size = 32  [cache-identity]" in lines
    repository.commit()
    assert "+launch.effective.page_size = 32  [cache-identity]" in repository.git("log", "-p", "-1")


def test_difftool_runs_penny(repository: Repository) -> None:
    """Where the attributes name penny's external diff, that one; elsewhere `penny diff` of two files.

    Git's temporary file has nothing beside it then, which is said.
    """
    repository.write(NEW, page)
    command = ("difftool", "-y", "-t", "penny", "--", "deep er/penny.lock.toml")
    text = repository.git(*command)
    assert "launch.effective.page_size 16 → 32" in text
    assert "++a = 2" in text
    (repository.root / "work tree" / ".gitattributes").write_text("")
    text = repository.git(*command).replace("\n", "")

    assert text.startswith("cache-identity (3)")
    assert "launch.effective.page_size 16 → 32" in text
    assert f"not compared: patch {PATCHES[0]} of component sglang" in text
    assert "cannot be read" in text


def test_the_variable_of_git_works_without_any_setting(repository: Repository) -> None:
    """As the document has it."""
    assert 'GIT_EXTERNAL_DIFF="penny git-diff" git diff' in DOCUMENT
    (repository.root / "work tree" / ".gitattributes").write_text("")
    repository.write(OLD, page)
    path = "deep er/penny.lock.toml"

    assert "launch.effective" not in repository.git("diff", "-U0", "--", path)
    text = repository.git("diff", "--", path, GIT_EXTERNAL_DIFF="penny git-diff")
    assert "launch.effective.page_size 16 → 32" in text


def test_a_lock_that_comes_goes_or_is_broken_stops_nothing(repository: Repository) -> None:
    """Git goes on to the other files, and the text says what it is."""
    path = repository.folder / "penny.lock.toml"
    whole = path.read_bytes()
    path.write_bytes(b"<<<<<<< \x1b[2J\n" + whole)
    (repository.root / "work tree" / "z").write_text("z")
    repository.git("add", "-N", ".")
    text = repository.git("diff")
    assert "penny diff deep er/penny.lock.toml: cannot be compared: " in text
    assert "+z" in text
    raw = repository.git("diff", "--no-ext-diff")
    assert r"+<<<<<<< \x1b[2J" in raw
    path.unlink()
    assert "penny diff deep er/penny.lock.toml: removed\n" in repository.git("diff")
    assert "penny diff deep er/penny.lock.toml: added\n" in repository.git("diff", "-R")


def test_a_conflict_is_said(repository: Repository) -> None:
    """Git passes only the path while a merge is open."""
    repository.git("branch", "other")
    repository.write(OLD, page)
    repository.commit()
    repository.git("checkout", "-q", "other")
    repository.write(OLD, lambda data: data["launch"]["effective"].update(page_size=64))
    repository.commit()
    merging = ["git", "merge", "-q", "@{-1}"]
    subprocess.run(
        merging, cwd=repository.root / "work tree", env=repository.environment, check=False, capture_output=True
    )

    assert "penny diff deep er/penny.lock.toml: unmerged\n" in repository.git("diff", "--cached")

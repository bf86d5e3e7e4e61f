"""Nothing is cut: a pipe gets lines as long as they are, a terminal of 80 columns gets them folded."""

import io
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from reproducer.cache.model import Entry, KnownLock, Listing, Usage
from reproducer.cli.console import PlainConsole
from reproducer.cli.show import step_line, verdict_table
from reproducer.cli.show_cache import listing_table
from reproducer.cli.show_doctor import checks_table
from reproducer.doctor.checks import Checked
from reproducer.documents.verdict import Check, Verdict
from reproducer.errors import Outcome
from reproducer.reproduce import Step

LOCK = Path(__file__).parent.parent.parent / "penny.lock.toml"
LONG = "-".join(f"word{number}" for number in range(40))
SENTENCE = " ".join(f"said{number}" for number in range(60))


def plain_table() -> Table:
    """A table whose columns say nothing of what is too long for them."""
    table = Table("one", "two", "three", box=None, title=f"titled {LONG}")
    table.add_row(LONG, SENTENCE, LONG.upper())
    return table


def verdict() -> RenderableType:
    """A check with a long name and much to say."""
    check = Check(id=LONG, aspect="inputs", status="failed", expected=LONG.upper(), got=SENTENCE)
    return verdict_table(Verdict(checks=(check,)), every=True)


def host() -> RenderableType:
    """The same of a machine."""
    check = Checked(id=LONG, status="failed", expected=LONG.upper(), got=SENTENCE)
    return checks_table([check], Outcome.NOT_CHECKED, every=True)


def namespaces() -> RenderableType:
    """A namespace with long names, and a lock that uses it."""
    lock = KnownLock(LONG.upper(), "x.lock.toml", "uses")
    entry = Entry(LONG, "0" * 64, Usage(3, 10**12, 10**12), 0.0, None, "", None, (lock,))
    return listing_table(Listing(f"kv in {SENTENCE}", (entry,), ()))


def steps() -> RenderableType:
    """Steps of which one took most of a day."""
    return Group(
        step_line(Step("namespace", "done", 60012.0, SENTENCE)),
        step_line(Step("fetch", "done", 1.0, f"{LONG} {LONG.upper()}")),
    )


def tree() -> RenderableType:
    """Branches of branches, and something that is set in."""
    root = Tree(LONG)
    root.add(Text(SENTENCE)).add(LONG.upper())
    return Group(root, Padding(Text(SENTENCE), (0, 0, 0, 4)))


def printed(shown: RenderableType, *, endless: bool) -> str:
    """As a pipe or a terminal of 80 columns gets it."""
    file = io.StringIO()
    PlainConsole(
        file=file, endless=endless, force_terminal=not endless, color_system=None, width=None if endless else 80
    ).print(shown)
    return file.getvalue()


@pytest.mark.parametrize("shown", [plain_table, verdict, host, namespaces, steps, tree])
def test_a_pipe_gets_every_line_whole(shown: Callable[[], RenderableType], monkeypatch: pytest.MonkeyPatch) -> None:
    """A name and a sentence stand on one line each, whatever COLUMNS says, and nothing is filled up with spaces."""
    monkeypatch.setenv("COLUMNS", "40")
    said = printed(shown(), endless=True)
    assert any(LONG in line for line in said.splitlines())
    assert any(LONG.upper() in line for line in said.splitlines())
    assert any(SENTENCE in line for line in said.splitlines())
    assert [line for line in said.splitlines() if line.endswith(" ")] == []


@pytest.mark.parametrize("shown", [plain_table, verdict, host, namespaces, steps, tree])
def test_a_terminal_gets_every_word(shown: Callable[[], RenderableType]) -> None:
    """In 80 columns names are folded: every letter of them is there, and no ellipsis stands for any."""
    said = printed(shown(), endless=False)
    assert "…" not in said
    assert max(map(len, said.splitlines())) <= 80
    assert Counter(said) >= Counter(f"{LONG}{LONG.upper()}{SENTENCE.replace(' ', '')}")


def test_a_day_is_told_whole() -> None:
    """A time that is longer than its column."""
    assert "1000 min 12 s" in printed(steps(), endless=False)


def test_a_command_into_a_pipe() -> None:
    """The factors of the committed lock stand on one line each, without COLUMNS and with."""
    said = []
    for columns in ({}, {"COLUMNS": "30"}):
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | columns
        ended = subprocess.run(
            [sys.executable, "-m", "reproducer", "namespace", "--explain", "--lock", str(LOCK)],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
        assert ended.stderr == ""
        said.append(ended.stdout)
    assert said[0] == said[1]
    assert 'sgl-kernel-cpu.outputs."sgl_kernel_cpu-0.1.0-py3-none-any.whl".content_sha256 = ' in said[0]

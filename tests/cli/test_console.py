"""Nothing from outside steers the terminal, on whatever way it gets there."""

import io

import pytest
from rich.console import Group
from rich.table import Table
from rich.text import Text

from reproducer.cli.console import PlainConsole
from reproducer.cli.front import Front
from reproducer.cli.terminal import Terminal

HOSTILE = "a\x1b]0;owned\x07\x1b[2Jb\x9bm\u202ec\udcff"


@pytest.mark.parametrize("terminal", [False, True])
def test_console_escapes_what_is_not_printable(*, terminal: bool) -> None:
    """Escapes, C1 controls, turned text and lone surrogates are shown and not obeyed, in text and in tables."""
    file = io.StringIO()
    table = Table()
    table.add_row(HOSTILE, Text(HOSTILE, style="red"))
    PlainConsole(file=file, force_terminal=terminal, color_system=None, width=200).print(
        Group(table, Text(HOSTILE), HOSTILE), soft_wrap=True
    )
    said = file.getvalue()
    assert not set(said) & set("\x1b\x07\x9b\u202e\udcff")
    assert said.count("\\x1b]0;owned") == 4
    said.encode()


def test_results_and_notes_escape(capsys: pytest.CaptureFixture[str]) -> None:
    """A result, as text and as JSON, a note and a progress label."""
    Front(as_json=False, quiet=False, verbose=True).emit({}, Text(HOSTILE))
    Front(as_json=True, quiet=False, verbose=True).emit({"x": HOSTILE}, "")
    terminal = Terminal(verbose=True)
    terminal.note(HOSTILE)
    with terminal.task(HOSTILE + "[red]", 1, "files"):
        pass
    out, err = capsys.readouterr()
    assert not set(out + err) & set("\x1b\x07\x9b\u202e\udcff")
    assert "[red]" in err

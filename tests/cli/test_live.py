"""The live view of a suite: what a terminal of 80 columns shows, what a pipe gets, what machines are told."""

import io
import json
import re
import tempfile
import threading
import time
from pathlib import Path

import pytest

from reproducer.cli.console import PlainConsole
from reproducer.cli.live import LiveView
from reproducer.cli.show_samples import sample_line
from reproducer.cli.terminal import Terminal
from reproducer.qualify.flight import Flight
from reproducer.qualify.pieces import Pieces
from reproducer.qualify.plan import Step
from reproducer.qualify.suite import qualify
from reproducer.qualify.watching import Finished, Pace
from tests.qualify.servers import Boots, build_receipt, measure, suite

WIDTH = 80
_STEERING = re.compile(r"\x1b\[2K|\x1b\[1A|\x1b\[[\d;]*m|\r|\n|[^\x1b\r\n]+")


class Screen(io.StringIO):
    """A terminal that is as wide as 80 columns, and what stands on it."""

    def isatty(self) -> bool:
        """It is one."""
        return True

    def lines(self) -> list[str]:
        """What a person sees."""
        lines, row, column = [""], 0, 0
        for piece in _STEERING.findall(self.getvalue()):
            if piece == "\n":
                row, column = row + 1, 0
                lines += [""] * (row + 1 - len(lines))
            elif piece == "\r":
                column = 0
            elif piece == "\x1b[1A":
                row -= 1
            elif piece == "\x1b[2K":
                lines[row] = ""
            elif not piece.startswith("\x1b"):
                lines[row] = lines[row].ljust(column)[:column] + piece
                column += len(piece)
        return [line.rstrip() for line in lines if line.strip()]


def console(screen: Screen) -> PlainConsole:
    """Eighty columns of it."""
    return PlainConsole(file=screen, force_terminal=True, width=WIDTH)


def answer(count: int) -> Pieces:
    """A stream that has brought so many tokens."""
    pieces = Pieces()
    pieces.add(1, b'data: {"meta_info": {"completion_tokens": %d, "cached_tokens": 0}}\n\n' % count)
    return pieces


def waited(screen: Screen, text: str) -> list[str]:
    """The lines once the text stands on the screen."""
    deadline = time.monotonic() + 10
    while text not in "\n".join(screen.lines()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return screen.lines()


def test_two_lines_of_eighty_columns_that_follow_what_arrives() -> None:
    """The measure, how far it is, tokens so far and their rate, how long it will take; nothing when it is erased."""
    screen, flight = Screen(), Flight()
    view = LiveView(console(screen))
    heading = "needle.context/1 prompt_tokens=490000  sample 12 of 12, boot 2"
    view.show(heading, 12, 120, flight, 3725.0)
    flight.answers = [answer(40), answer(2)]
    first, second = waited(screen, "42 tokens")
    assert first.startswith("  needle.context/1")
    assert first.endswith("12 of 120 samples")
    assert second.startswith("  42 tokens, ")
    assert "about 1 h 02 min left" in second
    assert max(len(first), len(second)) <= WIDTH
    flight.answers = [answer(90), answer(2)]
    _, second = waited(screen, "tok/s")
    assert second.startswith("  92 tokens, ")
    view.erase()
    assert screen.lines() == []
    view.close()
    assert "live view" not in {thread.name for thread in threading.enumerate()}


def test_a_server_that_counts_nothing_is_shown_by_its_pieces() -> None:
    """No rate of tokens is made up."""
    screen, flight, pieces = Screen(), Flight(), Pieces()
    pieces.add(1, b"data: {}\n\n")
    pieces.add(2, b"data: {}\n\n")
    flight.answers = [pieces]
    view = LiveView(console(screen))
    view.show("chat.smoke/1  sample 1 of 2, boot 1", 0, 2, flight, None)
    assert screen.lines()[1] == "  2 pieces, 0 s"
    view.close()


def test_a_terminal_that_goes_away_ends_no_measurement() -> None:
    """Writing fails: the view is over, the caller goes on."""

    class Gone(Screen):
        def write(self, text: str) -> int:
            if "\x1b[2K" in text:
                raise OSError(5, "Input/output error")
            return super().write(text)

    view = LiveView(console(Gone()))
    view.show("decode.single/1", 0, 1, Flight(), None)
    view.erase()
    view.close()


def suite_on(tmp_path: Path, terminal: Terminal) -> None:
    """Measure a small suite on the stand-in."""
    opened = suite(
        tmp_path, measure("decode.single/1", warmup=1, prompt_tokens=32, output_tokens=40), measure("chat.smoke/1")
    )
    boots = Boots(tmp_path / "server", ["--gap-ms", "5"])
    receipts = qualify(
        opened, build_receipt(), boots.boot, workspace=tmp_path / "samples", reporter=terminal, settle_s=0.0
    )
    assert [receipt.status for receipt in receipts] == ["passed", "passed"]


@pytest.fixture
def private_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A temporary folder of the test's own: it waits for no penny at work on this machine."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))


@pytest.mark.usefixtures("private_turns")
def test_a_suite_in_a_terminal(tmp_path: Path) -> None:
    """Every sample is drawn, notes stand above, and at the end only what is to stay is there."""
    terminal, screen = Terminal(), Screen()
    terminal.console = console(screen)
    terminal.note("before")
    suite_on(tmp_path, terminal)
    terminal.note("after")
    assert screen.lines() == ["before", "after"]
    drawn = screen.getvalue()
    for heading in (
        "decode.single/1  warm-up 1 of 4, boot 1",
        "decode.single/1  sample 4 of 4, boot 2",
        "chat.smoke/1  sample 2 of 2",
    ):
        assert heading in drawn
    assert "5 of 6 samples" in drawn
    assert re.search(r"about \d+ s left", drawn)


@pytest.mark.usefixtures("private_turns")
def test_a_suite_without_a_terminal_says_a_line_a_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Plain lines on stderr; machines are told the same with every value."""
    terminal, lines = Terminal(), list[str]()
    terminal.finished = lambda finished: lines.append(json.dumps(sample_line(finished)))
    suite_on(tmp_path, terminal)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 6
    assert "\x1b" not in "".join(said)
    told = re.fullmatch(r"decode\.single/1 warm-up 1, boot 1: decode_rate ([\d.]+) tok/s \([\d.]+ s\)", said[0])
    assert told is not None
    samples = [json.loads(line) for line in lines]
    assert [each["measure"] for each in samples] == ["decode.single/1", "decode.single/1", "chat.smoke/1"] * 2
    assert [each["index"] for each in samples] == [0, 1, 0, 2, 3, 1]
    assert [each["warmup"] for each in samples] == [True, False, False] * 2
    assert [each["boot"] for each in samples] == [1, 1, 1, 2, 2, 2]
    assert {each["valid"] for each in samples} == {True}
    rate = samples[0]["values"]["decode_rate"]
    assert rate["unit"] == "tok/s"
    assert rate["values"] == [pytest.approx(float(told[1]), rel=0.01)]


def test_an_invalid_sample_has_its_reason_and_no_values() -> None:
    """What was not measured is not shown as a number."""
    finished = Finished(
        "decode.single/1", Step(1, 0, "decode.single/1", 0, warmup=False), 1.25, "all tokens came at once"
    )
    assert sample_line(finished) == {
        "event": "sample",
        "measure": "decode.single/1",
        "index": 0,
        "boot": 1,
        "warmup": False,
        "part": "whole",
        "seconds": 1.25,
        "valid": False,
        "reason": "all tokens came at once",
        "values": {},
    }


def test_time_left_follows_each_measure_and_the_boots(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow measure does not stand for a quick one; a boot that is to come counts; a skipped measure does not."""
    clock = [0.0]
    monkeypatch.setattr("reproducer.qualify.watching.time.monotonic", lambda: clock[0])
    slow = [Step(slot, 0, "prefill.cold/1", index, warmup=False) for index, slot in enumerate((1, 2))]
    quick = [Step(slot, 1, "chat.smoke/1", index, warmup=False) for index, slot in enumerate((1, 2))]
    dropped = Step(2, 2, "decode.single/1", 0, warmup=False)
    pace = Pace()
    pace.planned([(step.measure, step) for step in (*slow, *quick, dropped)])
    assert pace.left() is None
    clock[0] = 30.0  # the first boot took that long
    pace.begins(slow[0])
    clock[0] = 130.0
    pace.ends("prefill.cold/1", 100.0)
    pace.drops("decode.single/1")
    assert pace.left() == 100 + 2 * 100 + 30
    pace.begins(quick[0])
    clock[0] = 132.0
    pace.ends("chat.smoke/1", 2.0)
    assert pace.left() == 100 + 2 + 30
    clock[0] = 182.0
    pace.begins(slow[1])
    assert pace.left() == 100 + 2

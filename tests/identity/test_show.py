"""What a person sees of a namespace and of a difference."""

import io
from typing import Any

import pytest
from rich.console import Console, RenderableType

from reproducer.cli import show_diff, show_namespace
from reproducer.difference.diff import Change, Diff, diff
from reproducer.identity.namespace import derive
from tests.identity.factory import make_lock, sha256

LOCK = make_lock()
ESCAPE = "\x1b"


def printed(shown: RenderableType, *, colour: bool = False, width: int = 80, piped: bool = False) -> str:
    """What is printed in a terminal of 80 columns, or into a pipe."""
    stream = io.StringIO()
    Console(file=stream, width=width, force_terminal=colour, highlight=False, soft_wrap=piped).print(shown)
    return stream.getvalue()


def edit(data: dict[str, Any]) -> None:
    """Changes of several classes, one of them long."""
    data["launch"]["effective"]["page_size"] = 32
    data["launch"]["arguments"]["page-size"] = 32
    data["launch"]["arguments"]["json-model-override-args"] = "x" * 300
    data["launch"]["arguments"]["log-level"] = "debug"
    data["checkpoints"][0]["files"][2]["sha256"] = sha256("other")


def test_a_difference_fits_eighty_columns_and_leaves_nothing_out() -> None:
    """Every change under its consequence, worst first, with both values and the reason; then the three answers."""
    text = printed(show_diff.shown(diff(LOCK, make_lock(edit))))

    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.index("cache-identity (4)") < text.index("operational (1)") < text.index("namespace  differs")
    assert "launch.effective.page_size 16 → 32" in text
    assert 'launch.arguments.log-level "info" → "debug"' in text
    assert text.count("x") >= 300
    assert "rebuild    yes" in text
    assert "build, launch, decode.single/1, fidelity/1" in text


def test_nothing_is_cut_off_in_a_pipe() -> None:
    """Where the command line asks for no wrapping at all, long lines are folded all the same and never cropped."""
    found = diff(LOCK, make_lock(edit))

    assert printed(show_diff.shown(found), piped=True).count("x") >= 300
    namespace = derive(make_lock(edit))
    assert printed(show_namespace.shown(namespace), piped=True).count("x") >= 300


def test_no_difference_is_one_sentence() -> None:
    """And says that pages are shared."""
    text = printed(show_diff.shown(diff(LOCK, LOCK)))

    assert text.startswith("no change: the two locks mean the same\n")
    assert f"namespace  same, {derive(LOCK).name}" in text


def test_a_namespace_is_explained_whole() -> None:
    """Every factor with value and type, everything neutral with its class and reason."""
    namespace = derive(LOCK)
    text = printed(show_namespace.shown(namespace), width=200)

    assert text.startswith(f"{namespace.name}\n{namespace.digest}\n")
    assert f"factors ({len(namespace.factors)})" in text
    assert f"neutral ({len(namespace.neutral)})" in text
    for name in [*namespace.neutral, *(name.partition(".")[2] or name for name in namespace.factors)]:
        assert name in text
    assert all(len(line) <= 80 for line in printed(show_namespace.shown(namespace)).splitlines())


def test_an_unknown_is_shown_as_one() -> None:
    """With what follows from it."""
    unknown = make_lock(lambda data: data["toolchain"].update(compiler="unknown"))

    assert "compiler unknown: no other lock shares this namespace" in printed(show_namespace.shown(derive(unknown)))


def test_colour_is_left_out_where_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR leaves no colour; a terminal without it has some."""
    shown = show_diff.shown(diff(LOCK, make_lock(edit)))
    assert f"{ESCAPE}[1;31m" in printed(shown, colour=True)

    monkeypatch.setenv("NO_COLOR", "1")
    text = printed(shown, colour=True)
    assert not [
        code for code in text.split(ESCAPE)[1:] if code.startswith(("[3", "[1;3", "[9")) and not code.startswith("[3m")
    ]


def test_text_from_a_lock_cannot_steer_the_terminal() -> None:
    """Escape sequences, C1 controls and marks that turn a line round are shown as what they are."""
    evil = f"{ESCAPE}[2J\x9b31m\u202etxt.exe\n[bold]"

    def hostile(data: dict[str, Any]) -> None:
        data["launch"]["environment"]["EVIL"] = evil
        data["checkpoints"][0]["files"].append({"path": "a\x9b\u202e.bin", "sha256": sha256("x"), "size": 1})

    lock = make_lock(hostile)
    for shown in (show_diff.shown(diff(LOCK, lock)), show_namespace.shown(derive(lock))):
        text = printed(shown)
        assert not [character for character in text if not character.isprintable() and character != "\n"]
        assert "[bold]" in text
        assert r"a\x9b\u202e.bin" in text.replace("\n", "")


def test_digests_with_the_same_beginning_are_shown_whole() -> None:
    """Before and after never look the same."""
    before, after = "a" * 63 + "b", "a" * 63 + "c"
    namespace = derive(LOCK)
    change = Change("x", before, after, "cosmetic", "why")

    text = printed(show_diff.shown(Diff(namespace, namespace, (change,), rebuild=False, invalidates=())))

    assert before in text
    assert after in text


def test_what_was_not_compared_is_said() -> None:
    """At the end, where the answers are."""
    found = diff(LOCK, make_lock(lambda data: data["environments"][0]["pylock"].update(sha256=sha256("x"))))

    assert "not compared: packages of environment runtime" in printed(show_diff.shown(found))

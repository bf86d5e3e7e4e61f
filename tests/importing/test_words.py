"""Splitting by the rules of a shell, against `shlex` and against a real shell."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reproducer.importing.shell import read_script
from reproducer.importing.words import Lexer, NotReadError, Word

_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=20)
_FRAGMENTS = st.lists(
    st.sampled_from(
        ["a", "b c", "'", '"', "\\", " ", "$A", "${A}", "${B:-x y}", "${N}", "-", "=", "\\\n", "''", "#", "é"]
    ),
    max_size=10,
)


def _plain_words(text: str) -> list[str]:
    return [each.plain or "" for each in Lexer(text).tokens() if isinstance(each, Word)]


@given(st.lists(_TEXT, min_size=1, max_size=6))
def test_quoted_words_come_back(words: list[str]) -> None:
    """What `shlex.join` quotes is read as the same words, whatever stands in them."""
    assert _plain_words(shlex.join(words)) == words


@given(st.text(st.sampled_from("ab'\" \\\n=-"), max_size=30))
def test_as_shlex_splits(text: str) -> None:
    """Of quotes, blanks and backslashes both make the same words, or both refuse an open quote."""
    joined = text.replace("\\\n", "").replace("\n", " ")
    if text.endswith("\\") or joined.endswith("\\"):
        return  # a backslash that nothing follows
    try:
        expected = shlex.split(joined, posix=True)
    except ValueError:
        with pytest.raises(NotReadError):
            _plain_words(joined)
        return
    assert _plain_words(joined) == expected


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_FRAGMENTS)
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on this machine")
def test_as_a_real_shell_splits(tmp_path: Path, fragments: list[str]) -> None:
    """A launch that is read has the very words that bash gives to a program, or is left to be recorded."""
    tail = "".join(fragments)
    program = tmp_path / "sglang"
    if not program.exists():
        program.write_text("#!/bin/bash\nprintf '%s\\0' \"$@\"\n")
        program.chmod(0o755)
    text = f"A='one  two'\nsglang serve --model-path org/m {tail}\n"
    reading = read_script(text, folder=tmp_path, where="x")
    if not reading.found or reading.stopped is not None:
        return
    ran = subprocess.run(
        ["bash", "-c", text],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "LANG": "C.UTF-8"},
        capture_output=True,
        check=False,
    )
    assert list(reading.found[0].argv[1:]) == ran.stdout.decode().split("\0")[:-1]


@given(st.text(st.sampled_from("ab'\"\\$`(){}[]<>|&;*?~#=! \n\t@:-+%,."), max_size=60))
def test_any_text_is_read_or_left(text: str) -> None:
    """No script ends in another error than the one that says what cannot be read."""
    read_script(text, folder=Path("/srv"), where="x")


@pytest.mark.parametrize(
    "text",
    [
        "$(" * 5000,
        "${A:-" * 5000,
        '"$(' * 3000,
        "((" * 3000,
        "a=(" * 3000,
        "bash -c '" * 3000,
        "\\\n" * 100_000,
        "`" * 9999,
        "${" + "''" * 400_000,
        "{" + "," * 400_000,
        "a{b" * 200_000,
        "A=$A$A\n" * 2000,
        "A=x;" + "A=$A$A;" * 60 + "sglang serve --model-path $A",
    ],
)
def test_hostile_depth_and_growth_are_bounded(text: str) -> None:
    """Nesting and doubling end in an answer, not in a stack or a memory that is full."""
    reading = read_script(text, folder=Path("/srv"), where="x")
    assert reading.found == []

"""`penny diff --format markdown` and the other formats, as the command prints them and as a renderer reads them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from reproducer.cli.markdown_diff import code, markdown
from reproducer.difference.diff import Change, Diff, diff
from reproducer.identity.meaning import WORST_FIRST
from reproducer.identity.namespace import derive
from tests.difference.beside import PATCHES, opened
from tests.identity.factory import make_lock, sha256

LOCK = make_lock()
OURS = ("<details><summary>more of this change", "</details>")
EVIL = [
    "`</code>` <script>alert(1)</script> | [x](http://evil.example) ![i](http://evil.example/i.png)",
    "``` \n\n# heading\n\n<img src=x onerror=y> | a | b |",
    "@everyone #1 www.evil.example a@evil.example &lt; &#96; \\` \\| ``",
    "</details><h1>x</h1>\r\n---\n",
    "`",
    "``",
    " ",
    "\\",
]


def parsed(text: str) -> tuple[list[str], list[str], list[str]]:
    """The HTML, the links and images, and the literal texts that a renderer finds."""
    html, links, literal = [], [], []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        for each in (token, *(token.children or ())):
            if each.type in ("html_block", "html_inline"):
                html += each.content.strip().splitlines()
            elif each.type in ("link_open", "image", "table_open"):
                links.append(each.type)
            elif each.type in ("code_inline", "fence", "code_block"):
                literal.append(each.content)
    return html, links, literal


def edit(data: dict[str, Any]) -> None:
    """Changes of several classes."""
    data["name"] = "renamed"
    data["launch"]["effective"]["tp_size"] = 2
    data["launch"]["arguments"]["log-level"] = "debug"
    data["build"]["source_date_epoch"] = 1
    data["environments"][0]["pylock"]["sha256"] = sha256("x")


def test_answers_first_then_every_change_worst_first() -> None:
    """Namespace, rebuild and evidence; a section for each consequence; every path with before and after."""
    found = diff(LOCK, make_lock(edit))
    text = markdown(found)

    assert text.index("**Namespace:** another") < text.index("**Rebuild:** the runtime must be built again")
    assert text.index("**Rebuild:**") < text.index("**Evidence:** no longer speaks: `build`, `launch`")
    assert text.index("**Not compared:** `packages of environment runtime") < text.index("### ")
    heads = [line.split()[1] for line in text.splitlines() if line.startswith("### ")]
    assert heads == [each for each in WORST_FIRST if any(change.consequence == each for change in found.changes)]
    for change in found.changes:
        assert f"- {code(change.path)}: " in text
    assert "- `launch.effective.tp_size`: `1` → `2`" in text


def test_equal_locks_need_no_section() -> None:
    """One namespace, nothing to do."""
    text = markdown(diff(LOCK, LOCK))

    assert "**Namespace:** the same" in text
    assert "**Changes:** none" in text
    assert "###" not in text


def test_nothing_is_left_out() -> None:
    """Thousands of changes have a line each."""

    def many(data: dict[str, Any]) -> None:
        data["launch"]["environment"].update({f"V{number}": "x" for number in range(3000)})

    text = markdown(diff(LOCK, make_lock(many)))
    assert sum(line.startswith("- `launch.environment.V") for line in text.splitlines()) == 3000


def hostile(text: str) -> Diff:
    """A difference in which everything that may be text is that text."""
    namespace = derive(LOCK)
    changes = (
        Change(text, text, text + "x", "cache-identity", text, text),
        Change(text, None, [text], "cosmetic", "why", "+" + text + "\n```\n" + text),
        Change(text, {"expression": text}, None, "cosmetic", "why"),
    )
    return Diff(namespace, namespace, changes, rebuild=True, invalidates=(text,), not_compared=(text,))


@pytest.mark.parametrize("evil", EVIL)
def test_text_from_a_lock_stays_text(evil: str) -> None:
    """No HTML but ours, no link, no image, no table; the text itself is there, in literal places."""
    text = markdown(hostile(evil))
    html, links, literal = parsed(text)

    assert links == []
    assert all(line.startswith(OURS) for line in html)
    assert html.count("</details>") == 2
    assert any(evil.splitlines()[0].strip() in each for each in literal)
    assert all(character.isprintable() or character == "\n" for character in text)


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("`<>|[]()!\\\n\r -=#*_~&;@:/ax\x1b\u202e"), max_size=30))
def test_any_text_stays_text(evil: str) -> None:
    """Whatever marks it is made of."""
    html, links, _ = parsed(markdown(hostile(evil)))

    assert links == []
    assert all(line.startswith(OURS) for line in html)
    assert html.count("</details>") == 2 if evil else html.count("</details>") == 1


def test_a_long_patch_is_folded_and_says_what_is_missing(tmp_path: Path) -> None:
    """It opens on a click, and names how many lines only `--json` has."""
    long = b"".join(b"+%d\n" % number for number in range(1000))
    found = diff(opened(tmp_path / "a", {PATCHES[0]: b""}), opened(tmp_path / "b", {PATCHES[0]: long}))
    text = markdown(found)

    assert "<details><summary>more of this change (1003 lines)</summary>" in text
    assert "  603 more lines, all of them with `--json`" in text
    assert "  ++396\n" in text
    assert "++397\n" not in text


def penny(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """The command, as a person or a script runs it."""
    command = [sys.executable, "-m", "reproducer", "diff", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])


def test_the_command_prints_each_format(tmp_path: Path) -> None:
    """`--json` is `--format json`; 0 for equal locks and 65 for different ones, in every format."""
    one = str(opened(tmp_path / "a", {}).path)
    two = str(opened(tmp_path / "b", {}, edit).path)
    for form in ("text", "markdown", "json"):
        assert penny(one, one, "--format", form).returncode == 0
        assert penny(one, two, "--format", form).returncode == 65
    assert penny(one, two, "--format", "markdown").stdout.startswith("## What changes with the lock\n")
    assert penny(one, two, "--json").stdout == penny(one, two, "--format", "json").stdout
    assert json.loads(penny(one, two, "--json").stdout)["changes"][0]["detail"] is None
    assert penny(one, two, "--format", "html").returncode == 2

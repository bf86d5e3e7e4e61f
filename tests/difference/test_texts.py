"""A patch or a conversion script that changed is shown line by line, and a stranger's text does no harm."""

import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reproducer.cli.show_diff import shown
from reproducer.difference.diff import diff
from reproducer.difference.texts import unified
from tests.difference.beside import PATCHES, SCRIPT, opened
from tests.identity.factory import make_lock
from tests.identity.test_show import printed

OLD = b"--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-a = 1\n+a = 2\n b = 1\n"
NEW = OLD.replace(b"+a = 2", b"+a = 3")


def test_a_patch_of_other_content_is_a_diff_of_diffs(tmp_path: Path) -> None:
    """The change of its digest carries both versions, line by line; nothing else carries any."""
    found = diff(opened(tmp_path / "a", {PATCHES[0]: OLD}), opened(tmp_path / "b", {PATCHES[0]: NEW}))

    (change,) = found.changes
    assert change.path == f'components.sglang.patches."{PATCHES[0]}".sha256'
    assert change.detail == (
        f"--- a/{PATCHES[0]}\n+++ b/{PATCHES[0]}\n@@ -2,5 +2,5 @@\n +++ b/x.py\n @@ -1,2 +1,2 @@\n"
        " -a = 1\n-+a = 2\n++a = 3\n  b = 1"
    )
    assert change.content()["detail"] == change.detail
    assert found.not_compared == ()


def test_a_conversion_script_is_shown_too(tmp_path: Path) -> None:
    """Of the checkpoint that it makes."""
    found = diff(opened(tmp_path / "a", {SCRIPT: b"one\n"}), opened(tmp_path / "b", {SCRIPT: b"two\n"}))

    details = {change.path: change.detail for change in found.changes}
    for role in ("target", "draft"):
        assert (details[f"checkpoints.{role}.conversion.script.sha256"] or "").splitlines()[-2:] == ["-one", "+two"]


@pytest.mark.parametrize("harm", ["missing", "changed", "link", "bare"])
def test_what_cannot_be_read_is_said(tmp_path: Path, harm: str) -> None:
    """The change stands without its lines, and `not_compared` names patch, component and reason."""
    one, two = opened(tmp_path / "a", {PATCHES[0]: OLD}), opened(tmp_path / "b", {PATCHES[0]: NEW})
    file = two.folder / PATCHES[0]
    if harm == "changed":
        file.write_bytes(OLD)
    elif harm != "bare":
        file.unlink()
        if harm == "link":
            (tmp_path / "outside").write_bytes(NEW)
            file.symlink_to(tmp_path / "outside")
    found = diff(one.lock, two.lock) if harm == "bare" else diff(one, two)

    assert [change.detail for change in found.changes] == [None]
    (reason,) = found.not_compared
    assert reason.startswith(f"patch {PATCHES[0]} of component sglang: ")
    told = {
        "missing": "cannot be read",
        "changed": "is not the file that the lock pins",
        "link": "leads out of its folder",
        "bare": "only the locks were given",
    }
    assert told[harm] in reason


def test_in_a_terminal_a_long_patch_is_cut_and_says_so(tmp_path: Path) -> None:
    """With the number of lines that are left out; nothing in it steers the terminal."""
    evil = b"".join(b"+\x1b[2J\xff[bold]%d\n" % number for number in range(500))
    found = diff(opened(tmp_path / "a", {PATCHES[0]: b""}), opened(tmp_path / "b", {PATCHES[0]: evil}))
    lines = (found.changes[0].detail or "").split("\n")
    text = printed(shown(found))

    assert len(lines) == 3 + 500
    assert f"{len(lines) - 60} more lines, all of them with --json" in text
    assert r"++\x1b[2J\xff[bold]0" in text
    assert "[bold]56" in text
    assert "[bold]57" not in text
    assert all(character.isprintable() or character == "\n" for character in text)


LINES = st.lists(st.sampled_from([b"a", b"b", b"\\", b"+", b"-", b" ", b"", b"\r", b"\xff"]), max_size=12).map(
    b"\n".join
)


@settings(max_examples=60, deadline=None)
@given(LINES, LINES, st.sampled_from([0, 4_000_000]))
def test_what_is_shown_turns_one_file_into_the_other(
    tmp_path_factory: pytest.TempPathFactory, before: bytes, after: bytes, pairs: int
) -> None:
    """Git itself applies it, whether it was made with care or in haste; equal files give nothing."""
    before, after = (each.decode("utf-8", "backslashreplace").encode() for each in (before, after))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reproducer.difference.texts._MOST_PAIRS", pairs)
        text = unified(before, after, "x", "x")
    assert (text == "") == (before == after)
    if not text:
        return
    folder = tmp_path_factory.mktemp("apply")
    (folder / "x").write_bytes(before)
    (folder / "d").write_bytes(text.encode() + b"\n")
    command = ["git", "apply", "--unidiff-zero", "--whitespace=nowarn", "d"]
    subprocess.run(command, cwd=folder, check=True, env={"PATH": "/usr/bin:/bin", "GIT_CEILING_DIRECTORIES": "/"})
    assert (folder / "x").read_bytes() == after


def test_a_hostile_patch_takes_no_time() -> None:
    """Many lines that nearly match are told as taken out and put in."""
    one = b"".join(b"%d\n" % (number % 997) for number in range(60_000))
    two = b"".join(b"%d\n" % (number * 7 % 991) for number in range(60_000))
    since = time.process_time()
    text = unified(one, two, "x", "x")

    assert text.count("\n") > 100_000
    assert time.process_time() - since < 60


def test_bare_locks_without_changed_texts_say_nothing() -> None:
    """There is nothing to compare."""
    assert diff(make_lock(), make_lock()).not_compared == ()

"""Patches apply exactly where they say, all of a series or none of it."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reproducer.build.patching import apply_series
from reproducer.errors import DriftError, PennyError, UnsafeInputError

BEFORE = "".join(f"line {number}\n" for number in range(1, 21))
GOOD = """\
From 0123456789 Mon Sep 17 00:00:00 2001
Subject: two changes
---
 a.py | 2 +-

diff --git a/a.py b/a.py
index 111..222 100644
--- a/a.py
+++ b/a.py
@@ -2,3 +2,4 @@ a heading
 line 2
-line 3
+line three
+line three and a half
 line 4
@@ -18,3 +19,2 @@
 line 18
-line 19
 line 20
"""
GOOD += "-- \n2.43.0\n\n"  # how git ends a mail


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small source tree."""
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "a.py").write_text(BEFORE)
    (folder / "gone.py").write_text("bye\n")
    (folder / "open.txt").write_text("no newline")
    return folder


def header(path: str = "a.py") -> str:
    """The two lines that name a file."""
    return f"--- a/{path}\n+++ b/{path}\n"


def state(tree: Path) -> dict[str, bytes]:
    """Every file of a tree."""
    return {str(path.relative_to(tree)): path.read_bytes() for path in tree.rglob("*") if path.is_file()}


def test_applies(tree: Path) -> None:
    """Hunks land at the stated lines, shifted by the ones above them; a mail's text and signature do not matter."""
    assert apply_series(tree, [("0001.patch", GOOD.encode())]) == ("a.py",)
    expected = BEFORE.replace("line 3\n", "line three\nline three and a half\n").replace("line 19\n", "")
    assert (tree / "a.py").read_text() == expected


def test_new_deleted_and_unterminated_files(tree: Path) -> None:
    """Files appear with their mode, disappear, and may lose or gain the newline at their end."""
    text = (
        "diff --git a/new/tool b/new/tool\nnew file mode 100755\nindex 000..111\n--- /dev/null\n+++ b/new/tool\n"
        "@@ -0,0 +1 @@\n+#!/bin/sh\n"
        "diff --git a/gone.py b/gone.py\ndeleted file mode 100644\n--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n"
        "--- a/open.txt\n+++ b/open.txt\n@@ -1 +1 @@\n-no newline\n\\ No newline at end of file\n+newline\n"
        "diff -ruN a/n.txt b/n.txt\n--- a/n.txt\t1970-01-01\n+++ b/n.txt\t2024-01-01\n@@ -0,0 +1 @@\n+x\n"
        "\\ No newline at end of file\n"
    )
    assert apply_series(tree, [("p", text.encode())]) == ("gone.py", "n.txt", "new/tool", "open.txt")
    assert (tree / "new/tool").stat().st_mode & 0o777 == 0o755
    assert not (tree / "gone.py").exists()
    assert (tree / "open.txt").read_bytes() == b"newline\n"
    assert (tree / "n.txt").read_bytes() == b"x"


def test_series_builds_on_itself(tree: Path) -> None:
    """A later patch sees what an earlier one made, and recreating a deleted file works."""
    first = "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+one\n--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n"
    second = header("n") + "@@ -1 +1 @@\n-one\n+two\n--- /dev/null\n+++ b/gone.py\n@@ -0,0 +1 @@\n+back\n"
    apply_series(tree, [("1", first.encode()), ("2", second.encode())])
    assert (tree / "n").read_text() == "two\n"
    assert (tree / "gone.py").read_text() == "back\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            header() + "@@ -2 +2 @@\n-line 3\n+x\n",
            r"0002\.patch: a\.py, hunk 1: does not apply at line 2 \(expected 'line 3\\n', found 'line 2\\n'\)",
        ),
        (header() + "@@ -3 +2 @@\n-line 3\n+x\n", "says it lands on line 2"),
        (header() + "@@ -2,3 +2,3 @@\n line 2\n-line 3 \n+x\n line 4\n", r"expected 'line 3 \\n'"),
        (header() + "@@ -20,2 +20,2 @@\n line 20\n-line 21\n+x\n", "found the end of the file"),
        (header() + "@@ -99 +99 @@\n-x\n+y\n", "begins at line 99"),
        (header() + "@@ -5 +5 @@\n-line 5\n+x\n@@ -4 +4 @@\n-line 4\n+x\n", "hunk 2: begins before"),
        (header("none.py") + "@@ -1 +1 @@\n-x\n+y\n", "not there"),
        ("--- /dev/null\n+++ b/a.py\n@@ -0,0 +1 @@\n+x\n", "there already"),
        ("--- a/a.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-line 1\n", "leaves 19 of its lines"),
        (header() + "@@ -1,2 +1,2 @@\n-line 1\n+x\n", "cut short"),
        (header() + "@@ -1,2 +1,2 @@\n-line 1\n+x\nline 2\n", "no sign"),
        (header() + "@@ -1 +1 @@\n-line 1\n+x\n y\n", "not part of a unified diff"),
        (header() + "@@ nonsense @@\n", "no hunk"),
        ("diff --git a/e b/e\nnew file mode 100644\nindex 0..0\n", "without showing its lines"),
        ("words\n", "changes no file"),
        ("", "changes no file"),
    ],
)
def test_does_not_apply(tree: Path, text: str, told: str) -> None:
    """Each is a DriftError naming patch file and place, and the good patch before it is not applied either."""
    before = state(tree)
    with pytest.raises(DriftError, match=told):
        apply_series(tree, [("0002.patch", text.encode())])
    first = header("open.txt") + "@@ -1 +1 @@\n-no newline\n\\ No newline at end of file\n+newline\n"
    with pytest.raises(DriftError):
        apply_series(tree, [("0001.patch", first.encode()), ("0002.patch", text.encode())])
    assert state(tree) == before


@pytest.mark.parametrize(
    "text",
    [
        "--- a/../../evil\n+++ b/../../evil\n@@ -0,0 +1 @@\n+x\n",
        "--- /dev/null\n+++ /no-such-folder/evil\n@@ -0,0 +1 @@\n+x\n",
        "--- /dev/null\n+++ b//no-such-folder/evil\n@@ -0,0 +1 @@\n+x\n",
        "--- /dev/null\n+++ c/evil\n@@ -0,0 +1 @@\n+x\n",
        '--- /dev/null\n+++ "b/e\\056"\n@@ -0,0 +1 @@\n+x\n',
        "--- a/a.py\n+++ b/b.py\n@@ -1 +1 @@\n-line 1\n+x\n",
        "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/no-such-folder/file\n",
        "diff --git a/m b/m\nnew file mode 160000\n--- /dev/null\n+++ b/m\n@@ -0,0 +1 @@\n+x\n",
        "diff --git a/a.py b/a.py\nold mode 100644\nnew mode 100755\n",
        "diff --git a/a.py b/b.py\nsimilarity index 100%\nrename from a.py\nrename to b.py\n",
        "diff --git a/a.py b/a.py\nindex 1..2\nGIT binary patch\nliteral 1\nIc\n",
        "Binary files a/x and b/x differ\n",
        "Only in b: x\n",
    ],
)
def test_hostile_patches(tree: Path, tmp_path: Path, text: str) -> None:
    """Paths that leave, links, renames, mode changes and binary content are refused and change nothing."""
    (tree / "link").symlink_to(tmp_path)
    before = state(tmp_path)
    with pytest.raises(UnsafeInputError, match="q, line"):
        apply_series(tree, [("p", GOOD.encode()), ("q", text.encode())])
    assert state(tmp_path) == before


def test_links_in_the_tree(tree: Path, tmp_path: Path) -> None:
    """A patch never writes through a link of the source tree, nor replaces one."""
    (tree / "link").symlink_to(tmp_path)
    (tree / "file-link").symlink_to(tree / "gone.py")
    for path in ("link/evil", "file-link"):
        with pytest.raises(UnsafeInputError, match="behind a symbolic link"):
            apply_series(tree, [("p", f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n".encode())])
    assert not (tmp_path / "evil").exists()


GIT = shutil.which("git") or "git"
LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", " d\n", "-e\n", "\n"]), max_size=30)


@settings(max_examples=60, deadline=None)
@given(old=LINES, new=LINES, cut=st.booleans())
def test_agrees_with_git(tmp_path_factory: pytest.TempPathFactory, old: list[str], new: list[str], cut: bool) -> None:  # noqa: FBT001  hypothesis
    """What `git diff` writes between any two texts applies, and gives the second one."""
    folder = tmp_path_factory.mktemp("git")
    for name, lines in (("a", old), ("b", new)):
        (folder / name).mkdir()
        text = "".join(lines)
        (folder / name / "f").write_text(text[:-1] if cut and name == "b" else text)
    made = subprocess.run(
        [GIT, "diff", "--no-index", "--no-color", "--no-prefix", "a/f", "b/f"],
        cwd=folder,
        capture_output=True,
        check=False,
    ).stdout
    if made:
        apply_series(folder / "a", [("p", made)])
    assert (folder / "a" / "f").read_bytes() == (folder / "b" / "f").read_bytes()


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Whatever a patch file holds, it applies or is one of penny's own errors."""
    folder = tmp_path_factory.mktemp("any")
    try:
        apply_series(folder, [("p", b"--- a/f\n+++ b/f\n" + data)])
    except PennyError:
        assert not list(folder.iterdir())

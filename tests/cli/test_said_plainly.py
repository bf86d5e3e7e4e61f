"""What people get wrong on a command line, and what they are told: the thing, its place, and what to do."""

import json
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_nothing_there import LOCK, ROOT, penny

if TYPE_CHECKING:
    import subprocess

BUNDLE = ROOT / "evidence" / "smollm2-135m-vllm-cpu" / "20261203T054601Z-17849eaa71f1"


def refused(ended: "subprocess.CompletedProcess[str]", code: int = 2) -> str:
    """The error's one line."""
    assert ended.returncode == code, ended.stderr
    return ended.stderr


@pytest.mark.parametrize("more", [("--all",), ("--lock", str(LOCK))])
def test_stop_where_nothing_runs(tmp_path: Path, more: tuple[str, ...]) -> None:
    """Nobody is sent to --all where nothing runs at all; the store that was looked at is named."""
    said = refused(penny("stop", *more, folder=tmp_path, store=tmp_path / "store"))
    assert said == f"penny: error: store {tmp_path / 'store'}: no detached server is running\n"


@pytest.mark.parametrize("command", ["list", "gc"])
def test_a_lock_that_is_named_must_be_there(tmp_path: Path, command: str) -> None:
    """A lock that cannot be read is refused, though no namespace lies there that it could use."""
    said = refused(penny("cache", command, "--lock", "nope.toml", folder=tmp_path, store=tmp_path / "store"))
    assert "nope.toml" in said


def test_collecting_nothing_begins_with_a_line_that_says_so(tmp_path: Path) -> None:
    """No empty line first."""
    ended = penny("cache", "gc", folder=tmp_path, store=tmp_path / "store")
    assert (ended.returncode, ended.stdout.splitlines()[0]) == (0, "0 B would be freed, 0 B would stay")


def test_attesting_no_builds_could_not_be_done(tmp_path: Path) -> None:
    """Without build receipts it is the same as without others: exit code 96, and what to run."""
    ended = penny("attest", "--builds", "--lock", str(LOCK), folder=tmp_path, store=tmp_path / "store")
    assert "penny build" in refused(ended, 96)


@pytest.mark.parametrize("digest", ["abc", "", "F" * 64, "0" * 65])
def test_a_lock_digest_that_is_none(tmp_path: Path, digest: str) -> None:
    """Wrong usage, and no bundle of another lock."""
    ended = penny("verify", str(BUNDLE), "--lock-digest", digest, folder=tmp_path, store=tmp_path / "store")
    assert "--lock-digest" in refused(ended)
    assert "64 hex digits" in ended.stderr


def test_two_locks_to_reproduce(tmp_path: Path) -> None:
    """One is not taken silently."""
    ended = penny("reproduce", str(LOCK), "--lock", "other.toml", folder=tmp_path, store=tmp_path / "store")
    assert f"{LOCK} and other.toml: two locks at once" in refused(ended)


def test_verifying_the_folder_of_bundles(tmp_path: Path) -> None:
    """It says which bundles lie in it, in words that can be pasted, and follows no link."""
    copytree(BUNDLE, tmp_path / "a b" / "one")
    (tmp_path / "two").symlink_to(BUNDLE)
    said = refused(penny("verify", ".", folder=tmp_path, store=tmp_path / "store"))
    assert "bundles lie in it. Name one of 'a b/one' to `penny verify`" in said
    assert "two" not in said


def test_verifying_a_file(tmp_path: Path) -> None:
    """A file of a bundle leads to the bundle; another file is said to be one."""
    inside = penny("verify", str(BUNDLE / "penny.lock.toml"), folder=tmp_path, store=tmp_path / "store")
    assert f"`penny verify {BUNDLE}` checks the bundle" in refused(inside)
    (tmp_path / "x").write_text("x")
    assert "is a file, and the folder" in refused(penny("verify", "x", folder=tmp_path, store=tmp_path / "store"))


def test_a_check_says_the_same_thing_once() -> None:
    """What was expected and got is one word where both are the same, and nothing stands for an empty side."""
    from reproducer.cli.show import _check_text
    from reproducer.documents.verdict import Check

    def said(expected: str, got: str) -> str:
        return str(_check_text(Check(id="x", status="failed", aspect="signature", expected=expected, got=got)))

    assert said("a", "b") == "expected a, got b"
    assert said("a", "a") == "got a"
    assert said("a", "") == "expected a"
    assert said("", "b") == "got b"


def test_a_cosmetic_change_is_a_difference(tmp_path: Path) -> None:
    """Its lock has another digest, which evidence names: exit code 65, and the change says that it costs nothing."""
    text = LOCK.read_text("utf-8")
    other = tmp_path / "other.toml"
    other.write_text(text.replace('\nname = "', '\nname = "x', 1), "utf-8")
    assert other.read_text("utf-8") != text
    ended = penny("diff", str(LOCK), str(other), "--json", folder=tmp_path, store=tmp_path / "store")
    assert ended.returncode == 65
    assert {each["consequence"] for each in json.loads(ended.stdout)["changes"]} == {"cosmetic"}

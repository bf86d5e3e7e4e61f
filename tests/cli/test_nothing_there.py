"""What commands say where nothing is there yet: no receipts, no namespaces, an empty store, no lock's folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
LOCK = ROOT / "penny.lock.toml"


def penny(*arguments: str, folder: Path, store: Path) -> "subprocess.CompletedProcess[str]":
    """Run penny in a folder with a store of its own, with nobody at the keyboard."""
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "PENNY_STORE": str(store)}
    environment.pop("PENNY_KV", None)
    return subprocess.run(
        [sys.executable, "-m", "reproducer", *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("command", ["verify", "attest"])
def test_without_receipts_nothing_could_be_checked(tmp_path: Path, command: str) -> None:
    """That is no wrong usage: exit code 96, and what to run."""
    ended = penny(command, "--lock", str(LOCK), folder=tmp_path, store=tmp_path / "store")
    assert ended.returncode == 96, ended.stderr
    assert "penny qualify" in ended.stderr


@pytest.mark.parametrize("command", ["list", "gc"])
def test_a_store_without_namespaces_is_empty(tmp_path: Path, command: str) -> None:
    """Nobody has launched yet: nothing is listed or removed, exit code 0; a folder that is named must be there."""
    ended = penny("cache", command, "--json", folder=tmp_path, store=tmp_path / "store")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["namespaces"] == []
    assert not (tmp_path / "store").exists()
    assert penny("cache", command, "--kv", str(tmp_path / "gone"), folder=tmp_path, store=tmp_path).returncode == 2


def test_verifying_no_namespace_checks_nothing(tmp_path: Path) -> None:
    """A store without namespaces is like one with none: said, and not exit code 0."""
    ended = penny("cache", "verify", folder=tmp_path, store=tmp_path / "store")
    (tmp_path / "other/kv").mkdir(parents=True)
    empty = penny("cache", "verify", folder=tmp_path, store=tmp_path / "other")
    assert (ended.returncode, ended.stdout) == (empty.returncode, empty.stdout) == (96, "no namespace lies here\n")
    assert penny("cache", "verify", "a-name", folder=tmp_path, store=tmp_path / "store").returncode == 2


def test_an_empty_store_is_told_in_few_words(tmp_path: Path) -> None:
    """Ten files that are missing are named and the others counted; --verbose names all of them."""
    ended = penny("fetch", "--offline", "--lock", str(LOCK), folder=tmp_path, store=tmp_path / "store")
    assert ended.returncode == 96
    assert "more, see --verbose" in ended.stderr
    assert len(ended.stderr) < 1500
    every = penny("fetch", "--offline", "--verbose", "--lock", str(LOCK), folder=tmp_path, store=tmp_path / "store")
    count = int(ended.stderr.split("error: ")[1].split(": ")[1].split(" files")[0])
    assert every.stderr.count("missing: ") == count > 40


def test_init_says_a_next_step_that_is_not_refused(tmp_path: Path) -> None:
    """A manifest outside the folder is locked beside itself."""
    here = tmp_path / "here"
    here.mkdir()
    inside = penny("init", "m.toml", folder=here, store=tmp_path / "store")
    assert "run `penny lock m.toml`." in inside.stdout
    elsewhere = tmp_path / "else where" / "m.toml"
    ended = penny("init", str(elsewhere), folder=here, store=tmp_path / "store")
    assert f"--lock '{elsewhere.parent}/penny.lock.toml'" in " ".join(ended.stdout.split())
    refused = penny("lock", str(elsewhere), "--offline", folder=here, store=tmp_path / "store")
    said = penny(
        *("lock", str(elsewhere), "--offline", "--lock", str(elsewhere.parent / "penny.lock.toml")),
        folder=here,
        store=tmp_path / "store",
    )
    assert "folder" not in said.stderr
    del refused


def test_a_lock_that_is_no_file_or_empty(tmp_path: Path) -> None:
    """A device is never written over, and an empty file is called empty."""
    (tmp_path / "m.toml").write_text("format = 'penny-manifest/1'\n")
    ended = penny("lock", "m.toml", "--lock", os.devnull, folder=tmp_path, store=tmp_path / "store")
    assert (ended.returncode, "must be a regular file" in ended.stderr) == (2, True)
    assert not Path(os.devnull).is_file()
    read = penny("namespace", "--lock", os.devnull, folder=tmp_path, store=tmp_path / "store")
    assert (read.returncode, "the lock is empty" in read.stderr) == (2, True)

"""The command line as a process: help, errors, exit codes, what it imports."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reproducer.documents.manifest import Manifest
from reproducer.documents.toml import read_document

HEAVY = ("torch", "sglang", "transformers", "numpy", "httpx", "unearth", "securesystemslib", "pydantic", "tomlkit")


def penny(*arguments: str, folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run penny in a folder, with nobody at the keyboard."""
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "PENNY_STORE": str(folder / "store"), **variables}
    return subprocess.run(
        [sys.executable, "-m", "reproducer", *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def imported(*arguments: str, folder: Path) -> set[str]:
    """Top-level modules that a penny process imports."""
    code = (
        "import sys, contextlib, io\n"
        "from reproducer.cli import main\n"
        f"sys.argv = ['penny', *{list(arguments)!r}]\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main()\n"
        "print('\\n'.join({name.split('.')[0] for name in sys.modules}))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    return set(ended.stdout.split())


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    """`penny --help` starts at once: no document, client or engine library is imported for it."""
    assert imported("--help", folder=tmp_path) & set(HEAVY) == set()


def test_help_fits_80_columns(tmp_path: Path) -> None:
    """Help of every command fits a terminal of 80 columns."""
    for command in ("reproduce", "init", "lock", "diff", "fetch", "build", "namespace", "launch", "stop", "qualify"):
        ended = penny(command, "--help", folder=tmp_path)
        assert ended.returncode == 0
        assert max(len(line) for line in ended.stdout.splitlines()) <= 80


def test_version(tmp_path: Path) -> None:
    """`penny --version` names the version on stdout."""
    from reproducer import __version__

    assert penny("--version", folder=tmp_path).stdout == f"penny {__version__}\n"


def test_missing_lock_is_one_line_and_exit_2(tmp_path: Path) -> None:
    """Without a lock the error is one line that names the file and what to do; with --json it is on stdout as well."""
    ended = penny("namespace", folder=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1
    assert "penny.lock.toml" in ended.stderr
    as_json = penny("namespace", "--json", folder=tmp_path)
    assert json.loads(as_json.stdout)["exit_code"] == 2


def test_unknown_option_is_exit_2(tmp_path: Path) -> None:
    """Wrong usage exits 2."""
    assert penny("lock", "--chekc", folder=tmp_path).returncode == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("format = ", "line 1"),
        ('format = "penny-lock/1"\nnaem = "x"\n', "did you mean 'name'"),
        ('format = "penny-lock/1"\nname = 3\n', "line 2, key name"),
        ('format = "penny-lock/9"\n', "penny-lock/1"),
        ("\x1b]0;owned\x07 = 1\n", "line 1"),
    ],
    ids=["not TOML", "unknown key", "wrong type", "newer format", "terminal escape"],
)
def test_malformed_lock_is_one_clear_error(tmp_path: Path, text: str, told: str) -> None:
    """A malformed lock exits 2 with one printable line that names the file and the place."""
    (tmp_path / "penny.lock.toml").write_text(text)
    ended = penny("namespace", folder=tmp_path)
    assert ended.returncode == 2
    assert told in ended.stderr
    assert "penny.lock.toml" in ended.stderr
    assert ended.stderr.rstrip("\n").isprintable()


def test_init_writes_a_manifest_that_is_valid_and_never_overwrites(tmp_path: Path) -> None:
    """`penny init` writes a manifest that penny itself accepts; a file that is there stays as it is."""
    ended = penny("init", "manifests/mine.toml", "--json", folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {"path": "manifests/mine.toml"}
    path = tmp_path / "manifests/mine.toml"
    assert read_document(Manifest, path, what="manifest").name == "my-runtime"
    path.write_text("mine")
    assert penny("init", "manifests/mine.toml", folder=tmp_path).returncode == 2
    assert path.read_text() == "mine"

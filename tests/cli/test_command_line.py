"""The command line as a process: help, errors, exit codes, what it imports."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reproducer.documents.manifest import Manifest
from reproducer.documents.toml import read_document

HEAVY = ("torch", "sglang", "transformers", "numpy", "httpx", "securesystemslib", "pydantic", "tomlkit")


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


def shell(script: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a line of shell with penny as `$PENNY`, to close and redirect what only a shell does."""
    environment = {**os.environ, "PENNY": f"{sys.executable} -m reproducer", "PENNY_STORE": str(folder / "store")}
    return subprocess.run(
        ["/bin/sh", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("json_option", ["", "--json"])
def test_closed_standard_files(tmp_path: Path, closed: str, json_option: str) -> None:
    """A closed stdin, stdout or stderr changes no exit code, and no file that is opened later gets its number."""
    assert shell(f"$PENNY init {json_option} {closed}", tmp_path).returncode == 0
    assert shell(f"$PENNY namespace {json_option} --lock missing {closed}", tmp_path).returncode == 2


def test_full_disk_under_stdout_is_one_clear_error(tmp_path: Path) -> None:
    """A result that cannot be written is said, and scripts see that the run told nothing."""
    for options in ("", "--json"):
        ended = shell(f"rm -rf manifests; $PENNY init {options} > /dev/full", tmp_path)
        assert ended.returncode == 96
        assert ended.stderr == "penny: error: the result cannot be written to stdout (No space left on device)\n"
        failed = shell(f"$PENNY namespace {options} --lock missing > /dev/full", tmp_path)
        assert failed.returncode == 2
        assert "Traceback" not in failed.stderr


def test_full_disk_under_stderr_keeps_the_exit_code(tmp_path: Path) -> None:
    """A log on a full disk ends no run and hides no exit code."""
    assert shell("$PENNY namespace --lock missing 2> /dev/full", tmp_path).returncode == 2
    notes = (
        "from reproducer.cli import terminal\n"
        "talker = terminal.Terminal(verbose=True)\n"
        "talker.note('a' * 100_000)\n"
        "talker.detail('b')\n"
        "print('went on')\n"
    )
    (tmp_path / "notes.py").write_text(notes)
    ended = shell(f"{sys.executable} notes.py 2> /dev/full", tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "went on\n")


@pytest.mark.parametrize(("ignored", "code"), [("", 129), ("trap '' HUP;", 0)])
def test_hangup(tmp_path: Path, ignored: str, code: int) -> None:
    """A closed terminal ends penny, unless nohup or the like had it ignored."""
    program = (
        "import os, signal, typer\n"
        "from reproducer.cli.front import run\n"
        "app = typer.Typer()\n"
        "@app.command()\n"
        "def main() -> None:\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "run(app)\n"
    )
    (tmp_path / "program.py").write_text(program)
    assert shell(f"{ignored} exec {sys.executable} program.py", tmp_path).returncode == code


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_user_without_a_name_or_a_home(tmp_path: Path) -> None:
    """In a container a user id has no name and HOME may be unset: home is the root folder, and nothing fails on it."""
    program = (
        "import os\n"
        "from pathlib import Path\n"
        "from reproducer.cli import front\n"
        "del os.environ['HOME']\n"
        "os.setuid(54321)\n"
        "def app():\n"
        "    os.write(1, str(Path.home()).encode())\n"
        "front.run(app)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "/"), ended.stderr

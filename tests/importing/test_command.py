"""`penny import` as a process: files, questions, exit codes, what is printed."""

import json
import os
import subprocess
import sys
from pathlib import Path

from reproducer.documents.manifest import Manifest
from reproducer.documents.toml import read_document
from tests.terminal import seen


def penny(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run penny in a folder, with nobody at the keyboard."""
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "PENNY_STORE": str(folder / "store")}
    return subprocess.run(
        [sys.executable, "-m", "reproducer", *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_command_line_behind_dashes(tmp_path: Path) -> None:
    """The manifest is written and valid; what has no place is in the JSON, and the exit code is 0 nevertheless."""
    ended = penny(
        "import", "--json", "--", "vllm", "serve", "org/m", "--port", "1", "--api-key", "s3cret", folder=tmp_path
    )
    assert ended.returncode == 0, ended.stderr
    result = json.loads(ended.stdout)
    assert result["manifest"] == "manifests/m-vllm.toml"
    assert [each["text"] for each in result["unmapped"]] == ["--port 1", "--api-key"]
    assert set(result["unmapped"][0]) == {"text", "where", "why"}
    assert result["ran"] is False
    assert "s3cret" not in ended.stdout + ended.stderr
    assert read_document(Manifest, tmp_path / result["manifest"], what="manifest").name == "m-vllm"


def test_a_manifest_is_never_written_over(tmp_path: Path) -> None:
    """Without --force the file that is there stays; a link is not followed even with it."""
    line = ("import", "--command", "vllm serve org/m", "-o", "m.toml")
    assert penny(*line, folder=tmp_path).returncode == 0
    (tmp_path / "m.toml").write_text("mine")
    refused = penny(*line, folder=tmp_path)
    assert (refused.returncode, (tmp_path / "m.toml").read_text()) == (2, "mine")
    assert penny(*line, "--force", folder=tmp_path).returncode == 0
    assert (tmp_path / "m.toml").read_text() != "mine"
    (tmp_path / "target").write_text("mine")
    (tmp_path / "m.toml").unlink()
    (tmp_path / "m.toml").symlink_to(tmp_path / "target")
    assert penny(*line, "--force", folder=tmp_path).returncode == 2
    assert (tmp_path / "target").read_text() == "mine"


def test_files_beside_the_lock_are_copied_and_said(tmp_path: Path) -> None:
    """A template is copied to runtime/NAME; another file of that name there stops everything."""
    (tmp_path / "t.jinja").write_text("{{ a }}")
    line = ("import", "--command", "vllm serve org/m --chat-template t.jinja")
    ended = penny(*line, folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "runtime/m-vllm/t.jinja").read_text() == "{{ a }}"
    assert "copied" in ended.stderr
    (tmp_path / "runtime/m-vllm/t.jinja").write_text("other")
    (tmp_path / "manifests/m-vllm.toml").unlink()
    assert penny(*line, folder=tmp_path).returncode == 2
    assert not (tmp_path / "manifests/m-vllm.toml").exists()
    assert (tmp_path / "runtime/m-vllm/t.jinja").read_text() == "other"


def test_a_script_is_run_only_with_yes(tmp_path: Path) -> None:
    """Nobody is there to ask: exit code 2 with the reason and the way out; with --yes it is recorded and said."""
    (tmp_path / "run.sh").write_text("for i in 1; do :; done\nsglang serve --model-path org/m\n")
    ended = penny("import", "run.sh", folder=tmp_path)
    assert ended.returncode == 2
    assert "line 1: `for`" in ended.stderr
    assert "--yes" in ended.stderr
    ran = penny("import", "run.sh", "--yes", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "The script was run, apart from this host." in " ".join(ran.stdout.split())


def test_wrong_usage(tmp_path: Path) -> None:
    """Nothing, two things at once, no such file, no launch, a bad option: exit code 2 and no file is written."""
    for line in (
        ("import",),
        ("import", "a.sh", "--command", "vllm serve org/m"),
        ("import", "gone.sh"),
        ("import", "--", "echo", "hi"),
        ("import", "--command", "vllm serve org/m", "--env", "bad"),
        ("import", "--command", "vllm serve org/m", "--checkpoint", "target=nope"),
        ("import", "--command", "vllm serve org/m", "--python", "2.7"),
        ("import", "--command", "vllm serve org/m", "--name", "Not A Slug"),
        ("import", "--command", "vllm serve org/m", "--engine-version", "a b"),
    ):
        ended = penny(*line, folder=tmp_path)
        assert ended.returncode == 2, (line, ended.stderr)
    assert list(tmp_path.iterdir()) == []


def test_tables_fit_80_columns_and_steer_no_terminal(tmp_path: Path) -> None:
    """Long and hostile texts are folded and escaped."""
    unit = (
        "[Service]\nEnvironment=LONG_VARIABLE_NAME=" + "x" * 300 + "\nNice=\x1b]0;owned\x07\n"
        "ExecStart=/usr/bin/vllm serve org/m --crash-dump-folder /var/" + "d" * 200 + "\n"
    )
    (tmp_path / "a.service").write_text(unit)
    ended = penny("import", "a.service", folder=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "\x1b" not in ended.stderr + ended.stdout
    line = [sys.executable, "-m", "reproducer", "import", "a.service", "--force"]
    code, lines = seen(line, folder=tmp_path, environment=os.environ)
    assert code == 0, lines
    assert max(map(len, lines)) <= 80


def test_help_fits_80_columns(tmp_path: Path) -> None:
    """The help names every kind of launch."""
    ended = penny("import", "--help", folder=tmp_path)
    assert ended.returncode == 0
    assert max(len(line) for line in ended.stdout.splitlines()) <= 80
    assert "systemd unit" in " ".join(ended.stdout.replace("│", " ").split())

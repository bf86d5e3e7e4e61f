"""`penny diff` with two artefacts in place of two locks."""

import json
import subprocess
import sys
from pathlib import Path


def penny(*arguments: object) -> tuple[int, str, str]:
    """Run penny."""
    argv = [sys.executable, "-m", "reproducer", *map(str, arguments)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders with one file each that names its folder."""
    pair = tmp_path / "one", tmp_path / "two"
    for each in pair:
        each.mkdir()
        (each / "a.txt").write_text(f"made in {each}\n")
    return pair


def test_levels_and_exit_codes(tmp_path: Path) -> None:
    """The level is the result; below device code the exit code says that the rebuild differs."""
    one, two = folders(tmp_path)
    code, out, _ = penny("diff", one, two, "--json")
    assert (code, json.loads(out)["level"]) == (66, "inputs-identical")
    assert [each["where"] for each in json.loads(out)["differences"]] == ["a.txt"]
    code, out, _ = penny("diff", one, two, "--build-path", one, "--build-path", two)
    assert (code, out.splitlines()[-1]) == (0, "level content-identical")
    assert "a.txt: build path: build folder 1, then build folder 2" in out


def test_wrong_usage(tmp_path: Path) -> None:
    """Markdown is for locks, build paths are for artefacts, and a lock is no artefact."""
    one, two = folders(tmp_path)
    assert penny("diff", one, two, "--format", "markdown")[0] == 2
    (tmp_path / "a.toml").write_text("")
    assert penny("diff", tmp_path / "a.toml", tmp_path / "a.toml", "--build-path", one)[0] == 2
    code, _, said = penny("diff", one, tmp_path / "a.toml")
    assert (code, "a folder cannot be compared with a file" in said) == (2, True)

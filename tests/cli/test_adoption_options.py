"""Options about frozen locks on a lock whose runtime is built: refused by name, and never ignored."""

from pathlib import Path

import pytest

from tests.cli.test_command_line import penny
from tests.end_to_end.newcomer import ROOT

LOCK = str(ROOT / "penny.lock.toml")


@pytest.mark.parametrize("command", ["launch", "qualify", "build", "reproduce"])
@pytest.mark.parametrize("option", [("--python", "/opt/python3"), ("--checkpoint", "target=/models/x")])
def test_an_option_of_frozen_locks_is_refused(tmp_path: Path, command: str, option: tuple[str, str]) -> None:
    """One line names the option and the lock; nothing was made, asked or run."""
    ended = penny(command, "--lock", LOCK, "--yes", "--offline", *option, folder=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1
    assert f"{LOCK}: {option[0]} is about frozen locks" in ended.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("more", [(), ("--against", LOCK)])
def test_a_variable_that_is_set_for_every_run_is_no_option(tmp_path: Path, more: tuple[str, ...]) -> None:
    """`PENNY_PYTHON` says nothing about a lock that is built: the command goes on to what it lacks offline."""
    ended = penny("qualify", "--lock", LOCK, "--yes", "--offline", *more, folder=tmp_path, PENNY_PYTHON="/opt/python3")
    assert ended.returncode in (65, 96), ended.stderr
    assert "--python" not in ended.stderr

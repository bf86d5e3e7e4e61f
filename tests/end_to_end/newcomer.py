"""penny as a newcomer runs it: a process in a copy of the repository's lock."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import tomlkit

from tests.terminal import seen

ROOT = Path(__file__).parents[2]
SHORT_SUITE = ("chat.smoke/1", "restore.restart/1")


@dataclass(frozen=True)
class Ended:
    """How a penny process ended."""

    code: int
    out: str
    err: str

    @property
    def result(self) -> dict[str, Any]:
        """What it printed with --json: the last line, after one for each sample where it measured."""
        data: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return data


@dataclass(frozen=True)
class Penny:
    """Runs the command line as a person would, in one working folder, with one store and one key folder."""

    folder: Path
    store: Path
    keys: Path

    def start(self, *arguments: str, **variables: str) -> "subprocess.Popen[str]":
        """Start a process; the caller ends it."""
        environment = {**os.environ, "PENNY_STORE": str(self.store), "PENNY_KEYS": str(self.keys), "COLUMNS": "80"}
        return subprocess.Popen(
            [sys.executable, "-m", "reproducer", *arguments],
            cwd=self.folder,
            env=environment | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def seen(self, *arguments: str, **variables: str) -> tuple[int, list[str]]:
        """Exit code and lines of it in a terminal of 80 columns."""
        environment = {**os.environ, "PENNY_STORE": str(self.store), "PENNY_KEYS": str(self.keys), **variables}
        return seen([sys.executable, "-m", "reproducer", *arguments], folder=self.folder, environment=environment)

    def __call__(self, *arguments: str, **variables: str) -> Ended:
        """Run it to its end."""
        process = self.start(*arguments, **variables)
        out, err = process.communicate()
        return Ended(process.returncode, out, err)


def servers_of(store: Path) -> list[psutil.Process]:
    """Every living process whose command line or working folder lies in a store."""
    found = []
    for process in psutil.process_iter():
        try:
            places = [*process.cmdline(), process.cwd(), process.exe()]
        except (psutil.Error, OSError):
            continue
        if any(place.startswith(str(store)) for place in places) and process.status() != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def copy_of_repository(folder: Path) -> Path:
    """The lock and all that lies beside it, as a newcomer's clone has it."""
    folder.mkdir()
    for name in ("runtime", "manifests"):
        shutil.copytree(ROOT / name, folder / name)
    for path in [ROOT / "penny.lock.toml", *ROOT.glob("pylock*.toml")]:
        shutil.copy2(path, folder)
    return folder


def edit_lock(folder: Path, change: Callable[[Any], None]) -> None:
    """Change the parsed lock of a folder in place, as a person with an editor would."""
    path = folder / "penny.lock.toml"
    document = tomlkit.parse(path.read_text())
    change(document)
    path.write_text(tomlkit.dumps(document))


def shorten(document: Any) -> None:
    """Leave only the quick measures in the suite."""
    measures = document["qualification"]["measures"]
    for index in reversed(range(len(measures))):
        if measures[index]["id"] not in SHORT_SUITE:
            del measures[index]

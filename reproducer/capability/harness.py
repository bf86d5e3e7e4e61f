"""Starting the harness: a process of its own whose home, caches, settings and logs all lie in one folder of the run."""

import hashlib
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from reproducer.capability.order import LOGS, ORDER, OUTCOME, HarnessOrder, HarnessOutcome
from reproducer.documents.toml import read_text, write_atomically
from reproducer.documents.transcripts import MOST_TURNS
from reproducer.errors import NotCheckedError, PennyError
from reproducer.store.faults import writing

MISSING = "the harness is not installed: pip install 'penny-reproducer[evals]'"
LARGEST_OUTCOME = 64 << 20
_START_S = 120.0
_SHOWN = 2000
_KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT")


@dataclass(frozen=True)
class Ran:
    """What a run gave, and the harness's own log of it."""

    outcome: HarnessOutcome
    log: Path
    log_sha256: str


def available() -> bool:
    """Whether the harness is installed."""
    return find_spec("inspect_ai") is not None and find_spec("openai") is not None


def run(order: HarnessOrder, folder: Path) -> Ran:
    """Run a suite in a folder of its own, which is emptied before.

    Raises:
        NotCheckedError: the harness broke off, or its folder cannot be written.
    """
    with writing(folder, what="the harness's folder"):
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("home", "tmp", LOGS):
            (folder / name).mkdir(mode=0o700, parents=True)
        (folder / ".env").touch()  # settings are looked for upwards from here; this one ends the search
    write_atomically(folder / ORDER, order.canonical())
    _walk(folder, _START_S + order.deadline_s * len(order.cases) * MOST_TURNS)
    try:
        outcome = HarnessOutcome.from_json(
            read_text(folder / OUTCOME, what="outcome", limit=LARGEST_OUTCOME), where=OUTCOME
        )
    except PennyError as error:
        raise NotCheckedError("the harness left no outcome", where=str(folder), why=str(error)) from error
    log = folder / LOGS / outcome.log
    with log.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Ran(outcome, log, digest)


def environment(folder: Path) -> dict[str, str]:
    """What the harness is told by its surroundings: nothing of the user's settings, keys or folders."""
    home = str(folder / "home")
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | {
        "HOME": home,
        "XDG_CACHE_HOME": f"{home}/cache",
        "XDG_CONFIG_HOME": f"{home}/config",
        "XDG_DATA_HOME": f"{home}/data",
        "XDG_RUNTIME_DIR": f"{home}/run",
        "TMPDIR": str(folder / "tmp"),
        "INSPECT_LOG_DIR": str(folder / LOGS),
        "NO_PROXY": "*",
        "NO_COLOR": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _walk(folder: Path, limit_s: float) -> None:
    said = folder / "harness.log"
    command = [sys.executable, "-P", "-m", "reproducer.capability.driver"]
    with writing(folder, what="the harness's folder"), said.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        code = process.wait(limit_s)
    except subprocess.TimeoutExpired as error:
        raise NotCheckedError("the harness did not come to an end", where=str(said)) from error
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()
    if code != 0:
        raise NotCheckedError(f"the harness ended with code {code}", where=str(said), why=_end(said))


def _end(path: Path) -> str:
    """The last line that the harness wrote, shortened; it may quote a model."""
    text = path.read_bytes()[-_SHOWN:].decode("utf-8", "replace")
    lines = ["".join(character for character in line if character.isprintable()) for line in text.splitlines()]
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")

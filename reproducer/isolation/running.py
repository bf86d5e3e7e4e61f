"""Running other people's build code: a scrubbed environment, no network, nothing left behind.

The command sees only the variables that the recipe names, a umask of 022 and, where the kernel allows unprivileged
namespaces, a network without an interface, its own processes only and a file system that is read-only outside its
work folder. Where the kernel refuses, offline settings are all there is, and the returned `Isolation` says
`settings-only`.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from reproducer.documents.base import shown
from reproducer.documents.built import Isolation
from reproducer.errors import NotCheckedError, RebuildError, UnsafeInputError

UMASK = 0o022
LOCALE = "C.UTF-8"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
LONGEST_STEP_S = 3600.0
_GRACE_S = 15.0
_TAIL_LINES = 20
_TAIL_BYTES = 4000
# A recipe that could set these could undo what this module promises.
_RESERVED = re.compile(r"^(PYTHON|LD_|PIP_|UV_|LC_).*$|^(PATH|HOME|TMPDIR|LANG|TZ|SOURCE_DATE_EPOCH|VIRTUAL_ENV)$")
_CONFINE = Path(__file__).with_name("confine.py")


def refuse_reserved(name: str) -> None:
    """Refuse a variable of a recipe.

    Raises:
        UnsafeInputError: penny sets it itself.
    """
    if _RESERVED.match(name):
        raise UnsafeInputError(f"the recipe sets {shown(name)}", why="penny sets that variable itself")


def scrubbed(
    *, home: Path, epoch: int, programs: Path | None = None, variables: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The whole environment of a build step; nothing is inherited.

    Args:
        home: a folder of this step; `HOME` and `TMPDIR` lie in it and are made.
        epoch: `SOURCE_DATE_EPOCH`, in seconds.
        programs: the folder that comes first on `PATH`, such as a venv's `bin`.
        variables: what the recipe adds.

    Raises:
        UnsafeInputError: the recipe sets a variable that penny sets itself.
    """
    for name in variables or {}:
        refuse_reserved(name)
    for folder in (home, home / "tmp"):
        folder.mkdir(parents=True, exist_ok=True)
    return {
        **(variables or {}),
        "PATH": f"{programs}:{SYSTEM_PATH}" if programs else SYSTEM_PATH,
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "LANG": LOCALE,
        "LC_ALL": LOCALE,
        "TZ": "UTC",
        "SOURCE_DATE_EPOCH": str(epoch),
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PIP_NO_INDEX": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_OFFLINE": "1",
        "UV_NO_CONFIG": "1",
        "UV_NO_CACHE": "1",
        "HF_HUB_OFFLINE": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "none",  # a repository on this machine is no input of a lock either
    }


def run_isolated(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    writable: Sequence[Path],
    log: Path,
    what: str,
    network: bool = False,
    namespaces: bool = True,
    mounted: Path | None = None,
    host: str | None = None,
    timeout_s: float = LONGEST_STEP_S,
) -> Isolation:
    """Run one command to its end; when this returns or raises, none of its processes is left.

    Args:
        argv: absolute program path and its arguments.
        cwd: working directory, below one of `writable`.
        env: the whole environment, as `scrubbed` makes it.
        writable: the folders that the command may write to; they exist.
        log: file that gets stdout and stderr.
        what: what the step is, for errors: "the build of sglang".
        network: leave the network as it is.
        namespaces: False never asks the kernel for namespaces.
        mounted: a path, in a folder that is there, under which the command sees the first of `writable` as well; `cwd`
            lies below it. Where the kernel allows no mounts, nothing lies there.
        host: the host name that the command sees, where the kernel allows namespaces; None for the machine's.
        timeout_s: the longest it may take, in seconds.

    Returns:
        How it was kept apart.

    Raises:
        RebuildError: it failed or took too long; with the end of its output.
        NotCheckedError: it could not be started at all.
    """
    plan = {
        "argv": list(argv),
        "cwd": str(cwd.resolve() if mounted is None else cwd),
        "mounted": None if mounted is None else str(mounted),
        "writable": [str(folder.resolve()) for folder in writable],
        "network": network,
        "host": host,
        "namespaces": namespaces,
        "parent": os.getpid(),
    }
    receive, report = os.pipe()
    with os.fdopen(receive, "rb") as facts_file:
        try:
            process = _start(cwd if mounted is None else writable[0], env, log, report)
        except OSError as error:
            os.close(report)
            raise NotCheckedError(f"{what} cannot be started", where=str(log), why=str(error)) from error
        code, late = _see_through(process, json.dumps({**plan, "report": report}).encode(), report, timeout_s)
        facts = _facts(facts_file.read(65536))
    if late:
        raise RebuildError(
            f"{what} took longer than {timeout_s:g} s", where=str(log), why=f"it ended with: {tail(log)}"
        )
    if code != 0 or facts is None:
        # The shell's convention; nvcc ends with 255, and there is no such signal.
        ending = f"signal {code - 128}" if 128 < code <= 128 + signal.NSIG else f"exit status {code}"  # noqa: PLR2004
        raise RebuildError(f"{what} failed with {ending}", where=str(log), why=f"it ended with: {tail(log)}")
    return Isolation(
        network="none" if facts.get("namespaces") and not network else "settings-only",
        umask=f"{UMASK:03o}",
        locale=LOCALE,
        source_date_epoch=int(env.get("SOURCE_DATE_EPOCH", "0")),
    )


def _start(cwd: Path, env: Mapping[str, str], log: Path, report: int) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(_CONFINE)],
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=(report,),
            start_new_session=True,
            umask=UMASK,
        )


def _see_through(process: subprocess.Popen[bytes], plan: bytes, report: int, timeout_s: float) -> tuple[int, bool]:
    """Hand over the plan and wait; (exit status, whether the time ran out). Nothing is left on any way out."""
    late = False
    try:
        os.close(report)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(plan, timeout=timeout_s)
        late = process.returncode is None
    finally:
        if process.poll() is None:
            _end(process)
    return process.returncode, late


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask the watcher to kill everything it started; kill it and its session if it does not."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _facts(line: bytes) -> dict[str, object] | None:
    """What the watcher reported before the command began; None where it never got that far."""
    try:
        facts = json.loads(line)
    except ValueError:
        return None
    return facts if isinstance(facts, dict) else None


def tail(log: Path) -> str:
    """The end of a log as it may stand in an error: few lines, no control characters."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        text = file.read().decode("utf-8", "replace")
    lines = [line.rstrip() for line in text.splitlines() if line.strip()][-_TAIL_LINES:]
    return " | ".join("".join(c if c.isprintable() else "\ufffd" for c in line) for line in lines) or "no output"


def weakest(isolations: Sequence[Isolation], fallback: Isolation) -> Isolation:
    """The isolation that a receipt states for several steps: the weakest of them."""
    ranked = sorted(isolations, key=lambda each: each.network != "settings-only")
    return ranked[0] if ranked else fallback

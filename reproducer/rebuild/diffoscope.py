"""A detailed report by diffoscope, where it is installed: its text is kept beside, and says nothing about the level.

It runs many other programs on what it compares, so it gets a scrubbed environment, a limit of time and of memory, and
ends with everything that it started.
"""

import os
import resource
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from reproducer.errors import NotCheckedError

LONGEST_S = 300.0
MOST_MEMORY = 4 << 30
_LARGEST_REPORT = 16 << 20
_DIFFERENT = 1


def diffoscope_here() -> Path | None:
    """The program; None where it is not installed."""
    found = shutil.which("diffoscope")
    return None if found is None else Path(found)


def write_details(
    first: Path,
    second: Path,
    report: Path,
    *,
    program: Path | None = None,
    timeout_s: float = LONGEST_S,
    memory: int = MOST_MEMORY,
) -> None:
    """Write diffoscope's report of two artefacts as text.

    Args:
        first: the one before.
        second: the one after.
        report: the file that is written; it is empty where nothing differs.
        program: diffoscope; None for the one on `PATH`.
        timeout_s: the longest that it may take, in seconds.
        memory: the most address space that each of its processes may take, in bytes.

    Raises:
        NotCheckedError: it is not installed, takes too long, or fails.
    """
    program = program or diffoscope_here()
    if program is None:
        raise NotCheckedError(
            "diffoscope is not installed", todo="install it from your distribution or the Python package index"
        )
    with tempfile.TemporaryDirectory(prefix="penny-diffoscope-") as folder:
        written = Path(folder) / "report.txt"
        argv = [str(program), "--no-progress", "--max-report-size", str(_LARGEST_REPORT), "--text", str(written)]
        argv += ["--", str(first.absolute()), str(second.absolute())]
        code, said = _bounded(argv, Path(folder), timeout_s, memory)
        if code not in (0, _DIFFERENT):
            raise NotCheckedError("diffoscope failed", where=str(program), why=f"exit status {code}: {said}")
        report.write_bytes(written.read_bytes()[:_LARGEST_REPORT] if written.is_file() else b"")


def _bounded(argv: list[str], folder: Path, timeout_s: float, memory: int) -> tuple[int, str]:
    """Exit status and last words; nothing that was started is left."""
    env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "TMPDIR": str(folder), "LC_ALL": "C.UTF-8"}
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            with suppress(ProcessLookupError):
                resource.prlimit(process.pid, resource.RLIMIT_AS, (memory, memory))
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise NotCheckedError(f"diffoscope took longer than {timeout_s:g} s", where=argv[0]) from error
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    text = log.read_bytes()[-2000:].decode("utf-8", "replace").strip()
    return code, "".join(c if c.isprintable() else " " for c in text)[-400:] or "no output"

"""Runs the storage probe in another interpreter: a deadline a step, its process group ended, its words not trusted."""

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from reproducer.doctor.scratch import Scratch
from reproducer.documents.base import Part, Size, Text, shown
from reproducer.progress import Reporter, Task

SCRIPT = Path(__file__).with_name("storage_probe.py")
_START = "start"
OVERDUE = "its processes were killed"
_LONGEST_LINE = 1 << 16
_MOST_SECONDS_TO_DIE = 5.0
_TAIL = 4096


Said = Annotated[str, Field(pattern=r"^[^\x00]*$", max_length=1000)]


@dataclass(frozen=True)
class Cell:
    """What the probe does with one engine in one mode, or with the disk itself.

    Attributes:
        id: what the ids of its steps begin with.
        kind: the disk with plain calls, loading the package, or an engine of the plugin.
        direct: with O_DIRECT.
        steps: in order; when the first fails the others are not tried.
        params: of the plugin.
    """

    id: str
    kind: Literal["disk", "load", "nixl"]
    direct: bool
    steps: tuple[str, ...]
    params: tuple[tuple[str, str], ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of its steps."""
        return tuple(f"{self.id}.{step}" for step in self.steps)


class Begin(Part):
    """The probe begins a step."""

    kind: Literal["begin"]
    id: Text


class Result(Part):
    """How a step of the probe ended."""

    kind: Literal["result"] = "result"
    id: Text
    status: Literal["passed", "failed", "unknown"]
    got: Said = ""
    reason: Said = ""
    bytes: Size = 0
    write_s: float | None = Field(default=None, gt=0)
    read_s: float | None = Field(default=None, gt=0)


class End(Part):
    """The probe did all it was asked."""

    kind: Literal["end"]


_LINE: TypeAdapter[Begin | Result | End] = TypeAdapter(Begin | Result | End)


@dataclass
class _Run:
    """One process of the probe, as far as it came."""

    expected: list[str]
    results: dict[str, Result] = field(default_factory=dict)
    current: str = ""
    finished: bool = False
    fault: str = ""

    def take(self, line: bytes) -> None:
        """One line of the probe; what no probe says becomes the fault."""
        try:
            said = _LINE.validate_json(line)
        except ValidationError:
            self.fault = f"the probe said what no probe says: {shown(line[:80].decode(errors='replace'))}"
            return
        if isinstance(said, End):
            self.finished = not self.current
            self.fault = "" if self.finished else "the probe ended in the middle of a step"
        elif isinstance(said, Begin) and (self._may_begin(said.id)):
            self.current = said.id
        elif isinstance(said, Result) and said.id == self.current:
            self.results[said.id] = said
            self.current = ""
        else:
            self.fault = f"the probe spoke of {shown(said.id)} out of turn"

    def _may_begin(self, ident: str) -> bool:
        if ident == _START:
            return not self.current and not self.results
        if self.current not in ("", _START) or ident not in self.expected:
            return False
        del self.expected[: self.expected.index(ident) + 1]
        return True


def run_cells(
    python: Path, scratch: Scratch, cells: Sequence[Cell], *, large: int, deadline_s: float, reporter: Reporter
) -> dict[str, Result]:
    """The result of every step that was begun, by id.

    A step that hangs, crashes the interpreter or says nonsense has failed; the rest of its cell is left out, and the
    cells after it run in a new process.

    Args:
        python: the interpreter.
        scratch: where the probe may write.
        cells: what to do.
        large: bytes of the large transfers.
        deadline_s: how long one step may take.
        reporter: is shown progress.
    """
    results: dict[str, Result] = {}
    rest = list(cells)
    with reporter.task("probing the storage", sum(len(cell.steps) for cell in cells), "samples") as task:
        while rest:
            run = _one_process(python, scratch, rest, large=large, deadline_s=deadline_s, task=task)
            results.update(run.results)
            if run.finished:
                break
            fault = run.fault[:1000]
            broken = next((cell for cell in rest if run.current in cell.ids), None)
            if broken is None:  # before the first step, or between two
                at = run.expected[0] if run.expected else rest[-1].ids[-1]
                results[at] = Result(id=at, status="failed", reason=fault)
                break
            results[run.current] = Result(id=run.current, status="failed", reason=fault)
            rest = rest[rest.index(broken) + 1 :] if broken.kind != "load" else []
    return results


def _one_process(
    python: Path, scratch: Scratch, cells: Sequence[Cell], *, large: int, deadline_s: float, task: Task
) -> _Run:
    run = _Run([ident for cell in cells for ident in cell.ids])
    plan = {
        "parent": os.getpid(),
        "folder": str(scratch.folder),
        "large": large,
        "cells": [
            {
                "id": cell.id,
                "kind": cell.kind,
                "direct": cell.direct,
                "steps": cell.steps,
                "params": dict(cell.params),
            }
            for cell in cells
        ],
    }
    log = os.memfd_create("penny-doctor")
    try:
        with _started([str(python), "-I", "-B", str(SCRIPT), json.dumps(plan)], scratch, log) as process:
            if process.stdout is not None:
                _listen(process.stdout, run, deadline_s, task)
            if not run.finished:
                run.fault = run.fault or _how_it_ended(process, log)
    except OSError as error:
        run.fault = f"the interpreter cannot be started: {error.strerror or error}"
    finally:
        os.close(log)
        for path in scratch.folder.iterdir():
            with suppress(OSError):
                path.unlink()
    return run


@contextmanager
def _started(command: list[str], scratch: Scratch, log: int) -> Iterator["subprocess.Popen[bytes]"]:
    """The probe in a process group of its own, which is gone afterwards."""
    folder = str(scratch.folder)
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": folder, "TMPDIR": folder}
    process = subprocess.Popen(
        command,
        cwd="/",
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,
        pass_fds=(scratch.lock,),
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError, PermissionError):  # not reaped yet, so the number is still its own
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_MOST_SECONDS_TO_DIE)
        if process.stdout is not None:
            process.stdout.close()


def _listen(output: IO[bytes], run: _Run, deadline_s: float, task: Task) -> None:
    """Take line after line until the probe ends, is faulty, or says nothing for the time of one step."""
    stream, pending = output.fileno(), b""
    deadline = time.monotonic() + deadline_s
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while not run.finished and not run.fault:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                run.fault = f"no end within {deadline_s:g} seconds; {OVERDUE}"
                return
            data = os.read(stream, _LONGEST_LINE)
            if not data:
                return
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                before = run.current
                run.take(line)
                task.advance(int(bool(before) and not run.current))
                deadline = time.monotonic() + deadline_s
                if run.finished or run.fault:
                    return
            if len(pending) > _LONGEST_LINE:
                run.fault = "the probe said a line without end"


def _how_it_ended(process: "subprocess.Popen[bytes]", log: int) -> str:
    """Exit status and last words of a probe that closed its output without being done."""
    deadline = time.monotonic() + _MOST_SECONDS_TO_DIE
    ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    while ended is None and time.monotonic() < deadline:
        time.sleep(0.01)
        ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ended is None:
        how = "the probe closed its output and did not end"
    elif ended.si_code == os.CLD_EXITED:
        how = f"the probe ended with exit code {ended.si_status}"
    else:
        how = f"the probe was ended by {signal.Signals(ended.si_status).name}"
    size = os.fstat(log).st_size
    lines = os.pread(log, _TAIL, max(0, size - _TAIL)).decode(errors="replace").strip().splitlines()
    return f"{how}: {shown(lines[-1])}" if lines else how

"""Files and folders without what must stay on the machine, and the proof that their numbers did not change."""

import os
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from reproducer.errors import NotCheckedError, UsageError
from reproducer.progress import Reporter, Task
from reproducer.sanitize.forms import Form, cleaned, form_of, learn, numbers_of
from reproducer.sanitize.kinds import KINDS, Tally
from reproducer.sanitize.measured import Numbers
from reproducer.sanitize.proof import Proven, proven, read_trace
from reproducer.sanitize.scrubbing import Run, Scrubber
from reproducer.sanitize.sources import LeftOut, Source, sources
from reproducer.store.faults import writing

_WORK = ".sanitize-"


@dataclass(frozen=True)
class Sanitized:
    """One file that was sanitised.

    Attributes:
        path: the file as it was asked for.
        output: where the sanitised file lies; None where nothing is kept.
        form: as what it was read.
        removed: how many things of each kind were taken out.
        proven: what was compared before and after, all of it equal.
        changed: whether anything was taken out.
    """

    path: Path
    output: Path | None
    form: Form
    removed: dict[str, int]
    proven: Proven
    changed: bool


@dataclass(frozen=True)
class Result:
    """What one run of the sanitizer did."""

    files: tuple[Sanitized, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def removed(self) -> dict[str, int]:
        """How many things of each kind were taken out of all files."""
        total: Counter[str] = Counter()
        for each in self.files:
            total.update(each.removed)
        return {kind: total[kind] for kind in KINDS if total[kind]}


def sanitize(asked: Iterable[Path], run: Run, *, output: Path | None, reporter: Reporter) -> Result:
    """Sanitise files and folders: first learn the names that they give away, then take out what must stay.

    Args:
        asked: files and folders.
        run: this machine, names that were told, and the pseudonyms.
        output: a file where one file is asked for, else a folder; it must not be there. None keeps nothing.
        reporter: where progress goes.

    Raises:
        UsageError: something asked for is not there, or the output is.
        NotCheckedError: a file cannot be read or written, or a number changed; then nothing is written.
    """
    asked = tuple(asked)
    found, left = sources(asked)
    if output is not None and os.path.lexists(output):
        raise UsageError("is there already, and nothing is overwritten", where=str(output), todo="name another")
    parent = output.absolute().parent if output is not None else Path(tempfile.gettempdir())
    with writing(parent, what="the sanitised files"):
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=_WORK, dir=parent) as work:
            folder = Path(work) / "files"
            folder.mkdir()
            with reporter.task("sanitize", 2 * sum(each.path.stat().st_size for each in found), "bytes") as task:
                for each in found:
                    learn(each, run)
                    task.advance(each.path.stat().st_size)
                files = tuple(_sanitized(each, run, folder, task) for each in found)
            if output is None:
                return Result(tuple(replace(each, output=None) for each in files), left)
            if len(asked) == 1 and len(files) == 1 and not asked[0].is_dir():
                (folder / _path(files[0])).rename(output)
                return Result((replace(files[0], output=output),), left)
            folder.rename(output)
            return Result(tuple(replace(each, output=output / _path(each)) for each in files), left)


def _path(each: Sanitized) -> Path:
    """Where a file lies in the folder of all; it has one until it is moved."""
    return each.output or Path()


def _sanitized(source: Source, run: Run, folder: Path, task: Task) -> Sanitized:
    """Sanitise one file into a folder, and hold its numbers against those of the original."""
    form = form_of(source)
    name = _free(folder, Path(*(_clean(part, run) for part in Path(source.name).parts)))
    written = folder / name
    written.parent.mkdir(parents=True, exist_ok=True)
    tally, numbers = Tally(), Numbers()
    changed = False
    state = _state(source.path)
    traced = read_trace(source.path, form)
    with written.open("x", encoding="utf-8", errors="surrogateescape", newline="") as file:
        for original, piece in cleaned(source, form, run, tally, numbers):
            file.write(piece)
            changed = changed or piece != original
            task.advance(len(original))
    if _state(source.path) != state:
        raise NotCheckedError("was written while it was read", where=str(source.path), todo="sanitise a copy of it")
    after = numbers_of(written, form, source.path.suffix.lower()), read_trace(written, form)
    evidence = proven(source.path, (numbers, traced), after)
    return Sanitized(source.path, name, form, tally.by_kind(), evidence, changed)


def _state(path: Path) -> tuple[int, int, int]:
    """What changes where somebody writes to a file."""
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _clean(part: str, run: Run) -> str:
    """One part of a file's path: it too may name a person or a machine."""
    return Scrubber(run, Tally()).clean(part)


def _free(folder: Path, name: Path) -> Path:
    """The name, or one with a number where only what was taken out told two files apart."""
    free, count = name, 1
    while os.path.lexists(folder / free):
        count += 1
        free = name.with_name(f"{name.stem}-{count}{name.suffix}")
    return free

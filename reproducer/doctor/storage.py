"""Whether a folder does what a server asks of it: the disk itself, and every engine of NIXL's POSIX plugin on it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from reproducer.doctor.checks import Checked, Rates
from reproducer.doctor.probing import OVERDUE, Cell, Result, run_cells
from reproducer.doctor.scratch import Scratch, scratch
from reproducer.documents.lock import Lock
from reproducer.engines import engine_of
from reproducer.errors import InvalidDocumentError, NotCheckedError, PennyError, UsageError
from reproducer.host import filesystem
from reproducer.launch.disk import check_direct_io
from reproducer.progress import Reporter
from reproducer.store.faults import free_bytes

ENGINES = {"io_uring": "use_uring", "aio": "use_aio", "posix_aio": "use_posix_aio"}
DEFAULT_ENGINE = "default"
MODES = ("buffered", "o_direct")
STEPS = ("open", "round_trip", "many_files", "threads", "large", "one_descriptor", "unaligned", "truncated")
LARGE = 256 << 20
DEADLINE_S = 60.0
_SPARE = 64 << 20
_MIB = 1 << 20
_EXPECTED = {
    "rate": "every byte read as it was written",
    "load": "imports, and has the plugin POSIX",
    "open": "an agent that holds the engine that was asked for",
    "round_trip": "16 MiB in 1 MiB pieces, byte for byte",
    "many_files": "256 files in one transfer, byte for byte",
    "threads": "4 agents at once, byte for byte",
    "large": "all of it in 1 MiB pieces, byte for byte",
    "one_descriptor": "a quarter of it in one piece, byte for byte",
    "unaligned": "works byte for byte, or with O_DIRECT is refused and the agent works on",
    "truncated": "a read beyond the end of a file is refused",
}


@dataclass(frozen=True)
class Needs:
    """What a lock's launch asks of its storage.

    Attributes:
        engine: the engine of the plugin; None where the launch asks for nothing penny knows.
        direct: with O_DIRECT.
    """

    engine: str | None
    direct: bool

    @property
    def cell(self) -> str:
        """The id of the engine and mode the server runs in; empty where it asks for nothing."""
        return f"nixl.{self.engine}.{MODES[self.direct]}" if self.engine else ""


def needs_of(lock: Lock) -> Needs:
    """What the launch of a lock asks for; nothing where penny has no adapter for its engine."""
    try:
        engine = engine_of(lock.engine.kind)
    except InvalidDocumentError:
        return Needs(None, direct=False)
    uring, direct = engine.wants_io_uring(lock.launch), engine.wants_direct_io(lock.launch)
    if uring:
        return Needs("io_uring", direct=direct)
    return Needs(DEFAULT_ENGINE if direct else None, direct=direct)


def cells_of(needs: Needs) -> tuple[Cell, ...]:
    """The disk, the package, each engine in both modes; the plugin's own choice of engine where a lock needs it."""
    disk = [Cell(f"disk.{mode}", "disk", mode == "o_direct", ("rate",)) for mode in MODES]
    engines = {**ENGINES, **({DEFAULT_ENGINE: ""} if needs.engine == DEFAULT_ENGINE else {})}
    nixl = [
        Cell(f"nixl.{name}.{mode}", "nixl", mode == "o_direct", STEPS, ((switch, "true"),) if switch else ())
        for name, switch in engines.items()
        for mode in MODES
    ]
    return (*disk, Cell("nixl", "load", direct=False, steps=("load",)), *nixl)


def real_folder(place: Path) -> Path:
    """The folder a person named, symbolic links followed.

    Raises:
        UsageError: nothing is there, or no folder.
    """
    try:
        folder = place.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        todo = "make it, or name the folder in which the server's pages will lie"
        raise UsageError("there is no folder to probe", where=str(place), why=why, todo=todo) from error
    if not folder.is_dir():
        raise UsageError("is not a folder", where=str(place), todo="name a folder")
    return folder


def probe_storage(
    python: Path,
    place: Path,
    needs: Needs,
    *,
    reporter: Reporter,
    large: int = LARGE,
    deadline_s: float = DEADLINE_S,
) -> tuple[Checked, ...]:
    """Probe a folder through the plugin of the runtime that this interpreter belongs to.

    Args:
        python: the runtime's interpreter.
        place: the folder; a symbolic link is followed.
        needs: what the lock asks for.
        reporter: is shown progress.
        large: bytes of the large transfers.
        deadline_s: how long one step may take before its processes are killed.

    Raises:
        UsageError: the place is no folder.
    """
    folder = real_folder(place)
    cells = cells_of(needs)
    run = partial(run_cells, python, large=large, deadline_s=deadline_s, reporter=reporter)
    kind = Checked(
        id="folder.filesystem",
        status="unknown" if filesystem(folder) == "unknown" else "passed",
        expected="a type that the kernel names",
        got=filesystem(folder),
        reason="the mount table names no filesystem for this folder" if filesystem(folder) == "unknown" else "",
    )
    try:
        with scratch(folder) as private:
            writable = Checked(id="folder.writable", status="passed", needed=bool(needs.engine), got=str(folder))
            return (writable, kind, *_in_folder(private, needs, cells, large=large, run=run))
    except NotCheckedError as error:
        writable = Checked(
            id="folder.writable",
            status="failed",
            needed=bool(needs.engine),
            expected="a private folder can be made in it",
            got=str(folder),
            reason=f"{error.what}: {error.why}" if error.why else error.what,
            todo="name a folder that you can write, or make room",
        )
        return (writable, kind, *_skipped(cells, needs, "the folder cannot be written"))


def _in_folder(
    private: Scratch, needs: Needs, cells: Sequence[Cell], *, large: int, run: Callable[..., dict[str, Result]]
) -> tuple[Checked, ...]:
    free, direct = _free(private.folder, large), _direct(private.folder, needs)
    if free.status == "failed":
        return (free, direct, *_skipped(cells, needs, "there is not enough room to probe"))
    tried = [cell for cell in cells if not cell.direct or direct.status == "passed"]
    return (free, direct, *_checks(cells, run(private, tried), needs, tried))


def _free(folder: Path, large: int) -> Checked:
    """Room for the files of the largest step."""
    free, wanted = free_bytes(folder), large + _SPARE
    if free is None:
        return Checked(id="folder.free", status="unknown", reason="the filesystem does not say what is free")
    enough = free >= wanted
    return Checked(
        id="folder.free",
        status="passed" if enough else "failed",
        expected=f"{wanted} bytes for the probe",
        got=f"{free} bytes free",
        reason="" if enough else "the disk is full, or nearly so",
        todo="" if enough else "make room, or name a folder on another disk",
    )


def _direct(folder: Path, needs: Needs) -> Checked:
    """One block written and read with O_DIRECT, as a launch tries it."""
    try:
        check_direct_io(folder)
    except PennyError as error:
        reason = f"one block cannot be written with O_DIRECT: {error.why or error.what}"
        return Checked(
            id="folder.o_direct",
            status="failed",
            needed=needs.direct,
            expected="one block written and read with O_DIRECT",
            reason=reason,
            todo="name a folder on ext4, xfs or btrfs"
            + (", or lock a launch without O_DIRECT" if needs.direct else ""),
        )
    return Checked(id="folder.o_direct", status="passed", needed=needs.direct)


def _skipped(cells: Iterable[Cell], needs: Needs, why: str) -> list[Checked]:
    return [
        Checked(id=ident, status="skipped", needed=_needed(ident, needs), reason=why)
        for cell in cells
        for ident in cell.ids
    ]


def _checks(
    cells: Sequence[Cell], results: Mapping[str, Result], needs: Needs, tried: Sequence[Cell]
) -> Iterable[Checked]:
    """Every step of every cell as a check, those that were not come to included."""
    for cell in cells:
        broken = ""
        for ident in cell.ids:
            result = results.get(ident)
            if result is None:
                why = f"{broken} did not pass" if broken else "the probe did not come to it"
                if cell not in tried:
                    why = "O_DIRECT does not work here"
                elif cell.kind == "nixl" and (load := results.get("nixl.load")) is not None and load.status != "passed":
                    why = "nixl.load did not pass"
                yield Checked(id=ident, status="skipped", needed=_needed(ident, needs), reason=why)
                continue
            if result.status != "passed":
                broken = ident
            yield Checked(
                id=ident,
                status=result.status,
                needed=_needed(ident, needs),
                expected=_EXPECTED[ident.rpartition(".")[2]],
                got=result.got,
                reason=result.reason,
                todo=_todo(ident, result),
                rates=_rates(result, results.get(f"disk.{MODES[cell.direct]}.rate")),
            )


def _needed(ident: str, needs: Needs) -> bool:
    """Whether the lock's server depends on this: its own engine in its own mode, and the package."""
    return bool(needs.engine) and (ident == "nixl.load" or ident.startswith(f"{needs.cell}."))


def _todo(ident: str, result: Result) -> str:
    """What a reader can do about a step that did not pass."""
    cases = (
        (result.status == "unknown", "make room, or name a folder on another disk"),
        (ident == "nixl.load", "run `penny build`; if it fails again, the runtime of this lock has no usable NIXL"),
        (ident.startswith("disk."), "look at the kernel's log (dmesg): the disk fails without NIXL too"),
        (
            OVERDUE in result.reason,
            "give a slow disk more time with --deadline; in a container, ask whether it allows the engine",
        ),
        (
            ".io_uring." in ident and ident.endswith(".open"),
            "allow io_uring: sysctl kernel.io_uring_disabled=0, and the container's seccomp profile",
        ),
        (
            ".aio." in ident and ident.endswith(".open"),
            "look at fs.aio-nr and fs.aio-max-nr, and at the container's seccomp profile",
        ),
        (True, "do not keep KV pages with this engine in this mode here"),
    )
    return "" if result.status == "passed" else next(todo for holds, todo in cases if holds)


def _rates(result: Result, disk: Result | None) -> Rates | None:
    """The sample of a step beside the disk's own."""
    write, read = _rate(result, result.write_s), _rate(result, result.read_s)
    if write is None or read is None:
        return None
    own_write = _rate(disk, disk.write_s) if disk else None
    own_read = _rate(disk, disk.read_s) if disk else None
    if disk is result or result.bytes != (disk.bytes if disk else 0):
        return Rates(write_mib_s=write, read_mib_s=read)
    return Rates(
        write_mib_s=write,
        read_mib_s=read,
        disk_write_mib_s=own_write,
        disk_read_mib_s=own_read,
        write_ratio=round(write / own_write, 2) if own_write else None,
        read_ratio=round(read / own_read, 2) if own_read else None,
    )


def _rate(result: Result | None, seconds: float | None) -> float | None:
    return round(result.bytes / _MIB / seconds, 1) if result and seconds and result.bytes else None

"""`penny doctor`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reproducer.cli.front import (
    DEFAULT_LOCK,
    Front,
    JsonOption,
    LockOption,
    OfflineOption,
    QuietOption,
    StoreOption,
    VerboseOption,
    YesOption,
    finish,
    ledger_of,
    open_store,
    runtime_of,
)

if TYPE_CHECKING:
    from reproducer.doctor.checks import Checked
    from reproducer.documents.opened import OpenedLock
    from reproducer.store import Store


def doctor(
    *,
    storage: Annotated[
        Path | None,
        typer.Option("--storage", help="Probe this folder through NIXL's POSIX plugin, in the lock's runtime."),
    ] = None,
    deadline: Annotated[
        float, typer.Option("--deadline", min=1, max=3600, help="Seconds that one step of the probe may take.")
    ] = 60,
    lock_path: LockOption = DEFAULT_LOCK,
    store: StoreOption = None,
    offline: OfflineOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Check this host, or with --storage a folder for KV pages, against what the lock needs."""
    from reproducer.cli.show_doctor import checks_table
    from reproducer.doctor.checks import outcome, word
    from reproducer.documents.opened import open_lock

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    place = open_store(store)
    if storage is not None:
        checks = _storage(front, open_lock(lock_path), place, storage, deadline, yes=yes, offline=offline)
        result = outcome(checks, about="nixl.")
    else:
        from reproducer.doctor.machine import check_host

        without = lock_path == DEFAULT_LOCK and not lock_path.exists()
        opened = None if without else open_lock(lock_path)
        checks = check_host(opened, place)
        if opened is not None:
            checks += _of_the_lock(front, opened, place, offline=offline)
        result = outcome(checks)
    front.emit(
        {
            "verdict": word(result),
            "checks": [check.model_dump() for check in checks],
            "exit_code": result.exit_code,
        },
        checks_table(checks, result, every=verbose),
    )
    finish(result)


def _of_the_lock(front: Front, opened: "OpenedLock", place: "Store", *, offline: bool) -> "tuple[Checked, ...]":
    """The libraries of its runtime, where that is built, and every source."""
    from reproducer.doctor.libraries import check_libraries
    from reproducer.doctor.sources import Sources
    from reproducer.fetch.indexes import Indexes

    sources = Sources(opened, place, Indexes.from_user(), front.reporter, offline)
    return (*check_libraries(opened, place, reporter=front.reporter), *sources.checks())


def _storage(
    front: Front, opened: "OpenedLock", place: "Store", folder: Path, deadline: float, *, yes: bool, offline: bool
) -> "tuple[Checked, ...]":
    """The checks of a folder, through the runtime that is built already; with --yes it is built where it is not."""
    from reproducer.doctor.runtime import built_interpreter
    from reproducer.doctor.storage import needs_of, probe_storage, real_folder
    from reproducer.errors import NotCheckedError

    folder = real_folder(folder)
    opened.check_files()
    python = built_interpreter(opened, place, reporter=front.reporter)
    if python is None and not yes:
        raise NotCheckedError(
            "the runtime of this lock is not built, and its NIXL is what the probe runs",
            where=str(opened.path),
            todo="run `penny build`, or pass --yes to build it now",
        )
    accepted = front.accepted(place, opened, yes=yes)
    if python is None:
        runtime = runtime_of(front, opened, place, accepted, offline=offline)
        ledger_of(place, opened).add(runtime.receipt)
        python = runtime.python
    return probe_storage(python, folder, needs_of(opened.lock), reporter=front.reporter, deadline_s=deadline)

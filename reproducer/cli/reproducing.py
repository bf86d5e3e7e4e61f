"""`penny reproduce`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reproducer.cli.evidence import EVIDENCE
from reproducer.cli.front import (
    DEFAULT_LOCK,
    AdoptedFoldersOption,
    Front,
    JsonOption,
    KeyFolderOption,
    KvOption,
    OfflineOption,
    PortOption,
    PythonOption,
    QuietOption,
    StoreOption,
    VerboseOption,
    YesOption,
    finish,
    open_store,
)
from reproducer.errors import UsageError

if TYPE_CHECKING:
    from reproducer.reproduce import Step


def reproduce(
    lock_path: Annotated[
        Path | None,
        typer.Argument(help=f"The lock; default: {DEFAULT_LOCK}.", metavar="LOCK", show_default=False),
    ] = None,
    *,
    lock_option: Annotated[Path | None, typer.Option("--lock", help="The lock, as an option.")] = None,
    store: StoreOption = None,
    kv: KvOption = None,
    keys: KeyFolderOption = None,
    evidence: Annotated[Path, typer.Option("--evidence", help="Folder in which bundles lie.")] = EVIDENCE,
    port: PortOption = None,
    python: PythonOption = None,
    checkpoint: AdoptedFoldersOption = None,
    offline: OfflineOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Fetch, build, launch, qualify, verify and attest: all of it, resumed where it stopped."""
    from reproducer.cli.checkpoints import named_folders, refuse_adoption
    from reproducer.cli.show import reproduction_table, step_line
    from reproducer.documents.opened import open_lock
    from reproducer.fetch.indexes import Indexes
    from reproducer.reproduce import Adoption, Places
    from reproducer.reproduce import reproduce as walk

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    if lock_path is not None and lock_option is not None:
        raise UsageError("two locks at once", where=f"{lock_path} and {lock_option}", todo="name one of them")
    opened = open_lock(lock_path or lock_option or DEFAULT_LOCK)
    refuse_adoption(opened, python, checkpoint)
    place = open_store(store)
    accepted = front.accepted(place, opened, yes=yes)

    def tell(step: "Step") -> None:
        if not quiet:
            front.reporter.line(step_line(step))

    front.reporter.note(f"Reproducing {opened.lock.name}, lock {opened.digest[:12]}, store {place.root}")
    result = walk(
        opened,
        Places(place, kv or place.root / "kv", keys, evidence),
        indexes=Indexes.from_user(),
        reporter=front.reporter,
        accepted=accepted,
        offline=offline,
        port=port,
        tell=tell,
        adoption=Adoption(python, named_folders(checkpoint)),
    )
    front.emit(
        {
            "verdict": result.verdict.word,
            "bundle": str(result.bundle),
            "steps": [
                {"name": step.name, "status": step.status, "seconds": round(step.seconds, 3), "detail": step.detail}
                for step in result.steps
            ],
            "checks": [check.model_dump() for check in result.verdict.checks],
        },
        reproduction_table(result),
    )
    finish(result.verdict.outcome)

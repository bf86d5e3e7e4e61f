"""`penny fetch`, `penny build`."""

from typing import Annotated

import typer

from reproducer.cli.checkpoints import (
    EndpointOption,
    FoldersOption,
    fetched_text,
    named_folders,
    refuse_adoption,
    use_endpoint,
)
from reproducer.cli.front import (
    DEFAULT_LOCK,
    AdoptedFoldersOption,
    Front,
    JsonOption,
    LockOption,
    OfflineOption,
    PythonOption,
    QuietOption,
    StoreOption,
    VerboseOption,
    YesOption,
    finish,
    ledger_of,
    open_store,
    runtime_of,
)
from reproducer.cli.repositories import RepositoriesOption, named_repositories
from reproducer.errors import Outcome


def fetch(
    *,
    lock_path: LockOption = DEFAULT_LOCK,
    store: StoreOption = None,
    checkpoint: FoldersOption = None,
    endpoint: EndpointOption = None,
    repository: RepositoriesOption = None,
    offline: OfflineOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Bring everything the lock names into the store, verified."""
    from reproducer.documents.opened import open_lock
    from reproducer.fetch import fetch as bring
    from reproducer.fetch.indexes import Indexes

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    opened = open_lock(lock_path)
    opened.check_files()
    use_endpoint(endpoint)
    fetched = bring(
        opened,
        open_store(store),
        indexes=Indexes.from_user(),
        reporter=front.reporter,
        offline=offline,
        folders=named_folders(checkpoint),
        repositories=named_repositories(repository),
    )
    brought = fetched.checkpoints
    front.emit(
        {
            "receipt": None,
            "level": "inputs-identical" if not brought.unknown else "none",
            "differences": [],
            "files": len(fetched.artefacts) + brought.files,
            "downloaded": fetched.downloaded,
            "reused": fetched.reused,
            "commits": fetched.commits.commits,
            "commits_reused": fetched.commits.reused,
            "checkpoints": {name: str(folder) for name, folder in brought.folders.items()},
            "unknown": list(brought.unknown),
        },
        fetched_text(fetched),
    )
    finish(Outcome.NOT_CHECKED if brought.unknown else Outcome.HOLDS)


def build(
    *,
    lock_path: LockOption = DEFAULT_LOCK,
    store: StoreOption = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Build once more in another folder and compare.")] = False,
    python: PythonOption = None,
    checkpoint: AdoptedFoldersOption = None,
    offline: OfflineOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Build the runtime from its pinned sources and say which level was reached."""
    from reproducer.cli.show import build_table
    from reproducer.documents.opened import open_lock

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    opened = open_lock(lock_path)
    refuse_adoption(opened, python, checkpoint)
    opened.check_files()
    place = open_store(store)
    accepted = front.accepted(place, opened, yes=yes)
    receipt = runtime_of(
        front, opened, place, accepted, offline=offline, again=rebuild, python=python, folders=checkpoint
    ).receipt
    path = ledger_of(place, opened).add(receipt)
    front.emit(
        {
            "receipt": str(path),
            "level": receipt.level,
            "differences": [
                {"output": output.filename, **difference.model_dump()}
                for output in receipt.outputs
                for difference in output.differences
            ],
        },
        build_table(receipt, path),
    )
    finish(Outcome.HOLDS if receipt.is_the_locks else Outcome.REBUILD_DIFFERS)

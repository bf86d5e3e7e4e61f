"""The runtime of a frozen lock: nothing is built; what lies there is held against the lock, file by file."""

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from reproducer import __version__
from reproducer.build.runtime import Runtime, same_as_before
from reproducer.documents.built import AdoptedRuntime, Isolation, TreeDigest
from reproducer.documents.environment import AdoptedEnvironment
from reproducer.documents.lock import Adopted, Checkpoint
from reproducer.documents.opened import OpenedLock
from reproducer.documents.receipts import BuildReceipt
from reproducer.documents.sources import HubSource
from reproducer.errors import DriftError, InvalidDocumentError, NotCheckedError, UsageError
from reproducer.freeze.checkouts import Checkouts
from reproducer.freeze.installed import Interpreter, ask_interpreter, take_inventory
from reproducer.freeze.places import note, noted
from reproducer.freeze.stating import differences, engine_folder, state
from reproducer.freeze.weights import verify
from reproducer.host import host_facts, host_platform
from reproducer.isolation.running import LOCALE, UMASK
from reproducer.ledger import Ledger
from reproducer.progress import Reporter
from reproducer.store import Store
from reproducer.store.hashing import tree_digest

INSTALLER = "none: adopted as it was found"


def adopt(
    opened: OpenedLock,
    store: Store,
    *,
    reporter: Reporter,
    accepted: Literal["asked", "--yes"],
    python: Path | None = None,
    folders: Mapping[str, Path] | None = None,
    offline: bool = False,
) -> Runtime:
    """The runtime of a frozen lock, after every file of every distribution was hashed.

    Args:
        opened: the lock.
        store: where the places of locks that were frozen here are noted.
        reporter: where progress goes.
        accepted: how running other people's code was accepted.
        python: its interpreter; None for the one noted at the freeze, or the one that penny runs in.
        folders: of checkpoints, by role, where they are elsewhere than noted.
        offline: touch no network for a checkpoint whose folder nobody names.

    Raises:
        DriftError: packages or checkpoints are not those of the lock; names every difference.
        UsageError: nothing says where a checkpoint lies; that is no interpreter.
        NotCheckedError: another platform, or something cannot be read.
    """
    lock = opened.lock
    adopted = lock.adopted
    if adopted is None:
        raise InvalidDocumentError("is no lock of an adopted runtime", where=str(opened.path))
    if lock.components or lock.environments:
        raise InvalidDocumentError(
            "says that nothing is built, and has components or environments", where=f"{opened.path}, key adopted"
        )
    if lock.platform != host_platform():
        raise NotCheckedError(
            f"the lock is for {lock.platform} and this machine is {host_platform()}", where=str(opened.path)
        )
    here = noted(store, lock)
    chosen = python or here.python or Path(sys.executable)
    interpreter = ask_interpreter(chosen.absolute())
    expected = AdoptedEnvironment.from_json(opened.read(adopted.environment), where=adopted.environment.path)
    if len(expected.distributions) != adopted.distributions:
        raise InvalidDocumentError(
            f"lists {len(expected.distributions)} distributions, the lock says {adopted.distributions}",
            where=adopted.environment.path,
        )
    runtime = _verified(expected, interpreter, opened, store, reporter)
    given = {**here.checkpoints, **(folders or {})}
    places: dict[str, Path] = {}
    trees: dict[str, TreeDigest] = {}
    for checkpoint in lock.checkpoints:
        folder = given.get(checkpoint.role) or _from_hub(checkpoint, store, reporter, offline=offline)
        if folder is None:
            raise UsageError(
                f"nothing says where the checkpoint {checkpoint.name} lies",
                todo=f"name its folder with --checkpoint {checkpoint.role}=FOLDER",
            )
        places[checkpoint.role] = verify(folder.absolute(), checkpoint, reporter=reporter)
        trees[checkpoint.name] = tree_digest({each.path: each for each in checkpoint.listed})
    if here.python is None or python is not None or folders:
        note(store, lock, chosen.absolute(), places)
    receipt = BuildReceipt(
        lock_digest=opened.digest,
        penny_version=__version__,
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        level="none",
        outputs=(),
        packages=(),
        runtime=runtime,
        checkpoints=trees,
        python=interpreter.version,
        installer=INSTALLER,
        isolation=Isolation(
            network="settings-only",
            umask=f"{UMASK:03o}",
            locale=LOCALE,
            source_date_epoch=lock.build.source_date_epoch,
        ),
        host=host_facts(store.root),
        accepted=accepted,
        adopted=_adopted(adopted),
    )
    return Runtime(
        python=interpreter.path,
        checkpoints=places,
        receipt=same_as_before(receipt, Ledger.of(store.root, opened.digest)),
        reused=True,
    )


def _from_hub(checkpoint: Checkpoint, store: Store, reporter: Reporter, *, offline: bool) -> Path | None:
    """The folder of a checkpoint that a hub has, fetched and verified; None for one that no hub has."""
    if not isinstance(checkpoint.source, HubSource):
        return None
    from reproducer.hub.fetching import fetch_checkpoints
    from reproducer.hub.place import HubPlace

    brought = fetch_checkpoints((checkpoint,), store, place=HubPlace(), reporter=reporter, offline=offline)
    return brought.folders.get(checkpoint.name)


def _adopted(adopted: Adopted) -> AdoptedRuntime:
    return AdoptedRuntime(environment=adopted.environment.sha256, distributions=adopted.distributions)


def _verified(
    expected: AdoptedEnvironment, interpreter: Interpreter, opened: OpenedLock, store: Store, reporter: Reporter
) -> TreeDigest:
    """The digest of a runtime that is the one of the lock.

    Raises:
        DriftError: it is another one; names every difference.
    """
    inventory = take_inventory(interpreter, reporter=reporter)
    checkouts = Checkouts(store, reporter, "patches")
    engine = None
    if expected.engine is not None:
        _, engine = engine_folder(opened.lock.launch.module or "", [], inventory)
    found = state(inventory, checkouts, engine).document
    if faults := list(differences(expected, found)):
        number = "1 difference" if len(faults) == 1 else f"{len(faults)} differences"
        raise DriftError(
            f"the packages are not those of the lock: {number}",
            where=str(interpreter.path),
            why="; ".join(faults),
            todo="install what the lock says, name another interpreter with --python, or freeze again",
        )
    files = sum(each.files for each in found.distributions) + len(found.loose)
    return TreeDigest(files=files, bytes=inventory.size, sha256=found.digest)

"""Room on the disks beside the store: the hub's cache for checkpoints, and the folder in which KV pages lie."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from reproducer.doctor.checks import Checked
from reproducer.documents.lock import Lock
from reproducer.documents.opened import OpenedLock
from reproducer.documents.sources import HubSource
from reproducer.engines import stores_of
from reproducer.engines.persistent import with_files
from reproducer.errors import PennyError
from reproducer.store.faults import free_bytes

if TYPE_CHECKING:
    from reproducer.store import Store

_ELSEWHERE = "make room, or name a folder on another disk with HF_HUB_CACHE or HF_HOME"


def check_rooms(opened: OpenedLock | None, store: "Store") -> Iterator[Checked]:
    """Free room where checkpoints of a hub and KV pages go; nothing where a lock has neither."""
    if opened is None:
        return
    lock = opened.lock
    if any(isinstance(each.source, HubSource) for each in lock.checkpoints):
        yield _hub(lock)
    try:
        keeps = bool(stores_of(lock.engine.kind)(with_files(lock.launch, opened.read)))
    except PennyError:
        keeps = False  # a launch that no namespace can hold is refused elsewhere
    if keeps:
        yield _pages(lock, store)


def _hub(lock: Lock) -> Checked:
    """The files of the checkpoints that do not lie in the hub's cache yet."""
    from reproducer.hub.place import HubPlace

    cache = HubPlace().cache
    missing, unlisted = 0, []
    for checkpoint in lock.checkpoints:
        if not isinstance(checkpoint.source, HubSource):
            continue
        if checkpoint.files == "unknown":
            unlisted.append(checkpoint.name)
        missing += sum(file.size for file in checkpoint.listed if not _lies(cache, checkpoint.source, file.path))
    free = _free(cache)
    expected = f"{missing} bytes for files of checkpoints that are not there yet"
    got = "" if free is None else f"{free} bytes free"
    if unlisted or free is None:
        why = f"the lock does not know the files of {', '.join(unlisted)}" if unlisted else "nobody says what is free"
        return Checked(id="hub.free", status="unknown", expected=expected, got=got, reason=why)
    enough = free >= missing
    return Checked(
        id="hub.free",
        status="passed" if enough else "failed",
        needed=True,
        expected=expected,
        got=got,
        reason="" if enough else "the disk of the hub's cache is too full",
        todo="" if enough else _ELSEWHERE,
    )


def _lies(cache: Path, source: HubSource, path: str) -> bool:
    from huggingface_hub.file_download import repo_folder_name

    folder = cache / repo_folder_name(repo_id=source.repository, repo_type="model")
    return (folder / "snapshots" / source.revision / path).is_file()


def _pages(lock: Lock, store: "Store") -> Checked:
    """Pages that outlive the server take at least what it keeps in memory, where it says how much that is."""
    from reproducer.doctor.machine import host_pages

    wanted, free = host_pages(lock), _free(store.root / "kv")
    got = "" if free is None else f"{free} bytes free"
    if not wanted or free is None:
        why = "the lock does not say how much the storage may hold" if free is not None else "nobody says what is free"
        return Checked(id="kv.free", status="unknown", got=got, reason=why)
    enough = free >= wanted
    return Checked(
        id="kv.free",
        status="passed" if enough else "failed",
        expected=f"{wanted} bytes, as much as the launch keeps in memory",
        got=got,
        reason="" if enough else "the pages that are kept in memory would not fit",
        todo="" if enough else "make room, or name a folder on another disk with --kv or PENNY_KV",
    )


def _free(folder: Path) -> int | None:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return free_bytes(folder)

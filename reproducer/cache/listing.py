"""What lies below the folder of namespaces: counted in flat memory, several namespaces at once."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Lock as Guard

from reproducer.cache.folders import entries, measure, open_kv, open_namespace, other, refused
from reproducer.cache.known import Locks
from reproducer.cache.model import Entry, Listing, Other
from reproducer.cache.seal import read_seal
from reproducer.cache.use import holder
from reproducer.errors import PennyError, UnsafeInputError, UsageError
from reproducer.progress import Reporter


def listing(kv: Path, locks: Locks, *, reporter: Reporter) -> Listing:
    """Every namespace below a folder, those that were used last first, and everything that is none.

    Args:
        kv: the folder in which namespaces lie.
        locks: the locks that are known.
        reporter: is shown progress in files.

    Raises:
        UsageError: there is no such folder.
    """
    workers = min(len(os.sched_getaffinity(0)), 8)
    guard = Guard()
    with (
        open_kv(kv) as handle,
        reporter.task("counting", None, "files") as task,
        ThreadPoolExecutor(workers, thread_name_prefix="count") as pool,
    ):

        def advance(files: int) -> None:
            with guard:
                task.advance(files)

        names = sorted(entries(handle))
        found = list(pool.map(lambda name: _entry(kv, handle, name, advance), names))
        roots = [_with_locks(kv, handle, each, locks) for each in found if isinstance(each, Entry)]
        others = tuple(each for each in found if isinstance(each, Other))
    roots.sort(key=lambda entry: (-entry.last_use, entry.name))
    return Listing(str(kv.absolute()), tuple(roots), others)


def _entry(kv: Path, handle: int, name: str, advance: Callable[[int], None]) -> Entry | Other:
    if (why := refused(handle, name)) is not None:
        return other(handle, name, why)
    try:
        with open_namespace(kv, handle, name) as root:
            usage = measure(root.handle, advance=advance)
            pages, fault = None, ""
            try:
                seal = read_seal(root)
                pages = seal.pages if seal is not None else None
            except PennyError as error:
                fault = str(error)
            return Entry(name, root.digest, usage, root.last_use, pages, fault, holder(handle, name), ())
    except (UnsafeInputError, UsageError) as error:
        return other(handle, name, error.what)


def _with_locks(kv: Path, handle: int, entry: Entry, locks: Locks) -> Entry:
    with suppress(UnsafeInputError, UsageError), open_namespace(kv, handle, entry.name) as root:
        return Entry(**{**vars(entry), "locks": locks.of(entry.name, root.handle)})
    return entry

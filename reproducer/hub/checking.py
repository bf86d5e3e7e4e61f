"""sha256 and git object names of many files at once, in flat memory."""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event, Lock
from typing import NamedTuple

from reproducer.errors import NotCheckedError, UnsafeInputError
from reproducer.hub.listing import HubFile
from reproducer.progress import Reporter
from reproducer.store.hashing import CHUNK, hash_file, workers_here

_SHA1_DIGITS = 40


class Place(NamedTuple):
    """A file and where its bytes are said to lie."""

    file: HubFile
    path: Path


def verified(places: Sequence[Place], *, reporter: Reporter, workers: int | None = None) -> dict[str, str]:
    """What is wrong with each file whose bytes are not the ones that are named, by path; empty where all hold.

    Args:
        places: what to check, and where it lies.
        reporter: is shown progress in bytes.
        workers: threads; None for as many as the machine serves.

    Raises:
        NotCheckedError: a file cannot be read.
    """
    guard, stopped = Lock(), Event()
    with reporter.task("verifying", sum(each.file.size for each in places), "bytes") as task:

        def progress(amount: int) -> None:
            if stopped.is_set():
                raise NotCheckedError("stopped before it was verified")
            with guard:
                task.advance(amount)

        def one(place: Place) -> str | None:
            return fault_of(place.file, place.path, progress=progress)

        ordered = sorted(places, key=lambda place: -place.file.size)
        with ThreadPoolExecutor(workers or workers_here(), thread_name_prefix="verify") as pool:
            futures = [pool.submit(one, place) for place in ordered]
            try:
                for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                    future.result()
                found = [future.result() for future in futures]
            except BaseException:
                stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    faults = {place.file.path: fault for place, fault in zip(ordered, found, strict=True) if fault}
    return dict(sorted(faults.items()))


def fault_of(file: HubFile, path: Path, *, progress: Callable[[int], None] | None = None) -> str | None:
    """Expected and got, where the bytes are not those of the file; None where they are."""
    try:
        sha256, size = hash_file(path, progress=progress)
        blob = _git_object(path, size, len(file.blob)) if file.blob is not None and size == file.size else None
    except FileNotFoundError:
        return f"expected {_named(file)}, got no file"
    except UnsafeInputError:
        return f"expected {_named(file)}, got something that is no regular file"
    except OSError as error:
        raise NotCheckedError("cannot be read", where=str(path), why=error.strerror or str(error)) from error
    if size != file.size or (file.sha256 is not None and sha256 != file.sha256):
        return f"expected {_named(file)}, got sha256 {sha256} of {size} bytes"
    if blob != file.blob:
        return f"expected git object {file.blob}, got {blob}"
    return None


def _named(file: HubFile) -> str:
    digest = f"sha256 {file.sha256}" if file.sha256 is not None else f"git object {file.blob}"
    return f"{digest} of {file.size} bytes"


def _git_object(path: Path, size: int, digits: int) -> str:
    """The name that git gives these bytes, in the hash that the expected name has."""
    header = b"blob %d\0" % size
    digest = hashlib.sha1(header, usedforsecurity=False) if digits == _SHA1_DIGITS else hashlib.sha256(header)
    with path.open("rb", buffering=0) as source:
        while piece := source.read(CHUNK):
            digest.update(piece)
    return digest.hexdigest()

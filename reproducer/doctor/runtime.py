"""The interpreter of a lock's runtime where it is built already; nothing is fetched, built or changed."""

from pathlib import Path

from reproducer.build.products import environment_inputs, product_key
from reproducer.documents.opened import OpenedLock
from reproducer.ledger import Ledger
from reproducer.progress import Reporter
from reproducer.store import Store


def built_interpreter(opened: OpenedLock, store: Store, *, reporter: Reporter) -> Path | None:
    """The interpreter of the newest build of this lock that still lies in the store, every file hashed again.

    A build receipt names every wheel of the runtime by digest, and these alone decide where its environment lies.

    Returns:
        The interpreter; None where the lock was never built here or its runtime is gone.

    Raises:
        DriftError: the runtime is there and is not what was sealed.
        InvalidDocumentError, SignatureError, UnsafeInputError: a build receipt in the store cannot be believed.
    """
    if not store.root.is_dir():
        return None
    lock = opened.lock
    for receipt in reversed(Ledger.of(store.root, opened.digest).builds()):
        wheels = [(package.filename, package.sha256) for package in receipt.packages]
        inputs = environment_inputs(lock.toolchain.python, wheels, compiled=True)
        key = product_key("environment", lock.platform, inputs)
        if not (store.root / "entries" / "environment" / key).is_dir():
            continue
        with store.entry("environment", key, reporter=reporter) as entry:
            if entry.complete:
                entry.check()
                return entry.folder / "venv" / "bin" / "python"
    return None

"""A checkpoint that a build has converted, where it lies in the store already; nothing is fetched, built or changed."""

from pathlib import Path

from reproducer.documents.lock import Checkpoint
from reproducer.errors import DriftError, UnsafeInputError
from reproducer.progress import Reporter
from reproducer.store import Store
from reproducer.store.hashing import hash_tree

_KIND = "checkpoint"


def made_checkpoint(store: Store, checkpoint: Checkpoint, *, reporter: Reporter) -> Path | None:
    """The folder with exactly the locked files of a converted checkpoint, every one of them hashed just now.

    What a conversion gave is known by its files and not by what went into it: no wheel of the conversion is asked for.

    Returns:
        The folder; None where no build of this store has it, or what it has is damaged.

    Raises:
        NotCheckedError: the store cannot be read.
    """
    wanted = {file.path: (file.sha256, file.size) for file in checkpoint.listed}
    places = store.root / "entries" / _KIND
    for key in sorted(each.name for each in places.iterdir()) if places.is_dir() else ():
        folder = places / key / "content" / _KIND
        if not wanted or not all((folder / path).is_file() for path in wanted):
            continue  # another checkpoint's, before anything of it is hashed
        try:
            with store.entry(_KIND, key, reporter=reporter) as entry:
                if not entry.complete or entry.folder / _KIND != folder:
                    continue
                found = hash_tree(folder, reporter=reporter)
        except (DriftError, UnsafeInputError) as error:
            reporter.note(f"checkpoint {checkpoint.name}: {error}")
            continue
        if {path: (file.sha256, file.size) for path, file in found.items()} == wanted:
            return folder
        reporter.note(f"checkpoint {checkpoint.name}: what lies at {folder} is not what the lock says")
    return None

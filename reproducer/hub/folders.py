"""A folder that a person has already, held against the lock: every locked file is in it, nothing leads out of it."""

import os
from collections.abc import Sequence
from pathlib import Path

from reproducer.documents.base import shown
from reproducer.errors import DriftError, UnsafeInputError, UsageError
from reproducer.hub.checking import Place, verified
from reproducer.hub.listing import HubFile
from reproducer.progress import Reporter

_NAMED = 5


def places_in(folder: Path, files: Sequence[HubFile]) -> dict[str, Path]:
    """Where each locked file lies in a folder.

    A snapshot of a hub's cache holds links to the blobs beside it: those count, any other link out of the folder is
    refused. Files that the lock does not name are left where they are: an engine never sees them.

    Raises:
        UsageError: no such folder.
        UnsafeInputError: a file leads out of the folder, or is a folder, a device, a socket or a pipe.
    """
    if not folder.is_dir():
        raise UsageError("is no folder", where=str(folder), todo="name the folder that holds the checkpoint")
    root = Path(os.path.realpath(folder))
    inside = [root]
    if root.parent.name == "snapshots":
        inside.append(root.parent.parent / "blobs")
    places = {}
    for file in files:
        real = Path(os.path.realpath(root / file.path))
        if not any(real.is_relative_to(each) for each in inside):
            raise UnsafeInputError(f"{shown(file.path)} leads out of its folder", where=str(folder), why="a link")
        if os.path.lexists(real) and not real.is_file():
            raise UnsafeInputError(f"{shown(file.path)} is no regular file", where=str(folder))
        places[file.path] = real
    return places


def verified_folder(folder: Path, files: Sequence[HubFile], *, name: str, reporter: Reporter) -> dict[str, Path]:
    """Where each locked file lies in a folder, every one of them hashed just now.

    Raises:
        DriftError: names the files that are missing or other ones, with expected and got.
        UsageError, UnsafeInputError: as `places_in`.
    """
    places = places_in(folder, files)
    faults = verified([Place(file, places[file.path]) for file in files], reporter=reporter)
    if faults:
        told = "; ".join(f"{path}: {fault}" for path, fault in list(faults.items())[:_NAMED])
        more = f"; and {len(faults) - _NAMED} more" if len(faults) > _NAMED else ""
        raise DriftError(
            f"the folder is not checkpoint {name}",
            where=str(folder),
            why=told + more,
            todo="name another folder, or fetch it from the hub",
        )
    return places

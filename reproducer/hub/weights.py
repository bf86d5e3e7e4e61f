"""What may be loaded: safetensors with sound headers. Files that run code when they are loaded are refused.

By name where only names are known, which is when a checkpoint is locked, and by content once the bytes are there.
"""

import os
import pickletools
from collections.abc import Collection, Iterable
from pathlib import Path

from reproducer.binaries.safetensors_check import check_safetensors
from reproducer.documents.base import shown
from reproducer.errors import UnsafeInputError

SUFFIXES = (
    ".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".npy", ".npz", ".h5", ".hdf5", ".keras", ".msgpack",
    ".nemo", ".mar", ".ptl", ".pt2", ".pte", ".zip", ".tar", ".tgz", ".7z", ".dduf", ".whl", ".egg", ".llamafile",
    ".so", ".dll", ".pyd", ".pyc",
)  # fmt: skip
_BEGINNINGS = (
    (b"PK\x03\x04", "a zip archive, as torch and Keras write them"),
    (b"\x89HDF\r\n\x1a\n", "HDF5, as Keras writes it"),
    (b"\x93NUMPY", "a NumPy array, which may hold objects"),
    (b"\x7fELF", "a program"),
    (b"7z\xbc\xaf\x27\x1c", "an archive"),
    (b"!<arch>\n", "a library"),
)
_TAR_AT, _TAR = 257, b"ustar"
_PICKLE_PROTOCOLS = range(2, 6)
_LARGEST_TEXT_PICKLE = 1 << 20
_CALLS = frozenset({"GLOBAL", "STACK_GLOBAL", "INST", "REDUCE", "OBJ", "NEWOBJ"})
_TODO = "use a checkpoint in safetensors, leave the file out with `ignore`, or name it in the manifest's `pickles`"


def check_names_of_weights(paths: Iterable[str], allowed: Collection[str], *, where: str) -> tuple[str, ...]:
    """Refuse files whose name says that loading them runs code, except those that are allowed by name.

    Returns:
        The allowed ones that are there.

    Raises:
        UnsafeInputError: names every other one.
    """
    found = [path for path in paths if path.lower().endswith(SUFFIXES)]
    if refused := [path for path in found if path not in allowed]:
        names = ", ".join(shown(path) for path in refused[:5]) + (
            f" and {len(refused) - 5} more" if refused[5:] else ""
        )
        raise UnsafeInputError(f"files of a kind that can carry code: {names}", where=where, todo=_TODO)
    return tuple(sorted(set(found)))


def check_content(path: Path, name: str, *, allowed: bool) -> None:
    """Check one file of a checkpoint, whatever it is called.

    Args:
        path: where it lies.
        name: its path in the checkpoint.
        allowed: whether the lock names it among the pickles.

    Raises:
        UnsafeInputError: a safetensors header that is not sound, or content that can carry code.
    """
    if name.lower().endswith(".safetensors"):
        try:
            check_safetensors(path)
        except UnsafeInputError as error:
            raise UnsafeInputError(error.what, where=name, why=error.why) from error
        return
    if not allowed and (kind := kind_of(path)) is not None:
        raise UnsafeInputError(f"{shown(name)} is {kind}", where=name, why="its name does not say so", todo=_TODO)


def kind_of(path: Path) -> str | None:
    """What a file that can carry code is, by its content; None for any other."""
    with path.open("rb") as file:
        start = file.read(_TAR_AT + len(_TAR))
        size = os.fstat(file.fileno()).st_size
        for beginning, kind in _BEGINNINGS:
            if start.startswith(beginning):
                return kind
        if start[_TAR_AT:] == _TAR:
            return "a tar archive"
        if len(start) > 1 and start[0] == 0x80 and start[1] in _PICKLE_PROTOCOLS:  # noqa: PLR2004  pickle's PROTO
            return "a pickle"
        if size > _LARGEST_TEXT_PICKLE:
            return None
        return "a pickle" if _is_old_pickle(start + file.read()) else None


def _is_old_pickle(data: bytes) -> bool:
    """Whether text reads as a pickle of protocol 0 or 1 that calls something."""
    calls = False
    try:
        for opcode, _, _ in pickletools.genops(data):
            calls = calls or opcode.name in _CALLS
    except (ValueError, IndexError, UnicodeDecodeError, OverflowError):
        return False
    return calls

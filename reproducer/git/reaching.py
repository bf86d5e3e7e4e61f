"""How git reaches a repository: over a network, or on this machine, where the repository's own folder steers it too.

A repository on this machine is read by a git of its own (`upload-pack`), which sees the configuration that lies there
and none of ours. Where an object is missing, that configuration may say where it is fetched from, and with which
program; older releases of git do so. And where a name of the folder is a pipe, git waits at it for ever.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from reproducer.documents.base import shown
from reproducer.errors import UnsafeInputError
from reproducer.git.addresses import Address

_OWN_SIDE = "--upload-pack=GIT_ALLOW_PROTOCOL=none git-upload-pack"
_POINTER = b"gitdir: "
_LONGEST_POINTER = 8192


def options(address: Address) -> list[str]:
    """Options of `fetch` and `ls-remote` with which a repository is reached.

    Raises:
        UnsafeInputError: one on this machine that git would wait at.
    """
    if address.path is None:
        return []
    refuse_pipes(address.path)
    return [_OWN_SIDE]


def refuse_pipes(path: Path) -> None:
    """Refuse a repository with a pipe or a device where git reads a file.

    Raises:
        UnsafeInputError: as said.
    """
    for folder in _own_folders(path):
        for file in _files(folder):
            _refuse(file, where=path)


def refuse_pipes_among(path: Path) -> None:
    """The same for the files of a working tree that steer git itself; raises as `refuse_pipes`."""
    for top, folders, files in os.walk(path):
        folders[:] = [each for each in folders if each != ".git"]
        for name in {".gitignore", ".gitattributes"}.intersection(files):
            _refuse(Path(top) / name, where=path)


def _own_folders(path: Path) -> Iterator[Path]:
    """Where a repository keeps what is its own: in itself, in `.git`, or where a `.git` file points."""
    inside = path / ".git"
    if not os.path.lexists(inside):
        if os.path.lexists(path / "HEAD"):
            yield path
        return
    _refuse(inside, where=path)
    try:
        with inside.open("rb") as file:
            said = file.read(_LONGEST_POINTER)
    except IsADirectoryError:
        yield inside
        return
    except OSError:
        return  # git says what is wrong with it
    if said.startswith(_POINTER):
        folder = path / os.fsdecode(said.removeprefix(_POINTER).rstrip(b"\r\n").replace(b"\0", b""))
        yield folder
        if os.path.lexists(folder / "commondir"):
            yield folder / ".." / ".."  # a linked working tree: what it shares with the others


def _files(folder: Path) -> Iterator[Path]:
    for top, _, files in os.walk(folder):
        for name in files:
            yield Path(top) / name


def _refuse(file: Path, *, where: Path) -> None:
    try:
        mode = file.stat().st_mode
    except OSError:
        return
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise UnsafeInputError(
            f"{shown(file.name)} is a pipe or a device, and no file", where=str(where), todo="take it away"
        )

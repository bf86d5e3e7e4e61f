"""What an engine's command line and environment take, read from its source; nothing of it is run or imported."""

import os
import stat
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

from reproducer.documents.arguments import ArgumentSchema
from reproducer.documents.base import shown
from reproducer.engines.source.modules import LARGEST_FILE, ListFiles, ReadFile
from reproducer.errors import InvalidDocumentError, UnsafeInputError

READABLE = ("sglang", "vllm")
_MOST_LISTED = 100_000


def read_arguments(engine: str, version: str, read: ReadFile, list_files: ListFiles) -> ArgumentSchema:
    """Read the arguments and variables of one release.

    Args:
        engine: `sglang` or `vllm`.
        version: of the release.
        read: the bytes of a file by its path relative to where the package lies, None where there is none.
        list_files: the paths of all files below a folder.

    Raises:
        InvalidDocumentError: the source is no Python, not built as any release that penny knows, or takes too much.
    """
    from reproducer.engines.source.modules import Sources
    from reproducer.engines.source.sglang import read_sglang
    from reproducer.engines.source.vllm import read_vllm

    if engine not in READABLE:
        raise InvalidDocumentError(f"penny cannot read the arguments of {shown(engine)}", todo="use sglang or vllm")
    where = f"the source of {engine} {version}"
    sources = Sources(where, read, list_files)
    try:
        arguments, variables = (read_sglang if engine == "sglang" else read_vllm)(sources)
    except RecursionError as error:
        raise InvalidDocumentError("is nested too deeply", where=where) from error
    if not arguments:
        raise InvalidDocumentError("adds no arguments to its parser", where=where)
    data: dict[str, Any] = {
        "format": "penny-arguments/1",
        "engine": engine,
        "version": version,
        "files": [each.model_dump() for each in sources.files],
        "arguments": arguments,
        "variables": variables,
    }
    return ArgumentSchema.from_data(data, where=where)


def from_folder(engine: str, version: str, folder: Path) -> ArgumentSchema:
    """Read the arguments from the folder that the engine's package lies in: its regular files, through no link.

    Raises:
        InvalidDocumentError: as `read_arguments`.
    """

    def read(path: str) -> bytes | None:
        return _read_below(folder, path)

    def list_files(below: str) -> tuple[str, ...]:
        found: list[str] = []
        for top, folders, files in os.walk(folder / below):
            folders.sort()
            found += [str(PurePosixPath(Path(top, name).relative_to(folder))) for name in sorted(files)]
            if len(found) > _MOST_LISTED:
                raise InvalidDocumentError(f"has more than {_MOST_LISTED} files", where=str(folder / below))
        return tuple(found)

    return read_arguments(engine, version, read, list_files)


def _read_below(folder: Path, path: str) -> bytes | None:
    """A regular file below a folder, none of whose folders is a link; None where there is none."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    *parents, name = PurePosixPath(path).parts
    handle = -1
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in parents:
            inner = os.open(part, flags | os.O_DIRECTORY, dir_fd=handle)
            os.close(handle)
            handle = inner
        inner = os.open(name, flags, dir_fd=handle)
        os.close(handle)
        handle = inner
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        with os.fdopen(os.dup(handle), "rb") as file:
            return file.read(LARGEST_FILE + 1)
    except OSError:
        return None
    finally:
        if handle >= 0:
            os.close(handle)


def from_wheel(engine: str, version: str, path: Path) -> ArgumentSchema:
    """Read the arguments from the engine's wheel.

    Raises:
        InvalidDocumentError: as `read_arguments`.
        UnsafeInputError: no wheel that can be read, or with members that must not be.
    """
    from reproducer.archives.members import BROKEN_ARCHIVE, zip_members

    try:
        with zipfile.ZipFile(path) as packed:
            members = {each.filename: each for each in zip_members(packed, where=path.name) if not each.is_dir()}

            def read(name: str) -> bytes | None:
                if name not in members:
                    return None
                with packed.open(members[name]) as file:
                    return file.read(LARGEST_FILE + 1)

            def list_files(below: str) -> tuple[str, ...]:
                return tuple(sorted(name for name in members if name.startswith(f"{below}/")))

            return read_arguments(engine, version, read, list_files)
    except (*BROKEN_ARCHIVE, RuntimeError, OSError, ValueError) as error:
        raise UnsafeInputError("is no wheel that can be read", where=path.name, why=str(error)) from error

"""Which paths are artefacts and which are locks: by what lies there, never by a name alone."""

from pathlib import Path

_MAGICS = (b"\x7fELF", b"!<arch>\n", b"\x50\xed\x55\xba", b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")


def is_artefact(path: Path) -> bool:
    """Whether a path is a folder, an archive, a binary or PTX text; anything else is left to the reader of locks."""
    if path.is_dir():
        return True
    if not path.is_file():
        return False
    if path.suffix == ".ptx":
        return True
    try:
        with path.open("rb") as file:
            start = file.read(262)
    except OSError:
        return False
    return start.startswith(_MAGICS) or start[257:] == b"ustar"

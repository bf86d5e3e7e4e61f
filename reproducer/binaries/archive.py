r"""Static archives (`ar`), as GNU binutils writes them.

Layout: the magic, then for each member a header of 60 bytes in ASCII (name 16, time 12, user 6, group 6, mode 8, size
10, "`\n"), its bytes, and a newline where their number is odd. `/` is the symbol table, `//` holds long names, and
`/123` is the long name at 123 in it. Compared with `ar t` of binutils 2.40. A thin archive only names files.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from reproducer.binaries.reading import MalformedError, Window

MAGIC = b"!<arch>\n"
_HEADER = 60
_MOST_MEMBERS = 1 << 20
_LARGEST_NAMES = 64 << 20


@dataclass(frozen=True)
class ArchiveMember:
    """One file in an archive; time, owner and mode are left out."""

    name: str
    content: Window


def is_archive(window: Window) -> bool:
    """Whether the bytes begin as an archive does."""
    return window.size >= len(MAGIC) and window.read(0, len(MAGIC)) == MAGIC


def archive_members(window: Window) -> Iterator[ArchiveMember]:
    """The members in order, without the symbol table, which follows from them.

    Raises:
        MalformedError: the headers lie.
    """
    names = b""
    position = len(MAGIC)
    for _ in range(_MOST_MEMBERS):
        if position >= window.size:
            return
        header = window.read(position, _HEADER)
        if header[58:] != b"`\n" or not header[48:58].strip().isdigit():
            raise MalformedError(f"has no member header at {position}")
        size = int(header[48:58])
        content = window.inside(position + _HEADER, size)
        position += _HEADER + size + size % 2
        name = header[:16].rstrip(b" ")
        if name == b"//":
            if size > _LARGEST_NAMES:
                raise MalformedError("has names without end")
            names = content.read(0, size)
        elif name not in (b"/", b"/SYM64/"):
            yield ArchiveMember(_name(name, names), content)
    raise MalformedError(f"has more than {_MOST_MEMBERS} members")


def _name(name: bytes, names: bytes) -> str:
    if name[:1] == b"/" and name[1:].isdigit():
        start = int(name[1:])
        end = names.find(b"/\n", start, start + 65536)
        if end < 0:
            raise MalformedError(f"names text {start} of {len(names)}")
        name = names[start:end]
    return name.removesuffix(b"/").decode("utf-8", "backslashreplace")

"""Where a repository is: an address that a lock may carry, or a place on this machine that it must not.

What a manifest or a `.gitmodules` says is read here and nowhere else. git would run a command for `ext::…`, ask
`git-remote-SCHEME` for an unknown scheme, and read what begins with `-` as an option; none of them passes.
"""

import errno
import posixpath
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from reproducer.documents.base import shown
from reproducer.documents.urls import SCHEMES, git_url
from reproducer.errors import NotCheckedError, UnsafeInputError
from reproducer.git.running import LOCAL, NETWORK

_SCP = re.compile(
    r"^(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9._-]*)@)?(?P<host>[A-Za-z0-9_][A-Za-z0-9._-]*):(?P<path>[^/:].*)$"
)
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True)
class Address:
    """One repository.

    Attributes:
        url: as a lock carries it; None for a place on this machine.
        path: the place on this machine; None for an address on a network.
    """

    url: str | None = None
    path: Path | None = None

    @property
    def operand(self) -> str:
        """As git takes it: it begins with a scheme or a slash, so never as an option or a host."""
        return self.url if self.url is not None else str(self.path)

    @property
    def transports(self) -> tuple[str, ...]:
        """The protocols that reaching it takes."""
        return LOCAL if self.url is None else NETWORK

    @property
    def is_here(self) -> bool:
        """Whether it is a place on this machine with something there.

        Raises:
            NotCheckedError: nobody may look.
        """
        if self.path is None:
            return False
        try:
            return self.path.exists()
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return False
            raise NotCheckedError(
                "the repository cannot be looked for", where=str(self.path), why=error.strerror or str(error)
            ) from error

    def __str__(self) -> str:
        return self.operand


def address(text: str, *, root: Path, where: str) -> Address:
    """What a manifest means: an address, `file://`, or a path relative to `root`.

    Raises:
        UnsafeInputError: neither, or one that git might read as something else.
    """
    _plain(text, where)
    if text.startswith("file://"):
        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost") or parts.query or parts.fragment or not parts.path.startswith("/"):
            raise UnsafeInputError(f"{shown(text)} is no file:// address of this machine", where=where)
        path = unquote(parts.path)
        _plain(path, where)
        return Address(path=Path(path))
    if network := _network(text, where):
        return network
    return Address(path=(root / text).absolute())


def submodule_address(text: str, parent: Address, *, path: str, where: str) -> Address:
    """What `.gitmodules` means: an address, or one relative to the parent's.

    Args:
        text: its `url`.
        parent: where the repository lies that holds it.
        path: the submodule, for errors.
        where: the repository, for errors.

    Raises:
        UnsafeInputError: it names a place on the machine of whoever fetches it, or no address at all.
    """
    place = f"{where}, submodule {shown(path)}"
    _plain(text, place)
    if network := _network(text, place):
        return network
    if not text.startswith(("./", "../")):
        raise UnsafeInputError(
            f"its url {shown(text)} is no address that a stranger's repository may name",
            where=place,
            todo=f"{', '.join(f'{each}://' for each in SCHEMES)} and what is relative to its parent are fetched",
        )
    if parent.url is None:
        assert parent.path is not None  # noqa: S101  an address has one of them
        return Address(path=Path(posixpath.normpath(f"{parent.path}/{text}")))
    scheme, _, rest = parent.url.partition("://")
    host, _, below = rest.partition("/")
    joined = posixpath.normpath(f"{below}/{text}")
    if joined.startswith("..") or joined == ".":
        raise UnsafeInputError(f"its url {shown(text)} leaves the server of its parent", where=place)
    return Address(url=_checked(f"{scheme}://{host}/{joined}", place))


def _network(text: str, where: str) -> Address | None:
    """An address on a network, also in the form `user@host:path`; None for a path."""
    if "::" in text:
        raise UnsafeInputError(f"{shown(text)} names a command as its transport", where=where)
    if _SCHEME.match(text) and "://" in text:
        return Address(url=_checked(text, where))
    if scp := _SCP.match(text):
        user = f"{scp['user']}@" if scp["user"] else ""
        return Address(url=_checked(f"ssh://{user}{scp['host']}/{scp['path']}", where))
    if ":" in text.partition("/")[0]:
        raise UnsafeInputError(
            f"{shown(text)} reads as a host and a path, and names no host", where=where, todo="write ./ before a path"
        )
    return None


def _checked(text: str, where: str) -> str:
    try:
        return git_url(text)
    except ValueError as error:
        raise UnsafeInputError(f"the address {shown(text)} {error}", where=where) from error


def _plain(text: str, where: str) -> None:
    """Nothing that git, ssh or a terminal reads as more than a name."""
    if not text or text.startswith("-"):
        raise UnsafeInputError(f"{shown(text)} reads as an option and not as an address", where=where)
    if not text.isprintable():
        raise UnsafeInputError(f"{shown(text)} holds a line break or a control character", where=where)

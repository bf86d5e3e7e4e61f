"""Addresses from manifests and from `.gitmodules`: what may be fetched, and what would be a command or an option."""

from pathlib import Path

import pytest

from reproducer.errors import UnsafeInputError
from reproducer.git.addresses import Address, address, submodule_address

ROOT = Path("/work/project")
PARENT = Address(url="https://git.example/group/kernel.git")


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://git.example/kernel.git", "https://git.example/kernel.git"),
        ("git://git.example:9418/kernel", "git://git.example:9418/kernel"),
        ("ssh://git@git.example/kernel.git", "ssh://git@git.example/kernel.git"),
        ("git@git.example:group/kernel.git", "ssh://git@git.example/group/kernel.git"),
    ],
)
def test_network(text: str, url: str) -> None:
    """An address of a network stays as it is; the form of `user@host:path` becomes the one with a scheme."""
    assert address(text, root=ROOT, where="manifest") == Address(url=url)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("../kernel", "/work/project/../kernel"),
        ("/srv/kernel", "/srv/kernel"),
        ("file:///srv/a%20kernel", "/srv/a kernel"),
        ("file://localhost/srv/kernel", "/srv/kernel"),
    ],
)
def test_local(text: str, path: str) -> None:
    """A path and `file://` are a place on this machine: no lock carries it."""
    found = address(text, root=ROOT, where="manifest")
    assert (found.url, found.path) == (None, Path(path))
    assert found.transports == ("file",)


@pytest.mark.parametrize(
    "text",
    [
        "ext::sh -c touch% /tmp/x",
        "ext::https://git.example/kernel",
        "fd::17/foo",
        "testgit::https://git.example/x",
        "-oProxyCommand=touch x",
        "--upload-pack=touch x",
        "ssh://-oProxyCommand=touch/x",
        "ssh://git.example/-x/../y",
        "git@-oProxyCommand=x:kernel",
        "https://git.example/kernel.git\n",
        "https://git.example/a\nhost=other.example",
        "https://user:secret@git.example/kernel.git",
        "https://git.example/kernel.git?upload-pack=x",
        "http://git.example/%2e%2e/../x",
        "ftp://git.example/kernel.git",
        "svn+ssh://git.example/kernel.git",
        "file://other.example/srv/kernel",
        "file:///srv/ker%0anel",
        "kernel\x1b[2J",
        "",
    ],
)
def test_refused(text: str) -> None:
    """Commands as transports, options, line breaks, passwords and unknown schemes are no address."""
    with pytest.raises(UnsafeInputError):
        address(text, root=ROOT, where="manifest")


@pytest.mark.parametrize("text", ["ext::sh -c id", "https::x", "git.example::x"])
def test_commands_are_named(text: str) -> None:
    """A command as a transport is called what it is."""
    with pytest.raises(UnsafeInputError, match="names a command as its transport"):
        address(text, root=ROOT, where="manifest")


def test_above_the_server() -> None:
    """An address above its parent's server is called what it is."""
    with pytest.raises(UnsafeInputError, match="leaves the server of its parent"):
        submodule_address("../../../x", PARENT, path="part", where="kernel")


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://other.example/part.git", "https://other.example/part.git"),
        ("git@other.example:part.git", "ssh://git@other.example/part.git"),
        ("../part.git", "https://git.example/group/part.git"),
        ("../../other/part.git", "https://git.example/other/part.git"),
        ("./part.git", "https://git.example/group/kernel.git/part.git"),
    ],
)
def test_submodule(text: str, url: str) -> None:
    """A submodule's address is absolute in the lock, also where `.gitmodules` gives it relative to the parent's."""
    assert submodule_address(text, PARENT, path="part", where="kernel") == Address(url=url)


@pytest.mark.parametrize(
    "text",
    [
        "file:///etc",
        "/srv/secret",
        "part",
        "-u./payload",
        "--upload-pack=touch x",
        "ext::sh -c x",
        "../../../../outside",
        "https://git.example/a\nb",
        "../part\x00",
    ],
)
def test_submodule_refused(text: str) -> None:
    """A stranger's repository names no place on this machine, no option, no command, and nothing above its server."""
    with pytest.raises(UnsafeInputError):
        submodule_address(text, PARENT, path="part", where="kernel")


def test_submodule_of_local() -> None:
    """Beside a repository on this machine a relative address is a place beside it."""
    found = submodule_address("../part", Address(path=Path("/srv/kernel")), path="part", where="kernel")
    assert found == Address(path=Path("/srv/part"))

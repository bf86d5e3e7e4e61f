"""What a commit holds besides its own files: submodules, however deep, and files that are Git LFS pointers."""

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pydantic import ValidationError

from reproducer.documents.base import shown
from reproducer.documents.sources import LfsPointer, Submodule
from reproducer.errors import DriftError, NotCheckedError, UnsafeInputError
from reproducer.git.addresses import Address, submodule_address
from reproducer.git.mirrors import Form, Mirror
from reproducer.git.objects import Objects, objects
from reproducer.git.running import run
from reproducer.git.trees import SUBMODULE, Leaf, leaves

if TYPE_CHECKING:
    from reproducer.progress import Reporter
    from reproducer.store import Store

GITMODULES = PurePosixPath(".gitmodules")
_LARGEST_GITMODULES = 1 << 20
_DEEPEST = 16
_MOST = 2000
_LARGEST_POINTER = 1024
_POINTER = re.compile(
    rb"\Aversion https://git-lfs\.github\.com/spec/v1\n(?:ext-[0-9a-z-]+ [^\n]*\n)*"
    rb"oid sha256:([0-9a-f]{64})\nsize ([0-9]{1,15})\n(?:x-[^\n]*\n)*\Z"
)
_KEY = re.compile(r"^submodule\.(.*)\.(path|url)$", re.DOTALL)


@dataclass(frozen=True)
class Contents:
    """What one commit is: its tree, all submodules by path, all pointers by path."""

    tree: str
    submodules: tuple[Submodule, ...]
    lfs: tuple[LfsPointer, ...]


@dataclass(frozen=True)
class Reading:
    """What reads commits, fetching each one that is not there.

    Attributes:
        offline: the mirrors and this machine's repositories alone count.
        form: how much of a commit is fetched.
    """

    store: "Store"
    reporter: "Reporter"
    offline: bool = False
    form: Form = "whole"

    def contents(self, address: Address, commit: str, *, where: str) -> Contents:
        """Everything that a commit holds.

        Args:
            address: where it is.
            commit: its full name.
            where: what it is for, for errors.

        Raises:
            DriftError: a commit or submodule is not there; says what is.
            UnsafeInputError: names, links or addresses that no source tree has.
            NotCheckedError: a repository cannot be reached.
        """
        level = _Level(address, (address,), commit, PurePosixPath(), 0)
        found: dict[str, Submodule] = {}
        pointers: dict[str, LfsPointer] = {}
        tree = self._read(level, found, pointers, where)
        return Contents(
            tree, tuple(found[path] for path in sorted(found)), tuple(pointers[path] for path in sorted(pointers))
        )

    def mirrored(self, url: str | None, commit: str, via: Sequence[Address], *, where: str) -> Mirror:
        """The mirror that has a commit, which is fetched where it is not there.

        Args:
            url: the repository's address, if it has one.
            commit: the full name.
            via: from where it is fetched, best first.
            where: what it is for, for errors.

        Raises:
            DriftError, UnsafeInputError, NotCheckedError: as `contents`; the last place's fault.
        """
        whole = Mirror.of(self.store, url, commit)
        mirror = whole if whole.has(commit) else Mirror.of(self.store, url, commit, self.form)
        self.brought(mirror, commit, via, where=where)
        return mirror

    def brought(self, mirror: Mirror, commit: str, via: Sequence[Address], *, where: str) -> int:
        """Have a commit in a mirror; the bytes that came. Raises as `mirrored`."""
        if mirror.has(commit):
            return 0
        asked = [each for each in via if each.url is None or not self.offline]
        if not asked:
            raise NotCheckedError(
                f"commit {commit} is not in the store",
                where=where,
                why="--offline touches no network" if via else "the lock names no address for it",
                todo="run `penny fetch` with a network first"
                if via
                else "say where it lies with `penny fetch --repository NAME=PATH`",
            )
        for each in asked[:-1]:
            try:
                return mirror.bring(each, commit, reporter=self.reporter, what=where)
            except (DriftError, NotCheckedError) as error:
                self.reporter.detail(str(error))
        return mirror.bring(asked[-1], commit, reporter=self.reporter, what=where)

    def _read(self, level: "_Level", found: dict[str, Submodule], pointers: dict[str, LfsPointer], where: str) -> str:
        if level.depth > _DEEPEST:
            raise UnsafeInputError(f"has submodules deeper than {_DEEPEST}", where=where)
        at = level.at
        place = f"{where}, submodule {at}" if at.parts else where
        mirror = self.mirrored(level.address.url, level.commit, level.via, where=place)
        with objects(mirror.folder) as there:
            tree = there.tree_of(level.commit)
            every = list(leaves(there, tree, where=place))
            links = [leaf for leaf in every if leaf.kind == SUBMODULE]
            urls = declared(there, every, where=place) if links else {}
            for path, digest, size in _pointers(there, mirror, every):
                pointers[str(at / path)] = _pointer(at / path, digest, size, place)
        for link in links:
            path = at / link.path
            if str(link.path) not in urls:
                raise DriftError(
                    f"submodule {shown(str(path))} has no address",
                    where=where,
                    why=f"the tree names its commit {link.oid}, and .gitmodules names "
                    + (", ".join(shown(each) for each in sorted(urls)[:5]) or "none"),
                    todo="correct .gitmodules in the repository, or lock a commit whose submodules can be had",
                )
            if len(found) >= _MOST:
                raise UnsafeInputError(f"has more than {_MOST} submodules", where=where)
            named = submodule_address(urls[str(link.path)], level.address, path=str(path), where=where)
            module = _module(path, named, link, where)
            found[module.path] = module
            via = (*checked_out(level.via[0], str(link.path)), named)
            below = self._read(_Level(named, via, link.oid, path, level.depth + 1), found, pointers, where)
            found[module.path] = module.model_copy(update={"tree": below})
        return tree


@dataclass(frozen=True)
class _Level:
    """One repository on the way down: its own address, the places it is fetched from, its commit, where it hangs."""

    address: Address
    via: tuple[Address, ...]
    commit: str
    at: PurePosixPath
    depth: int


def checked_out(parent: Address, path: str) -> tuple[Address, ...]:
    """Where a repository on this machine has a submodule's own repository; nowhere for another kind of parent."""
    if parent.path is None or not Address(path=parent.path / path / ".git").is_here:
        return ()
    return (Address(path=parent.path / path),)


def _module(path: PurePosixPath, named: Address, link: Leaf, where: str) -> Submodule:
    """A submodule whose tree is not read yet."""
    try:
        return Submodule(path=str(path), url=named.url, commit=link.oid, tree=link.oid)
    except ValidationError as error:
        raise UnsafeInputError(f"submodule {shown(str(path))} is no name that a lock can carry", where=where) from error


def declared(there: Objects, every: list[Leaf], *, where: str) -> Mapping[str, str]:
    """The addresses that `.gitmodules` gives, by path; nothing else in it means anything here.

    Raises:
        UnsafeInputError: a name or path that leaves, or a file that makes no sense.
    """
    file = next((leaf for leaf in every if leaf.path == GITMODULES and leaf.is_file), None)
    if file is None:
        return {}
    data = there.read(file.oid, "blob", limit=_LARGEST_GITMODULES)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "modules").write_bytes(data)
        out = run(
            ["config", "--file", "modules", "--no-includes", "--null", "--list"],
            folder=Path(folder),
            what="reading .gitmodules",
            where=where,
        )
    said: dict[str, dict[str, str]] = {}
    for entry in out.decode("utf-8", "replace").split("\0"):
        key, _, value = entry.partition("\n")
        if match := _KEY.match(key):
            said.setdefault(match[1], {})[match[2]] = value
    for name, values in said.items():
        if not name or ".." in re.split(r"[/\\]", name) or name.startswith("-"):
            raise UnsafeInputError(f".gitmodules has the submodule name {shown(name)}, which leaves", where=where)
        if values.get("path", "").startswith("-"):
            raise UnsafeInputError(f".gitmodules has the path {shown(values['path'])}, an option", where=where)
    return {each["path"]: each["url"] for each in said.values() if "path" in each and "url" in each}


def _pointers(there: Objects, mirror: Mirror, every: list[Leaf]) -> Iterator[tuple[PurePosixPath, str, int]]:
    """Path, digest and size of every file that is a pointer."""
    sizes = _sizes(mirror, {leaf.oid for leaf in every if leaf.is_file})
    for leaf in every:
        if not leaf.is_file or sizes.get(leaf.oid, _LARGEST_POINTER + 1) > _LARGEST_POINTER:
            continue
        if said := pointer(there.read(leaf.oid, "blob", limit=_LARGEST_POINTER)):
            yield leaf.path, *said


def pointer(data: bytes) -> tuple[str, int] | None:
    """Digest and size of what an LFS pointer stands for; None for any other file."""
    match = _POINTER.match(data)
    return (match[1].decode(), int(match[2])) if match else None


def _pointer(path: PurePosixPath, digest: str, size: int, where: str) -> LfsPointer:
    try:
        return LfsPointer(path=str(path), sha256=digest, size=size)
    except ValidationError as error:
        raise UnsafeInputError(f"{shown(str(path))} is no pointer that a lock can carry", where=where) from error


def _sizes(mirror: Mirror, oids: set[str]) -> dict[str, int]:
    """The size of each blob that is there; an outline has the small ones only."""
    with tempfile.TemporaryFile() as names:
        names.write("".join(f"{oid}\n" for oid in sorted(oids)).encode())
        names.seek(0)
        out = run(
            ["cat-file", "--batch-check=%(objectname) %(objectsize)", "--buffer"],
            folder=mirror.folder,
            git_dir=mirror.folder,
            what="reading sizes of files",
            feed=names,
        )
    lines = (line.split(" ") for line in out.decode("ascii", "replace").splitlines())
    return {oid: int(size) for oid, size in lines if size.isdigit()}

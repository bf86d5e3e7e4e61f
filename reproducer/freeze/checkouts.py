"""Where a distribution came from, and what lies in the folder that its code is read from.

The commit is that of the folder which the running code is read from. What a label, a tag or a version says of it is
not asked.
"""

import os
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from pydantic import ValidationError

from reproducer.canonical import content_digest
from reproducer.documents.environment import UNKNOWN, Checkout, Origin
from reproducer.documents.urls import git_url
from reproducer.errors import NotCheckedError, UnsafeInputError
from reproducer.freeze.beside import path_of
from reproducer.locking.files import reference
from reproducer.progress import Reporter
from reproducer.store import Store
from reproducer.store.hashing import hash_file, workers_here
from reproducer.store.layout import private_folder

if TYPE_CHECKING:
    from reproducer.documents.base import FileReference

_COMMIT = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NOT_SOURCES = frozenset({".git", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", "build", "dist"})
_MOST_FILES = 200_000
_LONGEST_LIST = 64 << 20


@dataclass
class Checkouts:
    """Reads folders of code, each once.

    Attributes:
        files: patches that are to lie beside the lock, by path.
        folder: where they lie, relative to the lock.
    """

    store: Store
    reporter: Reporter
    folder: str
    files: dict[str, bytes] = field(default_factory=dict)
    _read: dict[Path, Checkout] = field(default_factory=dict)

    def of(self, folder: Path, *, name: str) -> Checkout:
        """What lies in the git working tree that a folder belongs to, or in the folder where it belongs to none.

        Raises:
            NotCheckedError: it cannot be read, or holds too many files.
            UnsafeInputError: what no lock carries.
        """
        top = top_of(folder)
        place = top or folder
        if place not in self._read:
            self._read[place] = self._git(place, name) if top is not None else self._plain(place)
        return self._read[place]

    def _git(self, top: Path, name: str) -> Checkout:
        from reproducer.git.addresses import Address
        from reproducer.git.changes import changes_of, working_tree
        from reproducer.git.mirrors import Mirror
        from reproducer.git.objects import objects

        tree = working_tree(top)
        if tree is None:
            return self._plain(top)
        mirror = Mirror.of(self.store, None, tree.commit)
        mirror.bring(Address(path=top), tree.commit, reporter=self.reporter, what=name)
        with private_folder(self.store.root) as work:
            patch = changes_of(tree, mirror, work / "index", where=str(top))
        with objects(mirror.folder) as there:
            found = there.tree_of(tree.commit)
        changes: FileReference | None = None
        if patch is not None:
            path = path_of(self.folder, name, ".patch", patch)
            self.files[path] = patch
            changes = reference(path, patch)
        paths = self._listed(top, tree.git_dir)
        digests = _digests(top, paths)
        return Checkout(
            commit=tree.commit,
            tree=found,
            url=_remote(top, tree.git_dir),
            changes=changes,
            files=len(digests),
            sha256=content_digest(digests),
        )

    def _listed(self, top: Path, git_dir: Path) -> list[str]:
        """Every file of a working tree that git does not ignore, tracked or not."""
        from reproducer.git.running import run

        arguments = [f"--work-tree={top}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        out = run(arguments, folder=top, git_dir=git_dir, what="listing it", where=str(top), limit=_LONGEST_LIST)
        return sorted({each.decode("utf-8", "surrogateescape") for each in out.split(b"\0") if each})

    def _plain(self, folder: Path) -> Checkout:
        paths: list[str] = []
        for top, folders, files in _walk(folder):
            folders[:] = sorted(each for each in folders if each not in _NOT_SOURCES and not each.endswith(".egg-info"))
            below = top.relative_to(folder)
            paths += [(below / each).as_posix() for each in sorted(files) if not each.endswith(".pyc")]
            if len(paths) > _MOST_FILES:
                raise NotCheckedError(f"holds more than {_MOST_FILES} files", where=str(folder))
        digests = _digests(folder, paths)
        return Checkout(commit=UNKNOWN, files=len(digests), sha256=content_digest(digests))


def _walk(folder: Path) -> Iterable[tuple[Path, list[str], list[str]]]:
    return ((Path(top), folders, files) for top, folders, files in os.walk(folder))


def top_of(folder: Path) -> Path | None:
    """The top of the git working tree that a folder lies in; None where it lies in none."""
    for each in (folder, *folder.parents):
        if (each / ".git").exists():
            return each
    return None


def _digests(folder: Path, paths: list[str]) -> dict[str, str]:
    """sha256 of every plain file by path; a link, a submodule and what is gone say so instead."""

    def one(path: str) -> str:
        try:
            return hash_file(folder / path)[0]
        except UnsafeInputError:
            return "no plain file"
        except OSError as error:
            target = folder / path
            return f"link to {target.readlink()}" if target.is_symlink() else f"unreadable: {error.strerror}"

    with ThreadPoolExecutor(workers_here(), thread_name_prefix="checkout") as pool:
        found = dict(zip(paths, pool.map(one, paths), strict=True))
    return {
        path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"): digest.encode(
            "utf-8", "surrogateescape"
        ).decode("utf-8", "backslashreplace")
        for path, digest in found.items()
    }


def _remote(top: Path, git_dir: Path) -> str | None:
    """The address of `origin`, without a user name or password; None where it is none that another machine reaches."""
    from reproducer.git.running import ask

    said = ask(
        ["config", "--get", "remote.origin.url"], folder=top, git_dir=git_dir, what="asking for its remote", where=""
    )
    return public_git_url(said.out.decode("utf-8", "replace").strip()) if said.status == 0 else None


def public_git_url(text: str) -> str | None:
    """A git address as a lock may carry it; None where it cannot."""
    if match := re.fullmatch(r"([A-Za-z0-9_.-]+)@([A-Za-z0-9.-]+):(?!/)([^\s]+)", text):
        text = f"ssh://{match[1]}@{match[2]}/{match[3]}"
    try:
        parts = urlsplit(text)
        if parts.scheme in ("http", "https") and parts.username is not None:
            text = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        return git_url(text)
    except ValueError:
        return None


def folder_of(direct_url: Mapping[str, Any] | None) -> Path | None:
    """The folder that an editable distribution is read from (PEP 610); None for one that is installed."""
    if direct_url is None:
        return None
    info, url = direct_url.get("dir_info"), direct_url.get("url")
    if not (isinstance(info, dict) and info.get("editable") is True and isinstance(url, str)):
        return None
    parts = urlsplit(url)
    path = unquote(parts.path)
    return Path(path) if parts.scheme == "file" and path.startswith("/") and "\0" not in path else None


def origin_of(direct_url: Mapping[str, Any] | None) -> Origin | None:
    """What an installer noted, without what only its machine knows; None where it noted nothing that can be read."""
    if direct_url is None:
        return None
    url = direct_url.get("url")
    text = url if isinstance(url, str) else ""
    vcs, archive = direct_url.get("vcs_info"), direct_url.get("archive_info")
    try:
        if isinstance(vcs, dict):
            commit = vcs.get("commit_id")
            known = commit if isinstance(commit, str) and _COMMIT.fullmatch(commit) else None
            return Origin(kind="git", url=public_git_url(text.removeprefix("git+")), commit=known)
        if isinstance(archive, dict):
            hashes = archive.get("hashes")
            stated = hashes.get("sha256") if isinstance(hashes, dict) else None
            if stated is None and isinstance(old := archive.get("hash"), str):
                stated = old.removeprefix("sha256=")
            known = stated if isinstance(stated, str) and _SHA256.fullmatch(stated) else None
            return Origin(kind="archive", url=_public(text), sha256=known)
        return Origin(kind="folder")
    except ValidationError:
        return Origin(kind="folder")


def _public(url: str) -> str | None:
    """The address of an archive without user name, query and fragment; None for one on a disk."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host or not url.isprintable():
        return None
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def package_folders(project: Path) -> tuple[Path, ...]:
    """Where the packages of a project's folder may lie."""
    return (project, project / "src", project / "python")

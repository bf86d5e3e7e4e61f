"""Folders that are built once a key, sealed with a list of their files, and checked against it before use."""

import json
import secrets
from contextlib import ExitStack
from pathlib import Path

from reproducer.canonical import canonical_bytes
from reproducer.documents.base import FileReference, shown
from reproducer.documents.built import TreeDigest
from reproducer.errors import DriftError, UsageError
from reproducer.progress import Reporter
from reproducer.store.durable import sync_file, sync_folder, sync_tree
from reproducer.store.faults import writing
from reproducer.store.hashing import LinkReference, hash_tree, tree_digest
from reproducer.store.layout import private_folder

SEAL_FORMAT = "penny-seal/1"
_NAMED = 5


class Entry:
    """One folder of the store, held by this process alone while it is open.

    Attributes:
        folder: the final place of the content.
    """

    def __init__(self, root: Path, kind: str, key: str, *, reporter: Reporter, scope: ExitStack) -> None:
        self._root = root
        self._place = root / "entries" / kind / key
        self._name = f"{kind}-{key}"
        self._reporter = reporter
        self._scope = scope
        self._work: Path | None = None
        self.folder = self._place / "content"

    @property
    def complete(self) -> bool:
        """Whether a sealed folder is there; `check` says whether it still is what was sealed."""
        return (self._place / "seal.json").is_file() and self.folder.is_dir()

    @property
    def work(self) -> Path:
        """A fresh private folder on the same disk, made on first use; `commit` moves it to `folder`."""
        if self._work is None:
            holder = self._scope.enter_context(private_folder(self._root))
            self._work = holder / "entry" / "content"
            with writing(self._root, what="a private folder"):
                self._work.mkdir(parents=True)
        return self._work

    def commit(self) -> None:
        """Seal the work folder and put it in its place, whole or not at all.

        Raises:
            UsageError: nothing was built.
            UnsafeInputError: it holds devices, sockets, pipes or names that no document carries.
            NotCheckedError: the disk is full or cannot be written.
        """
        if self._work is None:
            raise UsageError("nothing was built for this entry", where=str(self._place))
        holder = self._work.parent
        seal = _seal_bytes(hash_tree(self._work, reporter=self._reporter))
        with writing(self._root, what=f"the seal of {self._name}", needed=len(seal)):
            (holder / "seal.json").write_bytes(seal)
            sync_tree(holder)
            sync_file(holder / "seal.json")
            self._place.parent.mkdir(parents=True, exist_ok=True)
            if self._place.is_symlink() or self._place.exists():
                self._place.rename(holder.with_name("replaced"))
            holder.rename(self._place)
            sync_folder(self._place.parent)
        self._work = None

    def check(self) -> TreeDigest:
        """Hash every file again and compare with the seal.

        Raises:
            DriftError: a file is missing, changed or not sealed, or the seal cannot be read. The folder is set aside:
                the entry is no longer complete and can be built again.
        """
        try:
            sealed = json.loads((self._place / "seal.json").read_bytes())
            files, links = dict(sealed["files"]), dict(sealed["links"])
            known = sealed["format"] == SEAL_FORMAT
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._damaged(f"its seal cannot be read: {error}") from error
        if not known:
            raise self._damaged(f"its seal has the format {shown(sealed['format'])}")
        if self._place.is_symlink() or self.folder.is_symlink():
            raise self._damaged("it is a symbolic link")
        there = hash_tree(self.folder, reporter=self._reporter)
        got_files, got_links = _as_data(there)
        if got_files == files and got_links == links:
            return tree_digest(there)
        raise self._damaged(_differences({**files, **links}, {**got_files, **got_links}))

    def _damaged(self, why: str) -> DriftError:
        aside = self._root / "damaged" / f"{self._name}-{secrets.token_hex(4)}"
        with writing(self._root, what="the damaged folder"):
            if self._place.is_symlink() or self._place.exists():
                self._place.rename(aside)
        return DriftError(
            "a folder of the store is not what was sealed",
            where=str(self.folder),
            why=why,
            todo=f"it was set aside as {aside}; it is built again when it is needed",
        )


def _as_data(files: dict[str, FileReference]) -> tuple[dict[str, object], dict[str, object]]:
    """Files as {path: [sha256, size]} and links as {path: target}."""
    regular: dict[str, object] = {}
    links: dict[str, object] = {}
    for path, reference in files.items():
        if isinstance(reference, LinkReference):
            links[path] = reference.target
        else:
            regular[path] = [reference.sha256, reference.size]
    return regular, links


def _seal_bytes(files: dict[str, FileReference]) -> bytes:
    regular, links = _as_data(files)
    return canonical_bytes({"format": SEAL_FORMAT, "files": regular, "links": links})


def _differences(sealed: dict[str, object], there: dict[str, object]) -> str:
    """The first few differing paths, with expected and got."""
    lines = []
    for path in sorted(sealed.keys() | there.keys()):
        before, after = sealed.get(path), there.get(path)
        if before != after:
            lines.append(f"{shown(path)}: expected {_shown_state(before)}, got {_shown_state(after)}")
    more = f"; and {len(lines) - _NAMED} more" if len(lines) > _NAMED else ""
    return "; ".join(lines[:_NAMED]) + more


def _shown_state(state: object) -> str:
    if state is None:
        return "no such file"
    if isinstance(state, list):
        return f"sha256 {state[0]} of {state[1]} bytes"
    return f"a link to {shown(state)}"

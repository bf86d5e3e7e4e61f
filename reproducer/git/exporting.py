"""One commit as a source tree in a folder, with its submodules: every object is hashed while it is written.

Nothing is checked out, so nothing of `.gitattributes` is heeded: what is written are the bytes that the tree's hash
names.
"""

from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from reproducer.archives.tree_writer import DEFAULT_LIMITS, Limits, TreeWriter
from reproducer.documents.base import shown
from reproducer.documents.sources import GitSource, Submodule
from reproducer.errors import DriftError, UnsafeInputError
from reproducer.git.changes import changed_tree
from reproducer.git.mirrors import Mirror
from reproducer.git.objects import Objects, objects
from reproducer.git.trees import LINK, SUBMODULE, Leaf, leaves

if TYPE_CHECKING:
    from reproducer.store import Store

_LONGEST_TARGET = 4096


def export(
    source: GitSource,
    store: "Store",
    folder: Path,
    *,
    changes: bytes | None,
    where: str,
    epoch: int,
    limits: Limits = DEFAULT_LIMITS,
) -> None:
    """Write the source tree of a lock's git source.

    Args:
        source: commit, tree and submodules.
        store: its mirrors have them.
        folder: is made; must not exist.
        changes: the bytes of the source's `changes`.
        where: the component, for errors.
        epoch: time of everything that is written, in seconds.
        limits: how large it may become.

    Raises:
        DriftError: an object is missing or damaged, a tree or submodule is not the one that the lock names, the changes
            do not apply.
        UnsafeInputError: names, links or sizes that no source tree has.
    """
    folder.mkdir(parents=True)
    writer = TreeWriter(folder, where=where, epoch=epoch, limits=limits, allowed=limits.total)
    modules = {each.path: each for each in source.submodules}
    export = _Export(store, writer, modules, where, limits)
    mirror = _mirror(store, source, where)
    with objects(mirror.folder) as there:
        _same_tree(there, source, where)
    if changes is None:
        export.repository(mirror.folder, source.tree, PurePosixPath())
    else:
        with store.private_folder() as work:
            changed = changed_tree(work / "changed.git", mirror, source, changes, where=where)
            export.repository(work / "changed.git", changed, PurePosixPath())
    if left := modules.keys() - export.visited:
        raise DriftError(f"the lock names the submodule {shown(min(left))}, and its parent has none there", where=where)
    writer.finish()


@dataclass
class _Export:
    """The state of one export: where to, and which submodules were met."""

    store: "Store"
    writer: TreeWriter
    modules: dict[str, Submodule]
    where: str
    limits: Limits
    visited: set[str] = field(default_factory=set)

    def repository(self, git_dir: Path, tree: str, at: PurePosixPath) -> None:
        """Write one tree below a path, and the trees of its submodules below theirs."""
        inner: list[tuple[PurePosixPath, Submodule]] = []
        with objects(git_dir) as there:
            for leaf in leaves(there, tree, where=self.where, limits=self.limits):
                path = at / leaf.path
                if leaf.kind == SUBMODULE:
                    inner.append((path, self._module(path, leaf)))
                    self.writer.directory(path)
                elif leaf.kind == LINK:
                    self.writer.symlink(path, self._target(there, leaf, path))
                else:
                    blob = there.open(leaf.oid, "blob")
                    self.writer.file(path, blob, blob.size, executable=leaf.executable)
                    blob.finish()
        for path, module in inner:
            mirror = _mirror(self.store, module, self.where)
            with objects(mirror.folder) as there:
                _same_tree(there, module, f"{self.where}, submodule {module.path}")
            self.repository(mirror.folder, module.tree, path)

    def _module(self, path: PurePosixPath, leaf: Leaf) -> Submodule:
        module = self.modules.get(str(path))
        if module is None or module.commit != leaf.oid:
            named = "it names none there" if module is None else f"it names {module.commit}"
            raise DriftError(
                f"submodule {shown(str(path))} is commit {leaf.oid}",
                where=self.where,
                why=f"that is not the lock's: {named}",
            )
        self.visited.add(module.path)
        return module

    def _target(self, there: Objects, leaf: Leaf, path: PurePosixPath) -> str:
        try:
            target = there.read(leaf.oid, "blob", limit=_LONGEST_TARGET).decode("utf-8")
        except UnicodeDecodeError as error:
            raise UnsafeInputError(f"the link {shown(str(path))} is not UTF-8", where=self.where) from error
        if "\0" in target:
            raise UnsafeInputError(f"the link {shown(str(path))} holds a NUL", where=self.where)
        return target


def _mirror(store: "Store", pinned: GitSource | Submodule, where: str) -> Mirror:
    mirror = Mirror.of(store, pinned.url, pinned.commit)
    if not mirror.has(pinned.commit):
        raise DriftError(f"commit {pinned.commit} is not in the store", where=where, todo="run `penny fetch`")
    return mirror


def _same_tree(there: Objects, pinned: GitSource | Submodule, where: str) -> None:
    """A label is no content: the commit's own object says which tree it has."""
    tree = there.tree_of(pinned.commit)
    if tree != pinned.tree:
        raise DriftError(
            f"commit {pinned.commit} has another tree than the lock says",
            where=where,
            why=f"expected {pinned.tree}, got {tree}",
            todo="lock again: one of the two was changed by hand",
        )

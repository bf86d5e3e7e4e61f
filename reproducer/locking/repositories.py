"""Git sources of a lock: a branch, tag or commit of a manifest becomes one commit with its tree, and stays it.

The commit that is locked is kept as long as the manifest asks for the same; `--upgrade NAME` asks the repository anew.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from reproducer.documents.base import shown
from reproducer.documents.lock import Component
from reproducer.documents.manifest import GitRequest
from reproducer.documents.sources import GitSource
from reproducer.errors import DriftError, InvalidDocumentError
from reproducer.git.addresses import Address, address
from reproducer.git.changes import WorkingTree, changes_of, clean_submodule, paths_of, working_tree
from reproducer.git.contents import Contents, Reading, checked_out
from reproducer.git.obtaining import fetch_source
from reproducer.git.references import Resolved, checked, is_commit, resolve
from reproducer.git.references import asked as asked_digest
from reproducer.locking.environments import EVERYTHING
from reproducer.locking.files import reference
from reproducer.locking.making import EXPECTED, Making

if TYPE_CHECKING:
    from reproducer.documents.base import FileReference
    from reproducer.git.mirrors import Form

_NAMED = 5
_WRITTEN = ("*.lock.toml", "pylock.toml", "pylock.*.toml")


@dataclass(frozen=True)
class Repositories:
    """The git sources of one manifest."""

    making: Making

    def source(self, name: str, asked: GitRequest, files: dict[str, bytes]) -> GitSource:
        """A component's commit; changes beside it go to `files`.

        Raises:
            DriftError: no such repository, branch, tag, commit or submodule; says what is there. A working tree holds
                changes, and the manifest does not ask for them.
            UnsafeInputError: an address, name or tree that could do more than be read.
            NotCheckedError: the repository cannot be reached.
        """
        making = self.making
        place = self._address(name, asked)
        before = self._kept(name, asked, place)
        if place.path is not None and not place.is_here:
            return self._absent(before, asked, place, files, name)
        if before is not None:
            commit, held = before.commit, Contents(before.tree, before.submodules, before.lfs)
            if making.check:
                self._still(before, asked, place, name)
        else:
            commit = self._resolved(name, asked, place).commit
            form: Form = "outline" if making.check else "whole"
            held = self._reading(form).contents(place, commit, where=name)
        if held.lfs:
            making.reporter.note(
                f"{name}: {len(held.lfs)} files are Git LFS pointers, and the build sees the pointers: "
                + _some(tuple(each.path for each in held.lfs))
            )
        source = GitSource(
            url=place.url,
            asked=asked_digest(asked.ref),
            commit=commit,
            tree=held.tree,
            subfolder=asked.subfolder,
            submodules=held.submodules,
            lfs=held.lfs,
        )
        return source.model_copy(update={"changes": self._changes(name, asked, place, source, files)})

    def fetched(self, component: Component) -> None:
        """Have every commit of a component's source in the store; raises as `source`."""
        request = next(each for each in self.making.manifest.components if each.name == component.name)
        if isinstance(component.source, GitSource) and isinstance(request.source, GitRequest):
            place = self._address(component.name, request.source)
            via = (place,) if place.is_here else ()
            fetch_source(component.source, component.name, self._reading("whole"), via)

    def _address(self, name: str, asked: GitRequest) -> Address:
        where = f"{self.making.where}: component {name}"
        checked(asked.ref, where=where)
        return address(asked.url, root=self.making.root, where=where)

    def _reading(self, form: "Form") -> Reading:
        making = self.making
        return Reading(making.artefacts.store, making.reporter, making.offline, form)

    def _kept(self, name: str, asked: GitRequest, place: Address) -> GitSource | None:
        """The commit of the lock that is there, where the manifest asks for the same."""
        before = self._before(name)
        if before is None or {EVERYTHING, name} & self.making.upgrade:
            return None
        same = before.url == place.url and before.asked == asked_digest(asked.ref)
        return before if same and (before.asked is not None or before.commit == asked.ref) else None

    def _before(self, name: str) -> GitSource | None:
        before = self.making.previous.component(name)
        return before.source if before is not None and isinstance(before.source, GitSource) else None

    def _resolved(self, name: str, asked: GitRequest, place: Address) -> Resolved:
        making = self.making
        where = f"{making.where}: component {name}"
        if making.offline and place.url is not None and not is_commit(asked.ref):
            raise self._not_asked(asked, place, where)
        found = resolve(place, asked.ref, folder=making.root, where=where)
        before = self._before(name)
        same = before is not None and before.asked == asked_digest(asked.ref) and before.url == place.url
        if before is not None and same and found.kind == "tag" and before.commit != found.commit:
            making.reporter.note(f"{name}: {_moved(asked.ref, before.commit, found.commit)}")
        return found

    def _not_asked(self, asked: GitRequest, place: Address, where: str) -> Exception:
        from reproducer.errors import NotCheckedError

        return NotCheckedError(
            f"which commit {shown(asked.ref)} of {place} is cannot be asked",
            where=where,
            why="--offline touches no network",
            todo="lock with a network, or name the full commit",
        )

    def _still(self, before: GitSource, asked: GitRequest, place: Address, name: str) -> None:
        """Say where the manifest's name no longer means the locked commit, though it must: a tag does not move."""
        making = self.making
        if before.asked is None:
            return
        if making.offline and place.url is not None:
            making.reporter.note(
                f"{name}: whether {shown(asked.ref)} still is the locked commit was not asked: --offline"
            )
            return
        key = f"components[{name}].source.commit"
        try:
            found = resolve(place, asked.ref, folder=making.root, where=making.where)
        except DriftError as error:
            making.pending.append(f"{key}: {error}")
            return
        if found.commit == before.commit:
            return
        if found.kind == "tag":
            making.pending.append(f"{key}: {_moved(asked.ref, before.commit, found.commit)}")
        else:
            making.reporter.note(
                f"{name}: {asked.ref} is at {found.commit[:12]} now; the lock keeps {before.commit[:12]}, "
                f"`penny lock --upgrade {name}` takes it anew"
            )

    def _absent(
        self, before: GitSource | None, asked: GitRequest, place: Address, files: dict[str, bytes], name: str
    ) -> GitSource:
        """A repository on another machine: what the lock says of it stays, and nothing is learnt of it here."""
        making = self.making
        if before is None or asked.changes != (before.changes is not None):
            raise DriftError(
                f"there is no repository at {place}",
                where=f"{making.where}: component {name}",
                todo="correct `url`: it is an address, `file://`, or a path relative to the lock's folder",
            )
        if before.changes is not None:
            data = making.previous.bytes_of(before.changes)
            if data is None:
                raise DriftError(f"{before.changes.path} is not the file that the lock pins", where=name)
            files[before.changes.path] = data
        making.reporter.note(f"{name}: there is no repository at {place}; what the lock says of it is kept")
        return before.model_copy(update={"subfolder": asked.subfolder})

    def _changes(
        self, name: str, asked: GitRequest, place: Address, source: GitSource, files: dict[str, bytes]
    ) -> "FileReference | None":
        """What the working tree of a repository on this machine holds beside the commit."""
        where = f"{self.making.where}: component {name}"
        tree = None if place.path is None else working_tree(place.path)
        if tree is None:
            if asked.changes:
                raise InvalidDocumentError(f"{place} has no working tree, so it has no changes", where=where)
            return None
        if tree.commit != source.commit:
            if asked.changes:
                raise DriftError(
                    f"the working tree is at commit {tree.commit}, and {shown(asked.ref)} is locked as {source.commit}",
                    where=where,
                    todo=f"check that one out, or run `penny lock --upgrade {name}`",
                )
            return None
        patch = self._patch(name, place, tree, source)
        if patch is None:
            return None
        paths = paths_of(patch)
        if not asked.changes:
            raise DriftError(
                f"the working tree of {place} holds changes that its commit does not: {_some(paths)}",
                where=where,
                todo="commit them, take them away, or say `changes = true` in the manifest to lock them as a patch",
            )
        path = f"{EXPECTED}/{name}.changes.patch"
        files[path] = self.making.fresh[path] = patch
        self.making.reporter.note(
            f"{name}: locked as commit {source.commit[:12]} and what lies beside it in the working tree: {_some(paths)}"
        )
        return reference(path, patch)

    def _patch(self, name: str, place: Address, tree: WorkingTree, source: GitSource) -> bytes | None:
        """The changes, after looking that no submodule holds any."""
        reading = self._reading("whole")
        mirror = reading.mirrored(source.url, source.commit, (place,), where=name)
        with self.making.artefacts.store.private_folder() as work:
            for number, module in enumerate(source.submodules):
                for beside in checked_out(place, module.path):
                    own = reading.mirrored(module.url, module.commit, (beside, *_of(module.url)), where=name)
                    folder = Path(str(beside.path))
                    clean_submodule(folder, module, own, work / f"submodule-{number}", where=name)
            return changes_of(tree, mirror, work / "changes.git", where=name, left_out=self._own(tree))

    def _own(self, tree: WorkingTree) -> Callable[[str], bool]:
        """Which files of a working tree a lock in it writes itself: they would change with every lock."""
        try:
            below = self.making.root.resolve().relative_to(tree.path.resolve())
        except ValueError:
            return lambda _path: False

        def own(path: str) -> bool:
            file = PurePosixPath(path)
            if file.is_relative_to(below / EXPECTED):
                return True
            return file.parent == PurePosixPath(below) and any(file.match(each) for each in _WRITTEN)

        return own


def _moved(ref: str, before: str, after: str) -> str:
    return f"the tag {shown(ref)} was moved: the lock has {before}, the tag is {after} now"


def _of(url: str | None) -> tuple[Address, ...]:
    return () if url is None else (Address(url=url),)


def _some(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(map(shown, paths[:_NAMED])) + more

"""Every source of a lock, asked for and not transferred: is it still there, and does it cover this platform."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from reproducer.doctor.checks import Checked
from reproducer.documents.lock import Checkpoint, Component, Environment
from reproducer.documents.opened import OpenedLock
from reproducer.documents.sources import Artefact, FolderSource, GitSource, HubSource, LocalSource
from reproducer.errors import PennyError
from reproducer.fetch.probing import Finding, probe
from reproducer.fetch.pylock import read_pylock, select

if TYPE_CHECKING:
    from reproducer.documents.verdict import Status
    from reproducer.fetch.indexes import Indexes
    from reproducer.fetch.obtain import Choices
    from reproducer.progress import Reporter
    from reproducer.store import Store

_OFFLINE = "--offline touches no network"
_TODO = "name an index that has it (PIP_INDEX_URL, PIP_FIND_LINKS, UV_INDEX), or lock again"
_LOST = "keep your store, or put the file where others can have it: nobody without it can build this lock"


@dataclass(frozen=True)
class Sources:
    """The sources of one lock as this user reaches them.

    Attributes:
        store: what lies there is needed from nobody.
        indexes: the user's.
        reporter: is shown progress.
        offline: ask nobody.
    """

    opened: OpenedLock
    store: "Store"
    indexes: "Indexes"
    reporter: "Reporter"
    offline: bool

    def checks(self) -> Iterator[Checked]:
        """Components, environments with each package that is not there any more, checkpoints."""
        lock = self.opened.lock
        for component in lock.components:
            yield self._component(component)
        for environment in lock.environments:
            yield from self._environment(environment)
        for checkpoint in lock.checkpoints:
            yield self._checkpoint(checkpoint)

    def _component(self, component: Component) -> Checked:
        source, ident = component.source, f"source.component.{component.name}"
        if isinstance(source, LocalSource):
            return self._beside(ident, source)
        if self.offline:
            return self._skipped(ident, stored=isinstance(source, Artefact) and self._stored(source))
        if isinstance(source, GitSource):
            return self._git(ident, component.name, source)
        return self._one(ident, source)

    def _checkpoint(self, checkpoint: Checkpoint) -> Checked:
        source, ident = checkpoint.source, f"source.checkpoint.{checkpoint.name}"
        if isinstance(source, FolderSource):
            return Checked(id=ident, status="skipped", reason="a folder that whoever has it names")
        if self.offline:
            return self._skipped(ident, stored=isinstance(source, Artefact) and self._stored(source))
        if isinstance(source, HubSource):
            return self._hub(ident, source)
        if isinstance(source, Artefact):
            return self._one(ident, source)
        assert_never(source)

    def _beside(self, ident: str, source: LocalSource) -> Checked:
        """A source tree beside the lock: every file is what the lock says."""
        try:
            for file in source.files:
                self.opened.read(file.model_copy(update={"path": f"{source.path}/{file.path}"}))
        except PennyError as error:
            return Checked(
                id=ident, status="failed", needed=True, reason=str(error), todo="restore the file from the repository"
            )
        return Checked(id=ident, status="passed", needed=True, got=f"{len(source.files)} files beside the lock")

    def _environment(self, environment: Environment) -> Iterator[Checked]:
        ident, lock = f"source.environment.{environment.name}", self.opened.lock
        try:
            where = environment.pylock.path
            needs = select(
                read_pylock(self.opened.read(environment.pylock), where=where), lock.toolchain.python, lock.platform
            )
        except PennyError as error:
            todo = error.todo or "restore the file, or lock again"
            yield Checked(id=ident, status="failed", needed=True, reason=error.why or str(error), todo=todo)
            return
        missing = [choices for choices in needs if not any(self._stored(each) for each in choices)]
        if self.offline:
            yield self._skipped(ident, stored=not missing, what=f"{len(needs)} packages")
            return
        found = self._probed(needs, environment.indexes)
        there = [each for each in found if each.state == "there"]
        lost = [self._told(f"source.package.{each.artefact.project}", each) for each in found if each.state != "there"]
        needed = [check for check in lost if check.needed]
        status: Status = "passed" if not lost else _worst(needed or lost)
        yield Checked(
            id=ident,
            status=status,
            needed=not lost or bool(needed),
            expected=f"{len(needs)} packages for this platform",
            got=f"{len(there)} of {len(needs)} packages are on your indexes",
            reason="" if not lost else ", ".join(check.id.removeprefix("source.package.") for check in lost),
            todo="" if not lost else "see each package",
        )
        yield from lost

    def _one(self, ident: str, source: Artefact) -> Checked:
        hints = tuple(url for each in self.opened.lock.environments for url in each.indexes)
        (found,) = self._probed([(source,)], hints)
        return self._told(ident, found)

    def _probed(self, needs: "Sequence[Choices]", hints: Sequence[str]) -> tuple[Finding, ...]:
        return probe(needs, indexes=self.indexes.with_hints(hints), reporter=self.reporter)

    def _told(self, ident: str, found: Finding) -> Checked:
        """What an index says; needed from it is only what does not lie in the store."""
        stored = self._stored(found.artefact)
        name = found.artefact.filename
        if found.state == "there":
            return Checked(id=ident, status="passed", needed=not stored, expected=name, got=f"{name} from {found.said}")
        kept = "; it is in the store" if stored else ""
        return Checked(
            id=ident,
            status="unknown" if found.state == "unknown" else "failed",
            needed=not stored,
            expected=name,
            got=kept.removeprefix("; "),
            reason=f"{name}: {found.said}{kept}",
            todo=_LOST if stored else _TODO,
        )

    def _git(self, ident: str, component: str, source: GitSource) -> Checked:
        """The commit; and the tag of the manifest, where that names another commit by now."""
        from reproducer.git.mirrors import Mirror
        from reproducer.git.probing import probe as ask

        found = ask(source, store=self.store, ref=self._references().get(component))
        held = Mirror.of(self.store, source.url, source.commit).has(source.commit)
        made = _asked(ident, found.status, found.detail, found.todo)
        return made.model_copy(update={"needed": not held and found.status != "moved"})

    def _references(self) -> dict[str, str]:
        """What the manifest names of each repository; nothing where there is no manifest any more."""
        from reproducer.documents.manifest import GitRequest, Manifest
        from reproducer.documents.toml import read_document

        path = self.opened.lock.manifest
        if path is None:
            return {}
        try:
            manifest = read_document(Manifest, self.opened.folder / path, what="manifest")
        except PennyError:
            return {}
        asked = {each.name: each.source for each in manifest.components}
        return {name: source.ref for name, source in asked.items() if isinstance(source, GitRequest)}

    def _hub(self, ident: str, source: HubSource) -> Checked:
        from reproducer.hub.probing import probe as ask

        found = ask(source, reporter=self.reporter)
        return _asked(ident, found.state, found.said, found.todo)

    def _stored(self, artefact: Artefact) -> bool:
        return self.store.blob_path(artefact.sha256).is_file()

    def _skipped(self, ident: str, *, stored: bool, what: str = "") -> Checked:
        there = "it is in the store" if stored else "it is not in the store"
        return Checked(id=ident, status="skipped", got=what, reason=f"{_OFFLINE}; {there}")


def _asked(ident: str, state: str, said: str, todo: str) -> Checked:
    """What a hub or a repository says."""
    nobody_says = state in ("unknown", "unreachable")
    status: Status = "passed" if state == "there" else "unknown" if nobody_says else "failed"
    there = status == "passed"
    return Checked(
        id=ident, status=status, needed=True, got=said if there else "", reason="" if there else said, todo=todo
    )


def _worst(checks: Sequence[Checked]) -> "Status":
    return "failed" if any(check.status == "failed" for check in checks) else "unknown"

"""What everything that goes into a lock is made with: the manifest, the lock that was there, indexes and a workshop."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from reproducer.build.workshop import Workshop
from reproducer.documents.base import FileReference
from reproducer.documents.lock import Build, Environment, Toolchain
from reproducer.documents.manifest import Manifest
from reproducer.documents.opened import read_reference
from reproducer.documents.sources import Artefact
from reproducer.errors import UsageError
from reproducer.locking.environments import EVERYTHING
from reproducer.locking.previous import Previous

if TYPE_CHECKING:
    from reproducer.locking.artefacts import Artefacts
    from reproducer.progress import Reporter

EXPECTED = "runtime/expected"
Packages = Mapping[str, tuple[Artefact, ...]]


@dataclass(frozen=True)
class Making:
    """One manifest on its way to a lock.

    Attributes:
        root: the lock's folder.
        where: the manifest, for errors.
        environments: those that are resolved, with their packages, by name.
        accepted: that other people's code is run.
        check: make nothing; what would have to be made goes to `pending`.
        pending: what a lock would have to learn by making it.
        fresh: files beside the lock that are not written yet and that building needs, by path.
    """

    manifest: Manifest
    root: Path
    where: str
    previous: Previous
    artefacts: "Artefacts"
    reporter: "Reporter"
    accepted: bool
    offline: bool
    upgrade: frozenset[str]
    check: bool = False
    environments: dict[str, tuple[Environment, Packages]] = field(default_factory=dict)
    pending: list[str] = field(default_factory=list)
    fresh: dict[str, bytes] = field(default_factory=dict)

    @property
    def recipe(self) -> Build:
        """What every build step shares."""
        return Build(source_date_epoch=self.manifest.build.source_date_epoch)

    @property
    def toolchain(self) -> Toolchain:
        """The Python, the compiler and the CUDA toolkit."""
        asked = self.manifest
        tools = dict(sorted(asked.tools.items())) if asked.tools else None
        return Toolchain(
            python=asked.python, compiler=asked.compiler, cuda=asked.cuda, driver=asked.driver, tools=tools
        )

    @property
    def workshop(self) -> Workshop:
        """Where components are built and checkpoints converted."""
        return Workshop(
            self.artefacts.store,
            self.manifest.platform,
            self.toolchain,
            self.recipe,
            self.read,
            self.reporter,
            self.offline,
        )

    @property
    def everything(self) -> bool:
        """Whether nothing of the lock that is there may be kept."""
        return EVERYTHING in self.upgrade

    def kept(self, old: Artefact | None, project: str) -> Artefact | None:
        """The file of a project that the lock has, unless it is to be taken anew."""
        return None if {EVERYTHING, project} & self.upgrade else old

    def locked(self, environment: str) -> Environment:
        """An environment that is resolved."""
        return self.environments[environment][0]

    def same_workshop(self, environment: str | None) -> bool:
        """Whether things made in an environment (None: in no one) would be made as those of the lock were."""
        there = None if environment is None else self.locked(environment)
        return self.previous.same_workshop(self.recipe, self.toolchain, there)

    def tools(self, environment: str | None) -> tuple[Artefact, ...]:
        """The wheels of an environment, all of them in the store; none of no environment."""
        return () if environment is None else self.artefacts.chosen(*self.environments[environment])

    def read(self, file: FileReference) -> bytes:
        """The verified bytes of a file of the lock, one that is new to it included."""
        return self.fresh[file.path] if file.path in self.fresh else read_reference(self.root, file, where=self.where)

    def accept(self, what: str) -> None:
        """Go on where running other people's code was accepted.

        Raises:
            UsageError: it was not.
        """
        if not self.accepted:
            raise UsageError(f"{what} runs other people's code", todo="pass --yes to accept it")

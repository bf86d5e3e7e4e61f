"""A workbench for components that are no wheels: sources in a folder, a store, and builds in folders of their own."""

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproducer.build.files import BuiltFiles
from reproducer.build.workshop import Workshop
from reproducer.documents.base import FileReference
from reproducer.documents.lock import Build, Component, FileOutput, Toolchain
from reproducer.documents.opened import read_reference
from reproducer.documents.sources import Artefact, LocalSource
from reproducer.host import host_platform
from reproducer.progress import Silent
from reproducer.store import Store

EPOCH = 1704067200
MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
LIBRARY = """\
#include <cstdio>
namespace { int calls; }
extern "C" int answer() { return ++calls; }
extern "C" const char *place() { return __FILE__; }
"""


@dataclass(frozen=True)
class Bench:
    """One folder with the sources of a component, and a store."""

    folder: Path
    environment: tuple[Artefact, ...] = ()

    @property
    def store(self) -> Store:
        """The store."""
        return Store(self.folder / "store")

    @property
    def workshop(self) -> Workshop:
        """What everything is made with."""
        return Workshop(
            self.store,
            host_platform(),
            Toolchain(python=MINOR, compiler="unknown"),
            Build(source_date_epoch=EPOCH),
            lambda file: read_reference(self.folder, file, where="the lock"),
            Silent(),
            offline=True,
        )

    def component(self, kind: Any, files: Mapping[str, str], **said: Any) -> Component:
        """A component with these sources."""
        for name, text in files.items():
            path = self.folder / "native" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        listed = tuple(
            FileReference(path=name, sha256=hashlib.sha256(text.encode()).hexdigest(), size=len(text.encode()))
            for name, text in sorted(files.items())
        )
        source = LocalSource(path="native", files=listed)
        return Component(name="native", kind=kind, source=source, outputs=(), **said)

    def build(self, component: Component, name: str = "work") -> BuiltFiles:
        """Build in a folder of that name, whatever was built before."""
        work = self.folder / name
        work.mkdir(parents=True)
        return self.workshop.build_files(component, self.environment, work)

    def twice(self, component: Component) -> tuple[tuple[FileOutput, ...], tuple[FileOutput, ...]]:
        """What two builds in two folders give."""
        return self.build(component, "a").outputs, self.build(component, "elsewhere/and/deeper").outputs


def names(outputs: tuple[FileOutput, ...]) -> list[str]:
    """The paths of outputs."""
    return [each.filename for each in outputs]

"""Where a build happens: under one path on every machine, so that no path of a machine reaches what comes out.

Compilers write paths into debug information and derive names of symbols from them (nvcc does for everything in an
anonymous namespace). So a build sees its work folder mounted below a folder that every machine has and no build needs.
Where the kernel allows no mounts, it sees the folder where it is.

A second build is to show what the first one cannot: it sees another path of another length and another host name, and
as many steps run at once as did not before. What the lock's recipe fixes (umask, locale, SOURCE_DATE_EPOCH, no network)
stays, for those are inputs.
"""

import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reproducer.binaries.wheel_content import BUILD_PATH
from reproducer.errors import NotCheckedError, RebuildError
from reproducer.isolation.running import run_isolated, scrubbed

_POINTS = tuple(Path(each, "penny-build") for each in ("/mnt", "/srv", "/media"))
_AGAIN = "penny-builds-once-more"
_PLAIN = re.compile(r"^[A-Za-z0-9_/.+-]+$")


@dataclass(frozen=True)
class Seen:
    """A work folder as a build sees it.

    Attributes:
        work: the folder.
        point: the path that it is seen under; the folder's own where nothing can be mounted.
        again: whether it is that of a second build.
    """

    work: Path
    point: Path
    again: bool = False

    @property
    def host(self) -> str | None:
        """The host name that the build sees, where the kernel can give it one; None for the machine's."""
        return _AGAIN if self.again else None

    def jobs(self, usual: int) -> int:
        """How many steps run at once."""
        return (1 if usual > 1 else 2) if self.again else usual

    @property
    def mounted(self) -> Path | None:
        """The path that the folder must be mounted at; None where it is seen as it is."""
        return None if self.point == self.work else self.point

    def path(self, name: str) -> Path:
        """A path below the work folder, as the build sees it."""
        return self.point / name

    def inside(self, path: Path) -> Path:
        """What the build sees a path below the work folder under."""
        return self.point / path.relative_to(self.work)

    def outside(self, seen: Path) -> Path:
        """The path of what the build sees under `seen`."""
        return self.work / seen.relative_to(self.point)

    @property
    def flags(self) -> tuple[str, ...]:
        """What keeps the path out of what GCC and Clang write; nothing where a compiler would misread the path."""
        if not _PLAIN.match(str(self.point)):
            return ()
        return (f"-ffile-prefix-map={self.point}={BUILD_PATH.decode()}",)


def seen_folder(work: Path, needed: Sequence[Path], *, again: bool = False) -> Seen:
    """A work folder under the first path that hides nothing that is needed and that the kernel lets it be mounted at.

    Args:
        work: the folder, resolved.
        needed: paths that a build reads outside of it, such as its tools.
        again: for a second build.
    """
    kept = [work, *needed, *(each.resolve() for each in needed), Path(sys.executable).resolve(), Path(sys.prefix)]
    for point in _POINTS:
        hidden = point.parent
        if hidden.is_dir() and not hidden.is_symlink() and not any(each.is_relative_to(hidden) for each in kept):
            chosen = hidden / _AGAIN if again else point
            return Seen(work, chosen if _can_be_mounted(work, chosen) else work, again)
    return Seen(work, work, again)


def _can_be_mounted(work: Path, point: Path) -> bool:
    """Whether a step sees the work folder under the other path, by letting one look."""
    with tempfile.TemporaryDirectory(prefix="look-", dir=work) as folder:
        home = Path(folder)
        look = f"import os, sys; sys.exit(not os.path.isdir({str(point / home.name)!r}))"
        try:
            run_isolated(
                [sys.executable, "-I", "-S", "-c", look],
                cwd=home,
                env=scrubbed(home=home, epoch=0),
                writable=[work],
                log=home / "look.log",
                what="looking where a build can happen",
                mounted=point,
            )
        except (RebuildError, NotCheckedError):
            return False
    return True

"""The programs that a build needs: where they are found, and which version each says it is.

They come from the wheels of the build environment where it has them, otherwise from the machine. The standard places of
the machine count before the rest of the user's `PATH`, on which other environments may lie.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from reproducer.build.kinds import Program
from reproducer.documents.base import shown
from reproducer.documents.lock import Component
from reproducer.errors import DriftError, NotCheckedError
from reproducer.isolation.running import SYSTEM_PATH

CUDA = "/usr/local/cuda/bin"
UNKNOWN = "unknown"
_LONGEST_VERSION = 200
_NVCC_LINES = ("release ", "Build ")


@dataclass(frozen=True)
class Found:
    """The programs of one build by role, and the folders that a step's `PATH` begins with so that they are found."""

    paths: Mapping[str, Path]
    folders: tuple[Path, ...]


def find(programs: Iterable[Program], *, environment: Path | None, where: str) -> Found:
    """Find the programs.

    Args:
        programs: what a kind asks for.
        environment: the `bin` folder of the build environment; None without one.
        where: the component, for errors.

    Raises:
        NotCheckedError: a program that is needed is nowhere; names them all.
    """
    user = os.environ.get("PATH", "").split(os.pathsep)
    places = [*([environment] if environment else []), *map(Path, (*SYSTEM_PATH.split(":"), CUDA))]
    places += [Path(each) for each in user if each.startswith("/")]
    paths: dict[str, Path] = {}
    missing = []
    for program in programs:
        found = next((each / program.spelt for each in places if _is_program(each / program.spelt)), None)
        if found is not None:
            paths.setdefault(program.role, found)
        elif program.needed:
            missing.append(program.spelt)
    if missing:
        raise NotCheckedError(
            f"cannot be built without {', '.join(map(shown, missing))}",
            where=where,
            why="neither the build environment nor the machine has it",
            todo="add it to the component's build environment and lock again, or install it",
        )
    standard = {Path(each) for each in SYSTEM_PATH.split(":")}
    folders = dict.fromkeys(each.parent for each in paths.values() if each.parent not in standard)
    return Found(paths, (*([environment] if environment else []), *(each for each in folders if each != environment)))


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def version_in(role: str, said: bytes) -> str:
    """The version in what a program printed: its first line, of nvcc the release and the build."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    if role == "nvcc":
        lines = ["; ".join(line for line in lines if any(word in line for word in _NVCC_LINES))]
    text = "".join(character for character in (lines or [""])[0] if character.isprintable())
    return text[:_LONGEST_VERSION] or UNKNOWN


def compare_tools(component: Component, got: Mapping[str, str]) -> None:
    """Hold the programs of this machine against those the lock was made with.

    Raises:
        DriftError: another version, one that is missing or one more: names each with expected and got.
    """
    expected = component.tools
    if expected is None:
        return
    faults = [
        f"{role}: expected {shown(expected.get(role, 'none'))}, got {shown(got.get(role, 'none'))}"
        for role in sorted({*expected, *got})
        if expected.get(role) != got.get(role)
    ]
    if faults:
        raise DriftError(
            "the programs of this machine are not those the lock was made with",
            where=f"components.{component.name}, key tools",
            why="; ".join(faults),
            todo=f"install those or add them to the build environment; "
            f"`penny lock --upgrade {component.name}` takes the ones that are here",
        )

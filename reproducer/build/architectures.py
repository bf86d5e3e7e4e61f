"""What device code is built for: held against what was asked for, and against the device that is to run it.

Machine code (`sm_90`) runs on devices of its own major version and at least its minor one; with `f` on those of its
family, with `a` on that very device only. PTX (`compute_90`) is compiled by the driver for any later device, unless it
has one of those letters. Tegra devices and others do not run each other's machine code.
"""

import re
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from reproducer.archives.members import zip_members
from reproducer.binaries.fatbin import architectures_of, in_order
from reproducer.documents.base import shown
from reproducer.documents.lock import Component, FileOutput, Lock
from reproducer.errors import InvalidDocumentError, RebuildError, UnsafeInputError

Architectures = tuple[str, ...] | None
_ARCHITECTURE = re.compile(r"^(sm|compute)_([0-9]{1,2})([0-9])([af]?)$")
_CAPABILITY = re.compile(r"^([0-9]{1,2})\.([0-9])$")
_TEGRA = frozenset({(5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0)})
_MAGIC = (b"\x7fELF", b"!<arch>\n", b"\x50\xed\x55\xba")
_MOST_NAMED = 8


def runs_on(architecture: str, capability: str) -> bool:
    """Whether device code for an architecture runs on a device of a compute capability such as `9.0`.

    Raises:
        InvalidDocumentError: one of them is none.
    """
    built, device = _ARCHITECTURE.match(architecture), _CAPABILITY.match(capability)
    if built is None or device is None:
        raise InvalidDocumentError(f"{shown(architecture if built is None else capability)} is no architecture")
    of_code, of_device = (int(built[2]), int(built[3])), (int(device[1]), int(device[2]))
    if built[4] == "a":
        return of_code == of_device
    if built[1] == "compute" and not built[4]:
        return of_code <= of_device
    if built[1] == "sm" and (of_code in _TEGRA or of_device in _TEGRA):
        return of_code == of_device
    return of_code[0] == of_device[0] and of_code[1] <= of_device[1]


def unfit(libraries: Mapping[str, Architectures], capability: str) -> tuple[str, ...]:
    """The libraries with device code of which none runs on a device, each with what it is built for."""
    return tuple(
        f"{name}: built for {', '.join(built) or 'nothing'}, and the device is {capability}"
        for name, built in sorted(libraries.items())
        if built is not None and not any(runs_on(each, capability) for each in built)
    )


def unfit_outputs(lock: Lock, capability: str) -> tuple[str, ...]:
    """The outputs of a lock's components that a device of a compute capability cannot run, as `unfit` says it."""
    libraries = {
        f"{component.name}/{output.filename}": output.architectures
        for component in lock.components
        for output in component.outputs
    }
    return unfit(libraries, capability)


def together(each: Iterable[Architectures]) -> tuple[str, ...]:
    """The architectures of several files, each once."""
    return in_order({name for architectures in each for name in architectures or ()})


def contradiction(component: Component, got: Sequence[Architectures]) -> str:
    """How the device code of a component's outputs is not what the component asks for; empty where it is."""
    asked = component.architectures
    if asked is None:
        return ""
    found = together(got)
    missing = [name for name in in_order(set(asked)) if name not in found]
    extra = [name for name in found if name not in asked]
    said = [f"no device code for {', '.join(missing)}"] if missing else []
    said += [f"device code for {', '.join(extra)}, which is not asked for"] if extra else []
    return "; ".join(said)


def check_asked(component: Component, outputs: Mapping[str, Architectures]) -> None:
    """Refuse outputs whose device code is for other architectures than the component asks for.

    Raises:
        RebuildError: names what is missing or too much, and what each output is built for.
    """
    if said := contradiction(component, list(outputs.values())):
        built = [f"{name}: {', '.join(each)}" for name, each in sorted(outputs.items()) if each is not None]
        more = f" and {len(built) - _MOST_NAMED} more" if len(built) > _MOST_NAMED else ""
        raise RebuildError(
            f"the build of {component.name} holds {said}",
            why=("; ".join(built[:_MOST_NAMED]) + more) or "none of its outputs has device code",
            todo="name in `architectures` what its options and variables compile for, and the other way round",
        )


def of_files(outputs: Iterable[FileOutput]) -> dict[str, Architectures]:
    """The architectures of outputs by file name."""
    return {each.filename: each.architectures for each in outputs}


def of_wheel(wheel: Path) -> Architectures:
    """What the device code in a wheel's libraries is built for; None where it has none.

    Raises:
        UnsafeInputError: the wheel or the headers of a library in it lie.
    """
    found: list[tuple[str, ...]] = []
    try:
        with zipfile.ZipFile(wheel) as packed, tempfile.TemporaryDirectory(dir=wheel.parent) as folder:
            for member in zip_members(packed, where=wheel.name):
                if member.is_dir():
                    continue
                with packed.open(member) as source:
                    start = source.read(8)
                    if not start.startswith(_MAGIC):
                        continue
                    copy = Path(folder, "member")
                    with copy.open("wb") as target:
                        target.write(start)
                        while piece := source.read(1 << 20):
                            target.write(piece)
                built = architectures_of(copy)
                if built is not None:
                    found.append(built)
    except (zipfile.BadZipFile, EOFError, OSError, ValueError) as error:
        raise UnsafeInputError("is no wheel that can be read", where=wheel.name, why=str(error)) from error
    return together(found) if found else None

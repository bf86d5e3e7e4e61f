"""Device code in the libraries of a built runtime against the GPUs of this machine: what was built for others dies."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from reproducer.doctor.checks import Checked
from reproducer.doctor.gpu import needs_gpu
from reproducer.doctor.runtime import built_interpreter
from reproducer.errors import PennyError
from reproducer.gpus import look

if TYPE_CHECKING:
    from reproducer.documents.opened import OpenedLock
    from reproducer.progress import Reporter
    from reproducer.store import Store

_ARCHITECTURE = re.compile(r"^(sm|compute)_([0-9]{1,3})([0-9])([af]?)$")
_LIBRARY = re.compile(r"\.so(\.[0-9]+)*$|\.cubin$|\.fatbin$")
_MOST_NAMED = 20


def check_libraries(opened: "OpenedLock", store: "Store", *, reporter: "Reporter") -> tuple[Checked, ...]:
    """Each library whose device code no GPU here can run; one check where all can.

    Args:
        opened: the lock.
        store: where its runtime lies, if it is built.
        reporter: is shown progress.
    """
    ident, lock = "runtime.libraries", opened.lock
    if not needs_gpu(lock):
        return (Checked(id=ident, status="skipped", reason="the lock names no NVIDIA GPU"),)
    cards = look()
    capabilities = sorted({card.compute_capability for card in cards.found if card.compute_capability is not None})
    if not capabilities:
        return (Checked(id=ident, status="skipped", reason=f"no GPU to compare with: {cards.fault}"),)
    try:
        python = built_interpreter(opened, store, reporter=reporter)
    except PennyError as error:
        return (Checked(id=ident, status="failed", needed=True, reason=str(error), todo="run `penny build`"),)
    if python is None:
        return (Checked(id=ident, status="skipped", reason="the runtime is not built yet", todo="run `penny build`"),)
    return tuple(compared(_libraries(python.parents[1]), capabilities))


def compared(libraries: Iterable[tuple[str, Path]], capabilities: Iterable[str]) -> Iterator[Checked]:
    """The device code of libraries against compute capabilities.

    Args:
        libraries: name to show and file.
        capabilities: of the GPUs that are here, such as `12.0`.
    """
    wanted, with_code, bad, unread = tuple(capabilities), 0, [], []
    for name, path in libraries:
        try:
            architectures = _architectures(path)
        except PennyError as error:
            unread.append((name, str(error.what)))
            continue
        if not architectures:
            continue
        with_code += 1
        lacking = [each for each in wanted if not any(runs_on(one, each) for one in architectures)]
        if lacking:
            bad.append((name, architectures, lacking))
    expected = f"device code for compute capability {', '.join(wanted)}"
    yield Checked(
        id="runtime.libraries",
        status="failed" if bad else "unknown" if unread else "passed",
        needed=True,
        expected=expected,
        got=f"{with_code - len(bad)} of {with_code} libraries with device code run here",
        reason=_why(len(bad), unread),
        todo="build for this GPU, or use one that they were built for" if bad else "",
    )
    for name, architectures, lacking in bad[:_MOST_NAMED]:
        yield Checked(
            id=f"runtime.library.{name}",
            status="failed",
            needed=True,
            expected=f"device code for compute capability {', '.join(lacking)}",
            got=", ".join(architectures),
            reason="nothing in it runs on this GPU",
            todo="build it for this GPU: add the architecture to its component",
        )


def runs_on(architecture: str, capability: str) -> bool:
    """Whether code for an architecture runs on a GPU of a compute capability.

    Machine code (`sm_`) runs on the same major version and no older minor one; an intermediate form (`compute_`) is
    compiled by the driver for anything as new or newer. With `a` it is for exactly one capability, with `f` for the
    newer ones of the same major version.
    """
    found = _ARCHITECTURE.match(architecture)
    major_text, _, minor_text = capability.partition(".")
    if found is None or not (major_text.isdigit() and minor_text.isdigit()):
        return False
    built, here = (int(found[2]), int(found[3])), (int(major_text), int(minor_text))
    if found[4] == "a":
        return here == built
    if found[1] == "sm" or found[4] == "f":
        return here[0] == built[0] and here[1] >= built[1]
    return here >= built


def _libraries(environment: Path) -> Iterator[tuple[str, Path]]:
    """Every library below an environment, by its path in it; links are not followed."""
    for path in sorted(environment.rglob("*")):
        if _LIBRARY.search(path.name) and path.is_file() and not path.is_symlink():
            yield path.relative_to(environment).as_posix(), path


def _architectures(path: Path) -> tuple[str, ...]:
    from reproducer.binaries.fatbin import architectures_of

    return architectures_of(path) or ()


def _why(bad: int, unread: list[tuple[str, str]]) -> str:
    said = [f"{bad} libraries hold no code that runs here"] if bad else []
    if unread:
        name, why = unread[0]
        more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
        said.append(f"{name}{more} cannot be read ({why})")
    return "; ".join(said)

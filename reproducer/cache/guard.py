"""What happens in a namespace between a server's turn and its start: the lock is noted and sealed pages are checked."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reproducer.cache.check import check
from reproducer.cache.folders import open_kv, open_namespace
from reproducer.cache.known import note_lock
from reproducer.cache.model import Checked
from reproducer.cache.sealing import seal
from reproducer.cache.use import holder
from reproducer.documents.opened import OpenedLock
from reproducer.identity.namespace import Namespace
from reproducer.identity.policy import Policy
from reproducer.identity.root import open_root
from reproducer.progress import Reporter


def prepare_namespace(
    kv: Path, namespace: Namespace, opened: OpenedLock, policy: Policy, *, reporter: Reporter
) -> Checked:
    """Make the namespace of a launch ready, while the launch holds its turn.

    The root is opened once more: it may have been collected before the turn was taken. Damaged pages are set aside and
    told; the server then misses them.

    Raises:
        NotCheckedError: the seal does not hold, so nobody can say what the pages are.
        PennyError: as `open_root`.
    """
    open_root(kv, namespace)
    with open_kv(kv) as handle, open_namespace(kv, handle, namespace.name) as root:
        note_lock(root.path, root.handle, opened, policy)
        said = check(root, running=False, reporter=reporter)
    if said.damaged or said.beside:
        files = said.damaged + said.beside
        reporter.note(
            f"{said.damaged} sealed pages of {namespace.name} are damaged: {files} files are set aside and missed, "
            f"see {said.record}"
        )
    elif said.sealed:
        reporter.detail(f"{said.good} sealed pages of {namespace.name} are what was sealed, {said.unsealed} unsealed")
    return said


@dataclass
class Ending:
    """How a launch goes on; `up` once its server is ready."""

    up: bool = False


@contextmanager
def sealed_at_end(kv: Path, name: str, *, wanted: bool, reporter: Reporter) -> Iterator[Ending]:
    """Seal the pages of a namespace after the server inside ended well or was ended by a person.

    A server that died, was refused or never came up is no reason to bless what lies there. A second interrupt ends
    sealing, and the seal of before holds.

    Raises:
        PennyError: as `seal`.
    """
    ending = Ending()
    try:
        yield ending
    except (Exception, GeneratorExit):
        raise
    except BaseException:  # Ctrl-C or SIGTERM: the usual end of a server
        if wanted and ending.up:
            _seal(kv, name, reporter)
        raise
    if wanted:
        _seal(kv, name, reporter)


def _seal(kv: Path, name: str, reporter: Reporter) -> None:
    with open_kv(kv) as handle, open_namespace(kv, handle, name) as root:
        said = seal(root, running=holder(handle, name) is not None, reporter=reporter)
    damaged = f", {said.damaged} damaged ones were not" if said.damaged else ""
    reporter.note(f"{said.pages - said.damaged} pages of {name} are sealed{damaged}")

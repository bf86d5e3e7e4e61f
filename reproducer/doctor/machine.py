"""The host as checks: what penny needs, and what a lock's toolchain, checkpoints and launch need of a machine."""

import ctypes
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from reproducer.doctor.checks import Checked
from reproducer.doctor.gpu import check_gpu, needs_gpu
from reproducer.doctor.room import check_rooms
from reproducer.doctor.toolchain import check_toolchain
from reproducer.documents.lock import Lock
from reproducer.documents.opened import OpenedLock
from reproducer.documents.sources import Artefact
from reproducer.errors import PennyError
from reproducer.gpus import look
from reproducer.host import host_facts, host_platform
from reproducer.store import Store
from reproducer.store.faults import free_bytes

_IO_URING_SETUP = 425
_SWITCH = Path("/proc/sys/kernel/io_uring_disabled")
_PATIENCE_S = 30
_ADOPTED = "the runtime is adopted: nothing is installed"
_NO_LOCK = "there is no lock to compare with"


def check_host(opened: OpenedLock | None, store: Store) -> tuple[Checked, ...]:
    """Every check of this host; without a lock those that compare with one are skipped.

    Args:
        opened: the lock.
        store: where penny keeps what it fetches and builds; it is only looked at.
    """
    lock = opened.lock if opened is not None else None
    return (
        _platform(lock, store),
        _kernel(),
        _memory(lock),
        _uv(lock),
        _python(opened, store),
        *check_toolchain(lock),
        *check_gpu(lock, look()),
        _io_uring(lock),
        *_store(lock, store),
        *check_rooms(opened, store),
    )


def _platform(lock: Lock | None, store: Store) -> Checked:
    facts = host_facts(store.root)
    got = f"{facts.platform}, {facts.cpu}, {facts.cpu_count} processors"
    if lock is None:
        return Checked(id="host.platform", status="skipped", got=got, reason=_NO_LOCK)
    same = lock.platform == host_platform()
    return Checked(
        id="host.platform",
        status="passed" if same else "failed",
        needed=True,
        expected=lock.platform,
        got=got,
        reason="" if same else "the lock is for another platform",
        todo="" if same else f"use a {lock.platform} machine, or lock again on this one",
    )


def _kernel() -> Checked:
    """Penny names its processes by pidfd, which kernels have since 5.3 and some sandboxes refuse."""
    release = os.uname().release.partition("-")[0]
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError) as error:
        return Checked(
            id="host.kernel",
            status="failed",
            needed=True,
            expected="pidfd_open, as Linux 5.3 and later have it",
            got=release,
            reason=str(error),
            todo="update the kernel, or allow pidfd_open in the container's seccomp profile",
        )
    return Checked(id="host.kernel", status="passed", needed=True, expected="pidfd_open", got=f"Linux {release}")


def _memory(lock: Lock | None) -> Checked:
    """The weights of a CPU and the pages that HiCache keeps in memory must fit; a server needs more than that."""
    available = _available_bytes()
    if lock is None:
        got = f"{available} bytes available" if available is not None else ""
        return Checked(id="host.memory", status="skipped", got=got, reason=_NO_LOCK)
    weights = 0 if needs_gpu(lock) else sum(file.size for each in lock.checkpoints for file in each.listed)
    pages = host_pages(lock)
    parts = [f"the {weights} bytes of the checkpoints"] if weights or not pages else []
    parts += [f"the {pages} bytes of pages that the launch keeps in memory"] if pages else []
    expected = f"more than {' and '.join(parts)}"
    if available is None:
        return Checked(id="host.memory", status="unknown", expected=expected, reason="/proc/meminfo says nothing of it")
    fits = available > weights + pages
    return Checked(
        id="host.memory",
        status="passed" if fits else "failed",
        expected=expected,
        got=f"{available} bytes available",
        reason="" if fits else f"{'the pages' if pages else 'the weights'} alone do not fit",
        todo="" if fits else "end other programs, or use a machine with more memory",
    )


def host_pages(lock: Lock) -> int:
    """Bytes of the KV pages that a launch keeps in the machine's memory, where it says how many."""
    size = lock.launch.arguments.get("hicache-size")
    counts = isinstance(size, int | float) and not isinstance(size, bool) and size > 0
    return int(size * 10**9) if counts and isinstance(size, int | float) else 0


def _available_bytes() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = [line.split() for line in lines if line.startswith("MemAvailable:")]
    return int(found[0][1]) * 1024 if found else None


def _uv(lock: Lock | None) -> Checked:
    from reproducer.build.environment import installer

    if lock is not None and lock.adopted is not None:
        return Checked(id="host.uv", status="skipped", reason=_ADOPTED)
    try:
        _, version = installer()
    except PennyError as error:
        return Checked(id="host.uv", status="failed", needed=True, reason=str(error.why or error), todo=error.todo)
    return Checked(id="host.uv", status="passed", needed=True, got=version)


def _python(opened: OpenedLock | None, store: Store) -> Checked:
    """Whether uv finds the interpreter of the runtime on this machine; it is not asked to fetch one."""
    if opened is None:
        return Checked(id="host.python", status="skipped", reason=_NO_LOCK)
    lock = opened.lock
    if lock.adopted is not None:
        return _adopted_python(opened, store)
    from reproducer.build.environment import installer

    wanted = lock.toolchain.python
    try:
        uv, _ = installer()
        command = [uv, "python", "find", "--no-project", "--offline", f"cpython@{wanted}"]
        ran = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_PATIENCE_S, cwd="/", check=False
        )
    except (PennyError, OSError, subprocess.SubprocessError) as error:
        return Checked(id="host.python", status="unknown", expected=f"Python {wanted}", reason=str(error)[:300])
    if ran.returncode == 0:
        return Checked(
            id="host.python",
            status="passed",
            expected=f"Python {wanted}",
            got=f"Python {wanted} at {_line(ran.stdout)}",
        )
    return Checked(
        id="host.python",
        status="unknown",
        expected=f"Python {wanted}",
        reason="it is not on this machine; with a network uv fetches it at the first build",
        todo=f"run `uv python install {wanted}` before building with --offline",
    )


def _adopted_python(opened: OpenedLock, store: Store) -> Checked:
    """The interpreter of a frozen runtime is where the freeze noted it, and of the same minor version."""
    from reproducer.freeze.installed import ask_interpreter
    from reproducer.freeze.places import noted

    wanted = opened.lock.toolchain.python
    todo = "name it with --python, or PENNY_PYTHON, when you launch"
    path = noted(store, opened.lock).python
    if path is None:
        reason = "where the adopted runtime lies was not noted in this store"
        return Checked(id="host.python", status="unknown", expected=f"Python {wanted}", reason=reason, todo=todo)
    try:
        found = ask_interpreter(path)
    except PennyError as error:
        reason = f"{path}: {error.what}"
        return Checked(
            id="host.python", status="failed", needed=True, expected=f"Python {wanted}", reason=reason, todo=todo
        )
    return Checked(
        id="host.python",
        status="passed" if found.minor == wanted else "failed",
        needed=True,
        expected=f"Python {wanted}",
        got=f"Python {found.version} at {path}",
        todo="" if found.minor == wanted else todo,
    )


def _io_uring(lock: Lock | None) -> Checked:
    """An io_uring is really set up: the kernel's switch, seccomp and the build of the kernel all have a say."""
    from reproducer.doctor.storage import needs_of

    needed = lock is not None and needs_of(lock).engine == "io_uring"
    try:
        switch = _SWITCH.read_text(encoding="ascii").strip()
    except OSError:
        switch = "absent"
    number = _io_uring_fault()
    if number == 0:
        got = f"set up; kernel.io_uring_disabled is {switch}"
        return Checked(id="host.io_uring", status="passed", needed=needed, expected="one can be set up", got=got)
    missing = number == errno.ENOSYS
    return Checked(
        id="host.io_uring",
        status="failed",
        needed=needed,
        expected="one can be set up",
        got=f"{os.strerror(number)}; kernel.io_uring_disabled is {switch}",
        reason="this kernel has no io_uring" if missing else "the kernel or a sandbox refuses io_uring",
        todo="sysctl kernel.io_uring_disabled=0 allows it to all; in a container its seccomp profile must too",
    )


def _io_uring_fault() -> int:
    """Set up an io_uring of one entry and close it again; the error number, 0 where it worked."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    parameters = ctypes.create_string_buffer(120)
    handle = libc.syscall(ctypes.c_long(_IO_URING_SETUP), ctypes.c_uint(1), parameters)
    if handle < 0:
        return ctypes.get_errno()
    os.close(handle)
    return 0


def _store(lock: Lock | None, store: Store) -> Iterator[Checked]:
    """Free disk under the store against what the lock says its own files take."""
    there = store.root
    while not there.exists() and there != there.parent:
        there = there.parent
    free = free_bytes(there)
    if lock is None:
        got = f"{free} bytes free" if free is not None else ""
        yield Checked(id="store.free", status="skipped", got=got, reason=_NO_LOCK)
        return
    wanted = _bytes_named(lock, store)
    expected = f"{wanted} bytes for sources and checkpoints that are not in the store yet; packages come on top"
    if free is None:
        yield Checked(id="store.free", status="unknown", expected=expected, reason="nobody says what is free")
        return
    enough = free >= wanted
    yield Checked(
        id="store.free",
        status="passed" if enough else "failed",
        needed=True,
        expected=expected,
        got=f"{free} bytes free",
        reason="" if enough else "the disk of the store is too full",
        todo="" if enough else "make room, or name a folder on another disk with --store or PENNY_STORE",
    )


def _bytes_named(lock: Lock, store: Store) -> int:
    """What sources, checkpoint wheels and checkpoint files take, without the blobs that are there."""
    sources = [*(each.source for each in lock.components), *(each.source for each in lock.checkpoints)]
    named = [source for source in sources if isinstance(source, Artefact)]
    missing = sum(each.size for each in named if not store.blob_path(each.sha256).exists())
    made = sum(file.size for checkpoint in lock.checkpoints if checkpoint.made for file in checkpoint.listed)
    return missing + (0 if (store.root / "entries" / "checkpoint").is_dir() else made)


def _line(text: str) -> str:
    """The first line of another program's output, short."""
    return (text.strip().splitlines() or [""])[0][:200]

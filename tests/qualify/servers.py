"""Boots of the stand-in server, and a lock whose suite is measured on it."""

import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reproducer.documents.base import FileReference
from reproducer.documents.built import HostFacts, Isolation, TreeDigest
from reproducer.documents.lock import ArgumentValue, Measure, Qualification, Scalar, Threshold
from reproducer.documents.opened import OpenedLock, open_lock
from reproducer.documents.receipts import Boot, BuildReceipt, FidelityReference, LaunchReceipt
from reproducer.launch.processes import boot_of, process

STAND_IN = Path(__file__).with_name("stand_in.py")
LOCK = Path(__file__).parents[1] / "data" / "documents" / "lock-1.toml"
NOTHING = "0" * 64
STORING: Mapping[str, ArgumentValue] = {
    "hicache-storage-backend": "nixl"
}  # what makes the kept lock's launch one with pages that outlive it
PLACED = {"SGLANG_HICACHE_NIXL_BACKEND_PLUGIN": "POSIX"}
UTC = "2026-01-01T00:00:00Z"


@dataclass(frozen=True)
class Booted:
    """A running stand-in, as `qualify` wants to see a server."""

    url: str
    pid: int
    receipt: LaunchReceipt
    child: "subprocess.Popen[bytes]"

    def alive(self) -> bool:
        """Whether it runs."""
        return self.child.poll() is None


@dataclass
class Boots:
    """Starts stand-ins one after the other over one storage folder.

    Attributes:
        options: options of `stand_in.py` for the first boot.
        later: those of all boots after it; the same where None.
        careless: whether a boot that differs from the lock takes the lock's storage all the same.
    """

    folder: Path
    options: Sequence[str] = ()
    later: Sequence[str] | None = None
    careless: bool = False
    receipts: list[LaunchReceipt] = field(default_factory=list)

    @contextmanager
    def boot(self, altered: Mapping[str, Scalar] | None = None) -> Iterator[Booted]:
        """One stand-in, gone when the context ends; one that differs has a storage of its own."""
        self.folder.mkdir(parents=True, exist_ok=True)
        port_file = self.folder / "port"
        port_file.unlink(missing_ok=True)
        options = self.options if self.later is None or not self.receipts else self.later
        storage = self.folder / ("storage" if altered is None or self.careless else "altered")
        arguments = [str(port_file), "--storage", str(storage), *options]
        with subprocess.Popen([sys.executable, str(STAND_IN), *arguments]) as child:
            try:
                deadline = time.monotonic() + 30
                while not port_file.exists():
                    assert child.poll() is None
                    assert time.monotonic() < deadline
                    time.sleep(0.01)
                found = process(child.pid)
                assert found is not None
                receipt = launch_receipt(boot_of(found, "stand-in"), altered)
                self.receipts.append(receipt)
                yield Booted(f"http://127.0.0.1:{port_file.read_text()}", child.pid, receipt, child)
            finally:
                with suppress(ProcessLookupError):
                    child.kill()


def launch_receipt(boot: Boot, altered: Mapping[str, Scalar] | None = None) -> LaunchReceipt:
    """The receipt of a start of the stand-in."""
    return LaunchReceipt(
        lock_digest=NOTHING,
        penny_version="0",
        created=UTC,
        build_receipt=NOTHING,
        boot=boot,
        namespace="stand-in",
        namespace_digest=NOTHING,
        altered=None if altered is None else dict(altered),
        arguments=(),
        environment={},
        effective=(),
        ready_ns=1,
        log_sha256=NOTHING,
        accepted="--yes",
    )


def build_receipt() -> BuildReceipt:
    """The receipt of a build that never was."""
    tree = TreeDigest(files=0, bytes=0, sha256=NOTHING)
    return BuildReceipt(
        lock_digest=NOTHING,
        penny_version="0",
        created=UTC,
        level="bytes-identical",
        outputs=(),
        packages=(),
        runtime=tree,
        checkpoints={"small": tree},
        python="3.11.7",
        installer="none",
        isolation=Isolation(network="none", umask="022", locale="C.UTF-8", source_date_epoch=0),
        host=HostFacts(
            platform="linux-x86_64",
            kernel="6",
            cpu="any",
            cpu_count=1,
            cpu_flags=(),
            memory_bytes=1,
            filesystem="any",
        ),
        accepted="--yes",
    )


def rate(events: tuple[tuple[int, int], ...]) -> float:
    """Tokens a second after the first, by when they came."""
    (began, first), *_, (ended, last) = events
    return (last - first) * 1e9 / (ended - began)


def suite(
    folder: Path,
    *measures: Measure,
    boots: int = 2,
    reference: FidelityReference | None = None,
    arguments: Mapping[str, ArgumentValue] = STORING,
) -> OpenedLock:
    """The kept lock with another suite and more arguments of its launch; the reference lies in `folder`."""
    lock = open_lock(LOCK).lock
    pinned = None
    if reference is not None:
        data = reference.canonical()
        (folder / "reference.json").write_bytes(data)
        pinned = FileReference(path="reference.json", sha256=hashlib.sha256(data).hexdigest(), size=len(data))
    qualification = Qualification(suite="default", boots=boots, reference=pinned, measures=measures)
    launch = lock.launch.model_copy(
        update={"arguments": lock.launch.arguments | dict(arguments), "environment": lock.launch.environment | PLACED}
    )
    changed = lock.model_copy(update={"qualification": qualification, "launch": launch})
    return OpenedLock(changed, folder / "penny.lock.toml")


def measure(
    name: str, *thresholds: tuple[str, Any, Any, str], repeats: int = 2, warmup: int = 0, **parameters: Scalar
) -> Measure:
    """One measure of a suite; a threshold is (value, comparator, bound, unit)."""
    bounds = tuple(
        Threshold(value=value, comparator=comparator, bound=bound, unit=unit)
        for value, comparator, bound, unit in thresholds
    )
    return Measure(id=name, repeats=repeats, warmup=warmup, parameters=parameters, thresholds=bounds)

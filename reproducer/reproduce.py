"""The whole way, from a lock to a signed bundle.

Each step takes up where an earlier run stopped and says what it reused.
"""

import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from reproducer.attest.bundle import write_bundle
from reproducer.attest.keys import signing_key
from reproducer.boots import Boots
from reproducer.build.runtime import build
from reproducer.canonical import content_digest
from reproducer.doctor.gpu import refuse_gpu
from reproducer.documents.opened import OpenedLock
from reproducer.documents.verdict import Check, Verdict
from reproducer.errors import NotCheckedError
from reproducer.fetch import fetch
from reproducer.identity.namespace import derive
from reproducer.launch.turn import end_all
from reproducer.ledger import AnyReceipt, Ledger, evidence_of
from reproducer.measures.apart import names
from reproducer.qualify.suite import qualify
from reproducer.runs import run_folder
from reproducer.trace.kept import TRACES, kept_traces
from reproducer.verify.bundle import verify_bundle
from reproducer.verify.receipts import verify_receipts

if TYPE_CHECKING:
    from reproducer.build.runtime import Runtime
    from reproducer.fetch.indexes import Indexes
    from reproducer.progress import Reporter
    from reproducer.store import Store

StepName = Literal["lock", "fetch", "build", "namespace", "launch", "qualify", "verify", "attest"]


@dataclass(frozen=True)
class Step:
    """One step as it ended; `detail` says what was done and what was reused."""

    name: StepName
    status: Literal["done", "reused", "failed"]
    seconds: float
    detail: str


@dataclass(frozen=True)
class Places:
    """Where things lie: the store, the parent of the namespaces, the signing key, the parent of the bundles."""

    store: "Store"
    kv: Path
    keys: Path | None
    evidence: Path


@dataclass(frozen=True)
class Adoption:
    """Where the runtime of a frozen lock lies: its interpreter, and the folders of its checkpoints by role."""

    python: Path | None = None
    folders: Mapping[str, Path] | None = None


@dataclass(frozen=True)
class Reproduction:
    """What came out: the verdict over the bundle as it was read back from the disk, and the bundle."""

    verdict: Verdict
    bundle: Path
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class _Work:
    """What a runtime is made from."""

    opened: OpenedLock
    places: Places
    reporter: "Reporter"
    accepted: Literal["asked", "--yes"]
    offline: bool


@dataclass
class _Walk:
    """The steps so far, told to the caller as they end."""

    tell: Callable[[Step], None]
    steps: list[Step] = field(default_factory=list)

    def ended(self, name: StepName, since: float, detail: str, *, reused: bool = False, failed: bool = False) -> None:
        status: Literal["done", "reused", "failed"] = "failed" if failed else "reused" if reused else "done"
        step = Step(name, status, time.monotonic() - since, detail)
        self.steps.append(step)
        self.tell(step)


def reproduce(
    opened: OpenedLock,
    places: Places,
    *,
    indexes: "Indexes",
    reporter: "Reporter",
    accepted: Literal["asked", "--yes"],
    offline: bool = False,
    port: int | None = None,
    tell: Callable[[Step], None] = lambda _: None,
    adoption: "Adoption | None" = None,
) -> Reproduction:
    """Fetch, build, derive the namespace, launch, qualify, verify and attest.

    Args:
        opened: the lock.
        places: where everything is read from and written to.
        indexes: the user's package indexes.
        reporter: where progress goes.
        accepted: how running other people's code was accepted.
        offline: touch no network.
        port: port of the server; a free one where None.
        tell: called with every step as it ends.
        adoption: where the runtime of a frozen lock lies, where that is not noted in the store.

    Raises:
        PennyError: a step could not be done; the next call takes up where this one stopped.
    """
    walk = _Walk(tell)
    since = time.monotonic()
    key = signing_key(places.keys)  # found out now, not after everything was measured
    _check_writable(places.evidence)
    refuse_gpu(opened.lock, where=str(opened.path))
    pinned = opened.check_files()
    walk.ended("lock", since, f"{opened.digest[:12]}, {pinned} pinned files are what it says", reused=True)

    work = _Work(opened, places, reporter, accepted, offline)
    if opened.lock.adopted is not None:
        runtime = _adopted(walk, work, adoption or Adoption())
    else:
        runtime = _built(walk, work, indexes)
    receipt = runtime.receipt

    since = time.monotonic()
    namespace = derive(opened.lock)
    walk.ended("namespace", since, namespace.name)

    ledger = Ledger.of(places.store.root, opened.digest)
    ledger.add(receipt)
    abandon = partial(end_all, reporter=reporter)
    with run_folder(places.store.root / "runs" / opened.digest, places.kv, abandon=abandon) as run:
        if run.resumed:
            reporter.note("an interrupted run is taken up where it stopped")
        boots = Boots(opened, runtime, namespace, run, port, reporter, accepted, ledger)
        since = time.monotonic()
        measures = qualify(
            opened, receipt, boots.boot, workspace=run.folder / "samples", reporter=reporter, keep=ledger.keep
        )
        for measure in measures:
            ledger.add(measure)
        walk.ended("launch", time.monotonic() - boots.seconds, boots.told())
        told = zip(names((each.measure, each.parameters) for each in measures), measures, strict=True)
        failed = [name for name, measure in told if measure.status == "failed"]
        detail = f"{len(measures)} measures, " + (f"failed: {', '.join(failed)}" if failed else "all within thresholds")
        walk.ended("qualify", since + boots.seconds, detail, failed=bool(failed))

        since = time.monotonic()
        receipts = evidence_of(ledger, measures)
        checks = verify_receipts(opened, receipts)
        walk.ended("verify", since, _counted(checks), failed=any(check.status == "failed" for check in checks))

        since = time.monotonic()
        bundle = bundle_folder(places.evidence, opened, receipts)
        traces = kept_traces(ledger.folder / TRACES, receipts)
        write_bundle(bundle, opened, receipts, key, checks, traces=traces)
        verdict = verify_bundle(bundle, key.public)
        walk.ended("attest", since, f"signed by key {key.public.key_id[:12]}, read back: {verdict.word}")
    return Reproduction(verdict, bundle, tuple(walk.steps))


def _built(walk: _Walk, work: _Work, indexes: "Indexes") -> "Runtime":
    """The runtime, fetched and built."""
    since = time.monotonic()
    store, reporter = work.places.store, work.reporter
    fetched = fetch(work.opened, store, indexes=indexes, reporter=reporter, offline=work.offline)
    detail = f"{len(fetched.artefacts)} files, {fetched.downloaded / 1e6:.0f} MB new, {fetched.reused} from the store"
    walk.ended("fetch", since, detail, reused=fetched.downloaded == 0)
    since = time.monotonic()
    runtime = build(work.opened, store, fetched, reporter=reporter, accepted=work.accepted, offline=work.offline)
    receipt = runtime.receipt
    what = "files" if runtime.components else "wheels"
    detail = f"{len(receipt.outputs)} {what} {receipt.level}, {len(receipt.packages)} packages"
    walk.ended("build", since, detail, reused=runtime.reused, failed=not receipt.is_the_locks)
    return runtime


def _adopted(walk: _Walk, work: _Work, adoption: Adoption) -> "Runtime":
    """The runtime of a frozen lock: nothing is fetched or built, and the step says so."""
    from reproducer.freeze.adopting import adopt

    since = time.monotonic()
    runtime = adopt(
        work.opened,
        work.places.store,
        reporter=work.reporter,
        accepted=work.accepted,
        python=adoption.python,
        folders=adoption.folders,
        offline=work.offline,
    )
    found = runtime.receipt.adopted
    detail = f"adopted and not rebuilt: {found.distributions if found else 0} distributions are what was frozen"
    walk.ended("build", since, detail, reused=True)
    return runtime


def _check_writable(evidence: Path) -> None:
    """Refuse a folder that no bundle can be written to; nothing is left in it.

    Raises:
        NotCheckedError: it is no folder, or no file can be made in it.
    """
    try:
        evidence.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=evidence):
            pass
    except OSError as error:
        raise NotCheckedError(
            "no bundle can be written here",
            where=str(evidence),
            why=error.strerror or str(error),
            todo="name another folder with --evidence",
        ) from error


def _counted(checks: tuple[Check, ...]) -> str:
    counts = {
        status: sum(check.status == status for check in checks) for status in ("passed", "failed", "skipped", "unknown")
    }
    return ", ".join(f"{count} {status}" for status, count in counts.items() if count) + " checks"


def bundle_folder(evidence: Path, opened: OpenedLock, receipts: tuple[AnyReceipt, ...]) -> Path:
    """A new folder for a bundle: below the lock's name, by the time of the last receipt and a digest of them all."""
    stamp = max(receipt.created for receipt in receipts).replace("-", "").replace(":", "")
    digest = content_digest(sorted(receipt.digest for receipt in receipts))
    return evidence / opened.lock.name / f"{stamp}-{digest[:12]}"

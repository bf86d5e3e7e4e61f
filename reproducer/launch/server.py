"""The server of a lock: started, proven to be the right one before any traffic, and ended with all that it started."""

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import reproducer
from reproducer.documents.lock import Scalar
from reproducer.documents.opened import OpenedLock
from reproducer.documents.receipts import LaunchReceipt
from reproducer.engines.alteration import altered as alter
from reproducer.errors import NotCheckedError
from reproducer.identity.resolved import agree
from reproducer.launch.disk import check_direct_io, check_io_uring
from reproducer.launch.effective import check, compared
from reproducer.launch.plan import NamespaceLike, Plan, RuntimeLike, choose_private, plan
from reproducer.launch.ports import HOST, held_port
from reproducer.launch.processes import Process, boot_of, living, machine_boot
from reproducer.launch.readiness import died, server_info, wait_until_ready
from reproducer.launch.records import HasRoot, ServerRecord, record_path, servers, stop, write_record
from reproducer.launch.sources import check_sources
from reproducer.launch.startup_log import create_log, read_head
from reproducer.launch.supervised import GRACE_S, Order, Supervised, supervise
from reproducer.launch.supervisor import remove_folder
from reproducer.launch.turn import Turn, take_turn
from reproducer.progress import Reporter

__all__ = ["Server", "ServerRecord", "new_log", "running", "servers", "start_detached", "stop"]

Accepted = Literal["asked", "--yes"]
_FOREVER_S = 3600.0


@dataclass(frozen=True)
class Server:
    """A server that is ready and whose effective values are those of its lock."""

    url: str
    port: int
    pid: int
    log: Path
    receipt: LaunchReceipt
    _plan: Plan
    _supervised: Supervised
    _process: Process

    def alive(self) -> bool:
        """Whether its process still runs."""
        return self._process.alive()

    def wait(self) -> None:
        """Wait until the server ends by itself.

        Raises:
            NotCheckedError: it ended with an error.
        """
        while not self._supervised.ended(_FOREVER_S):
            pass
        if self._supervised.exit_status() != 0:
            raise died(self._supervised, self._plan, "the server died")


def new_log(store: HasRoot) -> Path:
    """A path for the log of one server below the store."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    return store.root / "logs" / f"server-{stamp}-{secrets.token_hex(4)}.log"


@contextmanager
def running(
    opened: OpenedLock,
    runtime: RuntimeLike,
    namespace_root: Path,
    namespace: NamespaceLike,
    *,
    port: int | None = None,
    log: Path,
    reporter: Reporter,
    accepted: Accepted,
    grace_s: float = GRACE_S,
    prepare: Callable[[], object] = lambda: None,
    altered: Mapping[str, Scalar] | None = None,
) -> Iterator[Server]:
    """A server that runs while the context is open. However the context or penny ends, no process is left.

    Args:
        opened: the lock.
        runtime: what the lock's build gave.
        namespace_root: the folder of the namespace; one server at a time, others wait.
        namespace: the namespace's name and digest.
        port: where it listens; a free one where None.
        log: where standard output and error go.
        reporter: where progress goes.
        accepted: how running other people's code was accepted.
        grace_s: how long the server may take to end when asked, before it is killed.
        prepare: called when nobody else runs in the namespace, before the server starts.
        altered: effective values in which the server is to differ from the lock; the namespace is that of the lock with
            these.

    Raises:
        NotCheckedError: port taken, disk without O_DIRECT, server died or never ready, or it died while in use.
        EffectiveDifferenceError: the server's effective values are not the lock's; it was stopped before any traffic.
        InvalidDocumentError, UnsafeInputError, DriftError: as `plan`.
    """
    launch = _Launch(
        opened, runtime, namespace_root, namespace, port, log, reporter, accepted, grace_s, prepare, altered=altered
    )
    with launch.started() as server:
        try:
            yield server
        except Exception as error:
            if not isinstance(error, NotCheckedError) and launch.died_by_itself():
                raise died(launch.supervised, launch.plan, "the server died while it was in use") from error
            raise


def start_detached(
    opened: OpenedLock,
    runtime: RuntimeLike,
    namespace_root: Path,
    namespace: NamespaceLike,
    *,
    store: HasRoot,
    port: int | None = None,
    log: Path,
    reporter: Reporter,
    accepted: Accepted,
    grace_s: float = GRACE_S,
    prepare: Callable[[], object] = lambda: None,
) -> Server:
    """A server that outlives penny; `servers` lists it and `stop` ends it. Arguments and errors as `running`."""
    launch = _Launch(opened, runtime, namespace_root, namespace, port, log, reporter, accepted, grace_s, prepare, store)
    with launch.started(detach=True) as server:
        return server


@dataclass
class _Launch:
    """One launch, from its plan to its end."""

    opened: OpenedLock
    runtime: RuntimeLike
    namespace_root: Path
    namespace: NamespaceLike
    port: int | None
    log: Path
    reporter: Reporter
    accepted: Accepted
    grace_s: float
    prepare: Callable[[], object]
    store: HasRoot | None = None
    altered: Mapping[str, Scalar] | None = None

    def __post_init__(self) -> None:
        opened = self.opened
        if self.altered is not None:
            opened = replace(opened, lock=alter(opened.lock, self.altered))
        self.plan = plan(opened, self.runtime, self.namespace_root)
        self.supervised: Supervised

    def died_by_itself(self) -> bool:
        """Whether the server ended although nobody asked it to; a connection error may come first."""
        return self.supervised.ended(0.2)

    @contextmanager
    def started(self, *, detach: bool = False) -> Iterator[Server]:
        """The checked server; it ends with the context, or lives on where `detach` is set and nothing went wrong."""
        if self.plan.engine.wants_direct_io(self.plan.launch):
            check_direct_io(self.namespace_root)
        if self.plan.engine.wants_io_uring(self.plan.launch):
            check_io_uring()
        with ExitStack() as stack:
            port = stack.enter_context(held_port(self.port))
            ending = stack.enter_context(ExitStack())
            turn = take_turn(self.namespace_root, reporter=self.reporter)
            ending.callback(turn.release)
            self.prepare()
            self.supervised = self._supervise(turn, port, detach=detach)
            ending.callback(self._end)
            server = self._checked(port)
            if detach:
                self._detach(port)
                ending.pop_all()
                turn.hand_over()
            yield server

    def _supervise(self, turn: Turn, port: int, *, detach: bool) -> Supervised:
        """Start the supervisor with the server under it; it holds the turn as well from then on."""
        private, log = choose_private(), None
        try:
            url = f"http://{HOST}:{port}"
            facts = {"token": private.token, "log": str(self.log.absolute())}
            turn.describe(pid=os.getpid(), url=url, detached=detach, **facts)
            private.make()
            log = create_log(self.log, private.token)
            record = record_path(self.store, private.token) if self.store is not None else None
            order = Order(
                argv=self.plan.argv(port),
                environment=self.plan.variables(private),
                cwd=private.cwd,
                log=log,
                log_path=self.log.absolute(),
                private=private.folder,
                token=private.token,
                turn=turn.path,
                turn_handle=turn.handle,
                record=record,
                grace_s=self.grace_s,
            )
            return supervise(order)
        except BaseException:
            remove_folder(str(private.folder))
            raise
        finally:
            if log is not None:
                os.close(log)

    def _checked(self, port: int) -> Server:
        """Wait until the server is ready and compare its effective values, before any traffic of ours."""
        supervised = self.supervised
        process = supervised.server
        if process is None:
            raise NotCheckedError("the server did not start", where=str(self.log))
        ready_ns = wait_until_ready(supervised, self.plan, port, reporter=self.reporter)
        text, log_sha256 = read_head(self.log)
        observed = self.plan.engine.observed_effective(
            server_info(supervised, self.plan, port), text, self.plan.checkpoint_config, self.plan.values
        )
        effective = compared(self.plan.launch.effective, observed)
        check(effective, where=str(self.opened.path))
        self._check_sources()
        open_ones = self.plan.engine.machine_resolved - self.plan.launch.effective.keys()
        agree(self.namespace_root, {name: observed[name].value for name in sorted(open_ones & observed.keys())})
        receipt = LaunchReceipt(
            lock_digest=self.opened.digest,
            penny_version=reproducer.__version__,
            created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            build_receipt=self.runtime.receipt.digest,
            boot=boot_of(process, self.namespace.name),
            namespace=self.namespace.name,
            namespace_digest=self.namespace.digest,
            altered=None if self.altered is None else dict(self.altered),
            arguments=self.plan.arguments,
            environment=self.plan.environment,
            effective=effective,
            ready_ns=ready_ns,
            log_sha256=log_sha256,
            accepted=self.accepted,
        )
        return Server(
            url=f"http://{HOST}:{port}",
            port=port,
            pid=process.pid,
            log=self.log,
            receipt=receipt,
            _plan=self.plan,
            _supervised=supervised,
            _process=process,
        )

    def _check_sources(self) -> None:
        """Nothing that the server opened comes from elsewhere than the lock."""
        order = self.supervised.order
        places = [*self.runtime.checkpoints.values(), *self.runtime.components.values()]
        places += [order.private, self.namespace_root]
        if ((venv := self.runtime.python.absolute().parent.parent) / "pyvenv.cfg").is_file():
            places.append(venv)
        mine = living(order.token, order.log_path)
        check_sources(order.private / "home", mine, places, where=str(self.opened.path))

    def _detach(self, port: int) -> None:
        """Write the record, then let go; until then the end of penny is the end of the server."""
        supervised, process = self.supervised, self.supervised.server
        if self.store is None or process is None:
            raise NotCheckedError("the server did not start", where=str(self.log))
        order, boot = supervised.order, boot_of(process, self.namespace.name)
        record = ServerRecord(
            id=boot.id,
            machine_boot=machine_boot(),
            pid=process.pid,
            start_ticks=process.start_ticks,
            pgid=process.pid,
            supervisor_pid=supervised.supervisor.pid,
            supervisor_start_ticks=supervised.supervisor.start_ticks,
            port=port,
            lock_name=self.opened.lock.name,
            lock_digest=self.opened.digest,
            namespace=self.namespace.name,
            namespace_root=str(self.namespace_root.absolute()),
            log=str(order.log_path),
            token=order.token,
            grace_s=order.grace_s,
        )
        write_record(self.store, record)
        supervised.detach()

    def _end(self) -> None:
        """End everything; what the kernel would not end is said aloud."""
        left = self.supervised.end()
        if left:
            with contextlib.suppress(Exception):
                self.reporter.note(f"{left} processes of the server could not be ended")

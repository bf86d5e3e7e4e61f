"""The boots of a qualification: the server of a lock, started as often as the suite asks."""

import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from reproducer.documents.lock import Scalar
from reproducer.documents.opened import OpenedLock
from reproducer.documents.receipts import LaunchReceipt
from reproducer.engines.alteration import altered as alter
from reproducer.errors import NotCheckedError
from reproducer.identity.namespace import derive
from reproducer.identity.root import open_root
from reproducer.launch.server import Server, running
from reproducer.ledger import Ledger
from reproducer.store.faults import free_bytes, writing
from reproducer.trace.kept import TRACES, keep_trace

if TYPE_CHECKING:
    from reproducer.build.runtime import Runtime
    from reproducer.identity.namespace import Namespace
    from reproducer.progress import Reporter
    from reproducer.runs import Run


LEAST_FREE = 64 << 20


@dataclass
class Boots:
    """Starts the server as often as the suite asks and keeps each launch receipt.

    Attributes:
        least_free: bytes that the disk of the pages must have free before and after each boot. An engine drops pages
            that do not fit without a word, and the next boot would look as if it could not restore.
    """

    opened: OpenedLock
    runtime: "Runtime"
    namespace: "Namespace"
    run: "Run"
    port: int | None
    reporter: "Reporter"
    accepted: Literal["asked", "--yes"]
    ledger: Ledger
    receipts: list[LaunchReceipt] = field(default_factory=list)
    seconds: float = 0.0
    least_free: int = LEAST_FREE

    @contextmanager
    def boot(self, altered: Mapping[str, Scalar] | None = None) -> Iterator[Server]:
        """One server, stopped when the context ends; then its log is traced.

        Args:
            altered: the effective values in which it is to differ from the lock, and lie in another namespace.

        Raises:
            NotCheckedError: the disk of the pages is full, or as `running`.
        """
        with writing(self.run.pages, what="the folder of KV pages"):
            self.run.pages.mkdir(parents=True, exist_ok=True)
        self._check_room()
        since = time.monotonic()
        namespace = self.namespace if altered is None else derive(alter(self.opened.lock, altered))
        root = open_root(self.run.pages, namespace)
        log = self.run.folder / f"server-{secrets.token_hex(4)}.log"
        with running(
            self.opened,
            self.runtime,
            root,
            namespace,
            altered=altered,
            port=self.port,
            log=log,
            reporter=self.reporter,
            accepted=self.accepted,
        ) as server:
            self.receipts.append(server.receipt)
            self.ledger.add(server.receipt)
            self.seconds += time.monotonic() - since
            yield server
            self._check_room()
            since = time.monotonic()
        keep_trace(self.ledger.folder / TRACES, server.receipt, log, self.reporter)
        self.seconds += time.monotonic() - since

    def _check_room(self) -> None:
        free = free_bytes(self.run.pages)
        if free is not None and free < self.least_free:
            raise NotCheckedError(
                "the disk of the KV pages is full",
                where=str(self.run.pages),
                why=f"{free} bytes are free, at least {self.least_free} are wanted",
                todo="make room, or name a folder on another disk with --kv",
            )

    def told(self) -> str:
        """The boots in a few words."""
        ready = ", ".join(f"{receipt.ready_ns / 1e9:.1f}" for receipt in self.receipts)
        values = len(self.receipts[-1].effective) if self.receipts else 0
        if not self.receipts:
            return "no boot was needed: every sample was there already"
        return f"{len(self.receipts)} boots, ready in {ready} s, {values} values agree"

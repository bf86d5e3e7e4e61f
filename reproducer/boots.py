"""The boots of a qualification: the server of a lock, started as often as the suite asks."""

import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from reproducer.documents.opened import OpenedLock
from reproducer.documents.receipts import LaunchReceipt
from reproducer.identity.namespace import open_root
from reproducer.launch.server import Server, running
from reproducer.ledger import Ledger
from reproducer.runs import Run

if TYPE_CHECKING:
    from reproducer.build.runtime import Runtime
    from reproducer.identity.namespace import Namespace
    from reproducer.progress import Reporter


@contextmanager
def private_kv(parent: Path, run: Run) -> Iterator[Path]:
    """A folder for the KV pages of one run, below the folder of all namespaces and so on the same disk.

    A qualification's prompts are its own, so nobody could reuse its pages; and a runtime whose rebuild differs must not
    write into the namespace that the lock names. The folder goes when the run ends well, and stays for an interrupted
    run to be taken up.
    """
    folder = parent / "qualification" / run.folder.name
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Boots:
    """Starts the server as often as the suite asks and keeps each launch receipt."""

    opened: OpenedLock
    runtime: "Runtime"
    namespace: "Namespace"
    kv: Path
    logs: Path
    port: int | None
    reporter: "Reporter"
    accepted: Literal["asked", "--yes"]
    ledger: Ledger
    receipts: list[LaunchReceipt] = field(default_factory=list)
    seconds: float = 0.0

    @contextmanager
    def boot(self) -> Iterator[Server]:
        """One server, stopped when the context ends."""
        since = time.monotonic()
        root = open_root(self.kv, self.namespace)
        log = self.logs / f"server-{secrets.token_hex(4)}.log"
        with running(
            self.opened,
            self.runtime,
            root,
            self.namespace,
            port=self.port,
            log=log,
            reporter=self.reporter,
            accepted=self.accepted,
        ) as server:
            self.receipts.append(server.receipt)
            self.ledger.add(server.receipt)
            self.seconds += time.monotonic() - since
            yield server
            since = time.monotonic()
        self.seconds += time.monotonic() - since

    def told(self) -> str:
        """The boots in a few words."""
        ready = ", ".join(f"{receipt.ready_ns / 1e9:.1f}" for receipt in self.receipts)
        values = len(self.receipts[-1].effective) if self.receipts else 0
        if not self.receipts:
            return "no boot was needed: every sample was there already"
        return f"{len(self.receipts)} boots, ready in {ready} s, {values} values agree"

"""The log of each boot of penny's own server is traced when the server has ended, and kept beside its receipt."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from reproducer.trace.kept import TRACES, kept_traces
from tests.launch.test_altered import boots, named

if TYPE_CHECKING:
    from tests.launch.conftest import Bench


def test_each_boot_leaves_its_trace(bench: "Bench", tmp_path: Path) -> None:
    """Two boots, two traces: each names its launch receipt and the digest of the whole log as the server left it."""
    started = boots(bench, named(bench), tmp_path)
    for _ in range(2):
        with started.boot():
            pass
    traces = kept_traces(started.ledger.folder / TRACES, started.receipts)
    assert [each.served.launch_receipt for each in traces if each.served] == [each.digest for each in started.receipts]
    logs = {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in tmp_path.glob("server-*.log")}
    assert {each.sources[0].sha256 for each in traces} == set(logs)
    assert all(each.sources[0].whole for each in traces)
    assert len(started.ledger.receipts()) == 2

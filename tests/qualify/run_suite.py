"""A process that measures a suite on the stand-in, to be killed: `python -m tests.qualify.run_suite FOLDER`."""

import sys
import tempfile
from pathlib import Path

from reproducer.documents.opened import OpenedLock
from reproducer.documents.receipts import MeasureReceipt
from reproducer.progress import Reporter, Silent
from reproducer.qualify.suite import qualify
from tests.qualify.servers import Boots, build_receipt, measure, suite


def small_suite(folder: Path) -> OpenedLock:
    """Three measures, one of which spans two boots."""
    return suite(
        folder,
        measure("decode.single/1", warmup=1, prompt_tokens=32, output_tokens=12),
        measure("restore.restart/1", ("storage_tokens", ">=", 48, "tokens"), prompt_tokens=64, output_tokens=4),
        measure("chat.smoke/1"),
    )


def run(folder: Path, boots: Boots, reporter: Reporter) -> tuple[MeasureReceipt, ...]:
    """Measure it; samples lie in `folder/samples`."""
    opened = small_suite(folder)
    return qualify(opened, build_receipt(), boots.boot, workspace=folder / "samples", reporter=reporter, settle_s=0.0)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    tempfile.tempdir = str(place)
    run(place, Boots(place / "server", ["--gap-ms", "25"]), Silent())

"""Samples of an unfinished run on disk, one file each, written whole or not at all."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reproducer.documents.base import Document, Sha256
from reproducer.documents.measured import Sample
from reproducer.documents.receipts import MeasuredBoot
from reproducer.documents.toml import read_text, write_atomically
from reproducer.errors import NotCheckedError, PennyError
from reproducer.progress import Reporter
from reproducer.qualify.conditions import Surroundings
from reproducer.qualify.plan import Step

LARGEST_CELL = 64 << 20
_OWNER = "suite.json"


class Owner(Document):
    """What the samples of a folder were taken for; any other run throws them away."""

    format: Literal["penny-cells/1"] = "penny-cells/1"
    lock_digest: Sha256
    build_receipt: Sha256


class Cell(Document):
    """One finished step: its sample, the boots it was taken in, what went on meanwhile.

    Attributes:
        boots: those of `launch_receipts`; none in what an older penny left.
    """

    format: Literal["penny-cell/1"] = "penny-cell/1"
    launch_receipts: tuple[Sha256, ...]
    sample: Sample
    surroundings: tuple[Surroundings, ...]
    boots: tuple[MeasuredBoot, ...] = ()


@dataclass(frozen=True)
class Cells:
    """The finished steps of one run."""

    folder: Path

    @classmethod
    def opened(cls, folder: Path, owner: Owner, reporter: Reporter) -> "Cells":
        """The finished steps in a folder; those of another lock or build are removed first.

        Raises:
            NotCheckedError: the folder cannot be written.
        """
        path = folder / _OWNER
        text = owner.canonical().decode()
        try:
            if folder.is_dir() and (not path.is_file() or path.read_text(encoding="utf-8") != text):
                if any(folder.iterdir()):
                    reporter.note("samples of another lock or build are thrown away")
                shutil.rmtree(folder)
        except (OSError, ValueError) as error:
            raise NotCheckedError("samples cannot be kept here", where=str(folder), why=str(error)) from error
        if not path.exists():
            write_atomically(path, text.encode())
        return cls(folder)

    def load(self, step: Step) -> Cell | None:
        """A finished step; None where it is not there or not whole."""
        path = self.folder / step.name
        if not path.is_file():
            return None
        try:
            cell = Cell.from_json(read_text(path, what="sample", limit=LARGEST_CELL), where=str(path))
        except PennyError:
            return None
        return cell if (cell.sample.index, cell.sample.warmup) == (step.index, step.warmup) else None

    def remove(self, step: Step) -> None:
        """Forget a finished step, so that it is done anew; raises NotCheckedError where that cannot be."""
        path = self.folder / step.name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise NotCheckedError("a sample cannot be removed", where=str(path), why=str(error)) from error

    def save(self, step: Step, cell: Cell) -> None:
        """Keep a finished step; raises NotCheckedError where it cannot be written."""
        write_atomically(self.folder / step.name, cell.canonical())

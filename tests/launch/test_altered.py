"""A boot that differs from the lock in one value: started with it, checked against it, kept apart."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from reproducer.boots import Boots
from reproducer.documents.lock import CheckpointFile
from reproducer.documents.opened import OpenedLock
from reproducer.errors import InvalidDocumentError
from reproducer.identity.namespace import derive
from reproducer.launch.effective import EffectiveDifferenceError
from reproducer.ledger import Ledger
from reproducer.progress import Silent
from reproducer.runs import Run

if TYPE_CHECKING:
    from tests.launch.conftest import Bench


def named(bench: "Bench", mode: str = "") -> OpenedLock:
    """The bench's lock with a file in its checkpoint, so that it has a namespace."""
    opened = bench.opened(mode)
    file = CheckpointFile(path="config.json", sha256="0" * 64, size=1)
    checkpoints = tuple(each.model_copy(update={"files": (file,)}) for each in opened.lock.checkpoints)
    return replace(opened, lock=opened.lock.model_copy(update={"checkpoints": checkpoints}))


def boots(bench: "Bench", opened: OpenedLock, folder: Path) -> Boots:
    """The boots of a qualification with the stand-in."""
    run = Run(folder, folder / "pages", resumed=False)
    runtime = cast("Any", bench.runtime)
    return Boots(opened, runtime, derive(opened.lock), run, None, Silent(), "--yes", Ledger(folder / "receipts"))


def test_an_altered_boot_has_its_value_its_namespace_and_says_so(bench: "Bench", tmp_path: Path) -> None:
    """Argument, effective value and namespace are those of the altered lock; the receipt names the lock itself."""
    opened = named(bench)
    started = boots(bench, opened, tmp_path)
    for altered in (None, {"page_size": 32}, None):
        with started.boot(altered):
            pass
    first, middle, last = started.receipts
    assert (first.altered, middle.altered, last.altered) == (None, {"page_size": 32}, None)
    assert {receipt.lock_digest for receipt in started.receipts} == {opened.digest}
    assert [receipt.arguments[-2:] for receipt in started.receipts] == [
        ("--page-size", "16"),
        ("--page-size", "32"),
        ("--page-size", "16"),
    ]
    sizes = [value.got for receipt in started.receipts for value in receipt.effective if value.name == "page_size"]
    assert sizes == [16, 32, 16]
    assert first.namespace == last.namespace == derive(opened.lock).name
    assert middle.namespace != first.namespace
    roots = {path.name for path in (tmp_path / "pages").iterdir() if path.is_dir()}
    assert roots == {first.namespace, middle.namespace}
    assert {each.digest for each in started.ledger.receipts()} == {each.digest for each in started.receipts}


def test_an_altered_boot_that_shows_another_value_is_refused(bench: "Bench", tmp_path: Path) -> None:
    """The engine resolves the page size to 64 whatever it is asked: nothing is measured under that name."""
    started = boots(bench, named(bench, "other"), tmp_path)
    with (
        pytest.raises(EffectiveDifferenceError, match="page_size: expected 32, got 64"),
        started.boot({"page_size": 32}),
    ):
        pass
    assert started.receipts == []


def test_what_no_argument_is_known_for_starts_nothing(bench: "Bench", tmp_path: Path) -> None:
    """Only the values that the engine's adapter names can be altered."""
    started = boots(bench, named(bench), tmp_path)
    with pytest.raises(InvalidDocumentError, match="no argument of sglang"), started.boot({"model_type": "other"}):
        pass
    assert bench.requests() == []

"""The boots of a qualification: what the disk must have."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from reproducer.boots import Boots
from reproducer.errors import NotCheckedError, UsageError
from reproducer.ledger import Ledger
from reproducer.progress import Silent
from reproducer.runs import Run

if TYPE_CHECKING:
    from reproducer.build.runtime import Runtime
    from reproducer.documents.opened import OpenedLock
    from reproducer.identity.namespace import Namespace


def boots(pages: Path, least_free: int) -> Boots:
    """Boots that get no further than to the disk."""
    return Boots(
        cast("OpenedLock", None),
        cast("Runtime", None),
        cast("Namespace", None),
        Run(pages.parent, pages, resumed=False),
        None,
        Silent(),
        "--yes",
        Ledger(pages.parent),
        least_free=least_free,
    )


def test_full_disk_is_told_before_and_not_measured(tmp_path: Path) -> None:
    """An engine drops pages that do not fit: on a full disk nothing is measured, and the disk is named."""
    with pytest.raises(NotCheckedError, match="the disk of the KV pages is full") as fault:
        boots(tmp_path / "pages", 1 << 62).boot().__enter__()
    assert "--kv" in str(fault.value)


def test_pages_that_cannot_be_made_are_one_clear_error(tmp_path: Path) -> None:
    """A folder below which no pages can lie is named."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="not a folder is in the way"):
        boots(tmp_path / "file" / "pages", 0).boot().__enter__()

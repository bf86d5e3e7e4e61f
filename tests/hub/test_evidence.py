"""Checkpoints of a hub in evidence: what a build receipt must show of them, and what a provenance statement names."""

from pathlib import Path
from typing import Any

from reproducer.attest.statements import _dependencies
from reproducer.build.workshop import Workshop
from reproducer.documents.built import TreeDigest
from reproducer.documents.lock import Build, Lock, Toolchain
from reproducer.documents.opened import open_lock
from reproducer.documents.receipts import BuildReceipt
from reproducer.progress import Silent
from reproducer.store.hashing import tree_digest
from reproducer.verify.rebuild import _checkpoints
from tests.hub.conftest import FILES, NAME, Bench, checkpoint_of

ROOT = Path(__file__).parents[2]


def lock_with(bench: Bench, **changes: Any) -> Lock:
    """The committed lock with its target from the hub."""
    checkpoint = checkpoint_of(bench.hub, **changes)
    return open_lock(ROOT / "penny.lock.toml").lock.model_copy(update={"checkpoints": (checkpoint,)})


def receipt_with(tree: TreeDigest) -> BuildReceipt:
    """A build receipt that says what the checkpoint's files were."""
    stated: dict[str, Any] = {"checkpoints": {"model": tree}}
    return BuildReceipt.model_construct(**stated)


def test_a_receipt_carries_the_files_that_were_presented(bench: Bench) -> None:
    """What the build takes from the store is what verify recomputes from the lock; other files fail it."""
    bench.fetch()
    checkpoint = checkpoint_of(bench.hub)
    toolchain = Toolchain(python="3.11", compiler="none")
    recipe = Build(source_date_epoch=0)
    workshop = Workshop(bench.store, "linux-x86_64", toolchain, recipe, lambda _: b"", Silent())
    product, files = workshop.checkpoint(checkpoint, ())
    assert product.reused
    assert {path.name for path in (product.folder / "checkpoint").iterdir()} == {path.split("/")[0] for path in FILES}
    lock = lock_with(bench)
    assert [each.status for each in _checkpoints(lock, receipt_with(tree_digest(files)), "")] == ["passed"]
    fewer = tree_digest({path: file for path, file in files.items() if path != "README.md"})
    assert [each.status for each in _checkpoints(lock, receipt_with(fewer), "")] == ["failed"]


def test_unknown_files_are_unknown_to_verify(bench: Bench) -> None:
    """A checkpoint of which only the revision is known is neither passed nor failed."""
    lock = lock_with(bench, files="unknown")
    found = list(_checkpoints(lock, receipt_with(TreeDigest(files=0, bytes=0, sha256="0" * 64)), ""))
    assert [(each.id, each.status) for each in found] == [("build.checkpoint.model", "unknown")]


def test_a_statement_names_repository_and_revision(bench: Bench) -> None:
    """Provenance names the repository at its commit, and every file by digest."""
    revision = bench.hub.repositories[NAME].refs["main"]
    dependencies = list(_dependencies(lock_with(bench)))
    repository = next(each for each in dependencies if each["annotations"]["role"] == "checkpoint repository")
    assert repository["uri"] == f"pkg:huggingface/{NAME}@{revision}"
    assert repository["digest"] == {"gitCommit": revision}
    files = [each for each in dependencies if each["annotations"]["role"] == "checkpoint file"]
    assert {each["name"] for each in files} == set(FILES)

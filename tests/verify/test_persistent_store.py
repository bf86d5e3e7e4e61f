"""A launch whose persistent store was filled in is the lock's; one whose pages lay elsewhere is not."""

from typing import Any

import pytest

from reproducer.documents.opened import OpenedLock
from reproducer.documents.verdict import Check
from reproducer.verify.receipts import verify_receipts
from tests.verify.factory import Evidence, edited

NIXL = "SGLANG_HICACHE_NIXL_BACKEND_STORAGE_DIR"


def environment_check(evidence: Evidence, backend: str, **variables: str) -> Check:
    """The check of the environment for a lock with a storage, all of whose launches had these variables."""
    launch = evidence.opened.lock.launch
    arguments = {**launch.arguments, "hicache-storage-backend": backend}
    lock = evidence.opened.lock.model_copy(update={"launch": launch.model_copy(update={"arguments": arguments})})
    opened = OpenedLock(lock, evidence.opened.path)

    def edit(receipt: dict[str, Any]) -> None:
        receipt["lock_digest"] = opened.digest
        receipt["environment"].update(variables)

    receipts = [edited(each, edit) if each in evidence.launches else each for each in evidence.receipts]
    return next(each for each in verify_receipts(opened, receipts) if each.id == "launch.environment")


def test_filled_in(evidence: Evidence) -> None:
    """The lock names no folder, penny filled in the namespace, and the receipt says so."""
    assert environment_check(evidence, "nixl", **{NIXL: "{namespace}"}).status == "passed"


@pytest.mark.parametrize(("variables", "said"), [({}, "is not set"), ({NIXL: "elsewhere"}, "is elsewhere, not")])
def test_elsewhere(evidence: Evidence, variables: dict[str, str], said: str) -> None:
    """A launch that left the folder to the engine, or named another one, is not what penny starts."""
    found = environment_check(evidence, "nixl", **variables)
    assert found.status == "failed"
    assert f"{NIXL} {said}" in found.reason


def test_lock_that_could_not_be_launched(evidence: Evidence) -> None:
    """Where the lock's own store cannot be in a namespace, nothing is concluded."""
    found = environment_check(evidence, "mooncake")
    assert found.status == "unknown"
    assert "cannot be kept in a namespace" in found.reason

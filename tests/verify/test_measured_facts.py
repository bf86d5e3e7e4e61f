"""What a measure saw of an effective value while it ran is held against the lock."""

from typing import Any

import pytest

from reproducer.verify.receipts import verify_receipts
from tests.verify.factory import Evidence, edited


@pytest.mark.parametrize(
    ("seen", "status", "reason"),
    [
        (16, "passed", ""),
        (64, "failed", "sample 0 of chat.smoke saw page_size 64, the lock says 16; sample 1"),
        (True, "failed", "page_size true"),
    ],
)
def test_a_fact_by_the_name_of_an_effective_value_is_the_locks(
    evidence: Evidence, seen: Any, status: str, reason: str
) -> None:
    """A server that says another number to a measure than it said when it started did not run as the lock says."""
    chat = evidence.measure("chat.smoke")
    changed = edited(chat, lambda data: [each["facts"].update(page_size=seen) for each in data["samples"]])
    found = {each.id: each for each in verify_receipts(evidence.opened, evidence.replacing(chat, changed))}
    assert found["effective.measured"].status == status
    assert found["effective.measured"].reason.startswith(reason) or reason in found["effective.measured"].reason


def test_without_such_facts_there_is_no_such_check(evidence: Evidence) -> None:
    """Facts with names of their own are no effective values."""
    assert "effective.measured" not in {each.id for each in verify_receipts(evidence.opened, evidence.receipts)}

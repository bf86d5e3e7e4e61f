"""The longest prompt that is admitted: on a server with a limit, and on servers that keep it badly."""

from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.receipts import MeasureReceipt
from reproducer.errors import NotCheckedError
from reproducer.progress import Silent
from reproducer.qualify.suite import qualify
from tests.qualify.servers import Boots, build_receipt, measure, suite

CONTEXT = ("--context", "64")
BOUNDS: Any = tuple((name, "==", True, "bool") for name in ("refused_cleanly", "never_truncated", "alive"))


def measured(folder: Path, *options: str, **parameters: int) -> MeasureReceipt:
    """The receipt of two samples, one a boot."""
    boots = Boots(folder / "server", [*CONTEXT, *options])
    asked = measure("context.admission/1", *BOUNDS, **parameters)
    (receipt,) = qualify(
        suite(folder, asked), build_receipt(), boots.boot, workspace=folder / "samples", reporter=Silent(), settle_s=0.0
    )
    return receipt


def values(receipt: MeasureReceipt) -> dict[str, float]:
    """The derived values by name."""
    return {each.name: each.value for each in receipt.derived}


def test_the_longest_prompt_is_found_from_above(tmp_path: Path) -> None:
    """A server that keeps five tokens for itself admits 58 of 64 beside one of output; only that prompt is computed."""
    receipt = measured(tmp_path, "--reserved", "5")

    assert (receipt.status, receipt.reason) == ("passed", "")
    got = values(receipt)
    assert (got["context_tokens"], got["admitted_tokens"], got["reserved_tokens"]) == (64, 58, 6)
    *refused, admitted, alive = receipt.samples[0].requests
    assert len(refused) == 7
    assert all((each.error or "").startswith("HTTP status 400") for each in refused)
    assert (admitted.prompt_tokens, alive.prompt_tokens) == (58, 16)


FAULTS = {
    "truncate": {"refused_cleanly": 0, "never_truncated": 0, "alive": 1},
    "confused": {"refused_cleanly": 0, "never_truncated": 1, "alive": 1},
    "boundless": {"refused_cleanly": 0, "never_truncated": 1, "alive": 1, "admitted_tokens": 65},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_server_that_keeps_its_limit_badly_fails(tmp_path: Path, fault: str) -> None:
    """It cuts what is too long, breaks down with a 500, or admits more than it states."""
    receipt = measured(tmp_path, "--fault", fault)

    got = values(receipt)
    assert {name: got.get(name) for name in FAULTS[fault]} == FAULTS[fault]
    assert ("admitted_tokens" in got) == ("admitted_tokens" in FAULTS[fault])
    assert receipt.status == "failed"
    assert "refused_cleanly is 0, the lock asks for == 1 bool" in receipt.reason


def test_a_server_that_dies_of_a_long_prompt_is_an_error(tmp_path: Path) -> None:
    """It is gone: nothing could be checked, and the measure is named."""
    with pytest.raises(NotCheckedError, match=r"the server died during context\.admission/1"):
        measured(tmp_path, "--fault", "die-of-length")


def test_a_limit_that_the_server_does_not_state_so_is_no_measurement(tmp_path: Path) -> None:
    """The lock says 48 tokens, the server 64: the sample is invalid."""
    receipt = measured(tmp_path, context_tokens=48)

    assert receipt.status == "failed"
    assert "the server states a context of 64 tokens, the limit was 48" in receipt.reason


def test_nothing_is_admitted_where_the_server_keeps_more_than_is_tried(tmp_path: Path) -> None:
    """The refusals are clean, and there is no longest prompt to tell."""
    receipt = measured(tmp_path, "--reserved", "20", reserve=4)

    got = values(receipt)
    assert (got["valid_samples"], got["refused_cleanly"], got["alive"]) == (2, 1, 1)
    assert "admitted_tokens" not in got


def test_a_server_without_a_stated_limit_is_skipped_unless_the_lock_names_one(tmp_path: Path) -> None:
    """Where neither says how long a prompt may be there is nothing to try."""
    boots = Boots(tmp_path / "server")
    asked = measure("context.admission/1")
    (receipt,) = qualify(
        suite(tmp_path, asked), build_receipt(), boots.boot, workspace=tmp_path / "a", reporter=Silent(), settle_s=0.0
    )

    assert receipt.status == "skipped"
    assert receipt.reason == "the server does not state its context length, and the lock names none"

"""The real SGLang: started by penny, frozen from its port, launched again as it stands, with the same values."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.opened import open_lock
from tests.end_to_end.newcomer import ROOT, Penny, copy_of_repository

pytestmark = [pytest.mark.engine]


@pytest.fixture
def penny(tmp_path: Path) -> Penny:
    """A copy of the repository with a store that has the built runtime; PENNY_TEST_STORE names it."""
    kept = os.environ.get("PENNY_TEST_STORE")
    if not kept:
        pytest.skip("PENNY_TEST_STORE names no store with the built runtime")
    return Penny(copy_of_repository(tmp_path / "clone"), Path(kept), tmp_path / "keys")


def launched(penny: Penny, lock: str) -> dict[str, Any]:
    """Launch a lock detached; gives the url and the launch receipt."""
    up = penny("launch", "--lock", lock, "--detach", "--yes", "--offline", "--json", PENNY_KV=str(penny.folder / "kv"))
    assert up.code == 0, up.err
    receipt: dict[str, Any] = json.loads(Path(up.result["receipt"]).read_bytes())
    return {"url": up.result["url"], "receipt": receipt}


def values(receipt: dict[str, Any]) -> dict[str, Any]:
    """The effective values of a launch, by name."""
    return {each["name"]: each["got"] for each in receipt["effective"]}


def test_a_frozen_runtime_is_launched_again(penny: Penny) -> None:
    """Every effective value of the frozen lock is what the first server showed; nothing was built."""
    first = launched(penny, "penny.lock.toml")
    try:
        frozen = penny("freeze", "--url", first["url"], "--json", "--quiet")
        assert frozen.code == 0, frozen.err
    finally:
        assert penny("stop", "--lock", "penny.lock.toml").code == 0
    opened = open_lock(penny.folder / "frozen.lock.toml")
    original = open_lock(ROOT / "penny.lock.toml").lock
    assert opened.lock.launch.arguments == original.launch.arguments
    assert opened.lock.launch.environment == original.launch.environment
    assert opened.lock.engine.arguments is not None
    assert original.engine.arguments is not None
    assert opened.lock.engine.arguments.sha256 == original.engine.arguments.sha256
    assert {each.path: each.sha256 for each in opened.lock.target.listed} == {
        each.path: each.sha256 for each in original.target.listed
    }
    second = launched(penny, "frozen.lock.toml")
    assert penny("stop", "--lock", "frozen.lock.toml").code == 0
    shown, before = values(second["receipt"]), values(first["receipt"])
    assert {name: shown[name] for name in before} == before
    assert set(shown) == set(opened.lock.launch.effective)

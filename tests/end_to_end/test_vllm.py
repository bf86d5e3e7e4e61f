"""The second engine: the committed lock of vLLM, its runtime built, started, frozen and reproduced.

The live test takes what the first engine's tests left in the store (torch, half of the packages, the checkpoint): some
three minutes on two idle processors. All measures and a frozen runtime that is started again are asked for by name with
PENNY_TEST_VLLM=1, because they take ten minutes more.
"""

import json
import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from reproducer.documents.opened import open_lock
from reproducer.documents.sources import WheelSource
from reproducer.identity.namespace import derive
from tests.end_to_end.newcomer import ROOT, Penny, copy_of_repository, servers_of

LOCK = "vllm.penny.lock.toml"
FROZEN = "frozen.lock.toml"
ASKED = pytest.mark.skipif(os.environ.get("PENNY_TEST_VLLM") != "1", reason="some ten minutes: set PENNY_TEST_VLLM=1")
STEPS = ["lock", "fetch", "build", "namespace", "launch", "qualify", "verify", "attest"]


def test_committed_lock_is_whole() -> None:
    """The lock reads, every file beside it is what it pins, and its engine is a wheel that nothing builds."""
    opened = open_lock(ROOT / LOCK)
    assert opened.check_files() > 5
    engine = opened.lock.component(opened.lock.engine.component)
    assert isinstance(engine.source, WheelSource)
    assert engine.build_environment is None
    schema = opened.arguments()
    assert schema is not None
    assert schema.version == "0.32.0"


def test_same_checkpoint_as_the_other_engine() -> None:
    """Both engines serve the same bytes, each in a namespace of its own."""
    ours, theirs = open_lock(ROOT / LOCK).lock, open_lock(ROOT / "penny.lock.toml").lock
    assert ours.target.files == theirs.target.files
    assert derive(ours).name != derive(theirs).name
    suites = [{measure.id: measure.parameters for measure in lock.qualification.measures} for lock in (ours, theirs)]
    assert suites[0] == {name: given for name, given in suites[1].items() if name != "restore.restart/1"}


def test_committed_evidence() -> None:
    """A bundle of one run of exactly this lock is committed, and verifies with a key that lies beside it."""
    digest = open_lock(ROOT / LOCK).digest
    bundles = [index.parent for index in (ROOT / "evidence/smollm2-135m-vllm-cpu").glob("*/index.json")]
    ours = [bundle for bundle in bundles if open_lock(bundle / "penny.lock.toml").digest == digest]
    assert ours
    keys = {key.read_bytes(): key for key in (ROOT / "evidence/keys").glob("*.pem")}
    penny = Penny(ROOT, Path("/nonexistent"), Path("/nonexistent"))
    for bundle in ours:
        verified = penny("verify", str(bundle), "--key", str(keys[(bundle / "public.pem").read_bytes()]), "--json")
        assert verified.code == 0, verified.err
        assert verified.result["verdict"] == "passed"


def clone(folder: Path, store: Path, keys: Path) -> Penny:
    """A copy of the repository that has this lock."""
    penny = Penny(copy_of_repository(folder), store, keys)
    (penny.folder / LOCK).write_bytes((ROOT / LOCK).read_bytes())
    return penny


def values(receipt: Path) -> dict[str, Any]:
    """The effective values of a launch, by name."""
    return {each["name"]: each["got"] for each in json.loads(receipt.read_bytes())["effective"]}


def verifies(penny: Penny, bundle: str) -> None:
    """Fail unless a bundle verifies with the key of that clone."""
    verified = penny("verify", bundle, "--key", str(penny.keys / "penny.pub.pem"), "--json")
    assert verified.code == 0, verified.err


def frozen_from_a_live_server(penny: Penny) -> dict[str, Any]:
    """Launch the lock, ask it something, freeze it, stop it; gives the effective values that it showed."""
    launched = penny("launch", "--lock", LOCK, "--detach", "--yes", "--offline", "--json")
    assert launched.code == 0, launched.err
    assert launched.result["differences"] == []
    url = launched.result["url"]
    try:
        question = {"model": "smollm2-135m-instruct", "prompt": "The capital of France is", "max_tokens": 4}
        asked = httpx.post(f"{url}/v1/completions", json=question | {"temperature": 0}, timeout=120, trust_env=False)
        assert "Paris" in asked.json()["choices"][0]["text"]
        frozen = penny("freeze", "--url", url, "--json")
        assert frozen.code == 0, frozen.err
    finally:
        assert penny("stop", "--lock", LOCK).code == 0
    assert servers_of(penny.store) == []
    return values(penny.folder / launched.result["receipt"])


@pytest.mark.engine
@pytest.mark.index
def test_launched_and_frozen(tmp_path: Path, filled_store: Path) -> None:
    """The lock's runtime is built and serves with the lock's values; a freeze of it has what the lock has.

    That is: the arguments, the environment, the checkpoint's bytes and every effective value that the launch showed.
    """
    penny = clone(tmp_path / "clone", filled_store, tmp_path / "keys")
    built = penny("build", "--lock", LOCK, "--yes", "--json")
    assert built.code == 0, built.err
    assert built.result["level"] == "bytes-identical"
    shown = frozen_from_a_live_server(penny)
    lock, adopted = open_lock(ROOT / LOCK).lock, open_lock(penny.folder / FROZEN).lock
    assert adopted.launch.arguments == lock.launch.arguments
    assert adopted.launch.environment == lock.launch.environment
    assert {each.path: each.sha256 for each in adopted.target.listed} == {
        each.path: each.sha256 for each in lock.target.listed
    }
    assert {name: adopted.launch.effective[name] for name in shown} == shown


@pytest.mark.engine
@pytest.mark.index
@pytest.mark.timeout(3600)
@ASKED
def test_whole_way(tmp_path: Path, filled_store: Path) -> None:
    """The lock is reproduced, frozen while it serves, and reproduced as frozen; both bundles verify."""
    penny = clone(tmp_path / "clone", filled_store, tmp_path / "keys")
    ended = penny("reproduce", LOCK, "--yes", "--json")
    assert ended.code == 0, ended.err
    assert ended.result["verdict"] == "passed"
    assert [step["name"] for step in ended.result["steps"]] == STEPS
    assert servers_of(penny.store) == []
    verifies(penny, ended.result["bundle"])

    frozen_from_a_live_server(penny)
    again = penny("reproduce", FROZEN, "--yes", "--offline", "--json")
    assert again.code == 0, again.err
    assert again.result["verdict"] == "passed"
    assert servers_of(penny.store) == []
    verifies(penny, again.result["bundle"])

"""The second engine: the committed lock of vLLM, and the whole way with the real one where that is asked for."""

import os
from pathlib import Path

import pytest

from reproducer.documents.opened import open_lock
from reproducer.documents.sources import WheelSource
from reproducer.identity.namespace import derive
from tests.end_to_end.newcomer import ROOT, Penny, copy_of_repository, servers_of

LOCK = "vllm.penny.lock.toml"
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


@pytest.mark.engine
@pytest.mark.index
@pytest.mark.skipif(
    os.environ.get("PENNY_TEST_VLLM") != "1", reason="installs 2 GB and takes some ten minutes: set PENNY_TEST_VLLM=1"
)
def test_whole_way(tmp_path: Path) -> None:
    """The lock is reproduced from an empty store: values agree, every threshold holds, the bundle verifies."""
    penny = Penny(copy_of_repository(tmp_path / "clone"), tmp_path / "store", tmp_path / "keys")
    (penny.folder / LOCK).write_bytes((ROOT / LOCK).read_bytes())
    ended = penny("reproduce", LOCK, "--yes", "--json")
    assert ended.code == 0, ended.err
    result = ended.result
    assert result["verdict"] == "passed"
    assert [step["name"] for step in result["steps"]] == STEPS
    assert servers_of(penny.store) == []
    verified = penny("verify", result["bundle"], "--key", str(penny.keys / "penny.pub.pem"), "--json")
    assert verified.code == 0, verified.err

"""What a server opened is in the lock's checkpoints, or the launch fails before any traffic (R3)."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reproducer.errors import ConfigurationError

if TYPE_CHECKING:
    from tests.launch.conftest import Bench


def refused(bench: "Bench", mode: str) -> str:
    """How a launch in this mode is refused; it was asked nothing but what it is, and nothing of it lives on."""
    with pytest.raises(ConfigurationError) as raised, bench.run(mode):
        pytest.fail("the context must not be entered")
    assert raised.value.exit_code == 68
    assert not any(line.startswith("POST") for line in (bench.pages / "requests").read_text().splitlines())
    return f"{raised.value}"


def test_a_repository_that_was_fetched(bench: "Bench") -> None:
    """A draft that the configuration named, fetched at whatever its branch is now, is in no lock."""
    assert "it fetched 'some/draft'" in refused(bench, "fetches")


def test_weights_from_elsewhere(bench: "Bench") -> None:
    """A file of weights that the server keeps open and no checkpoint holds is named."""
    other = bench.runtime.checkpoints["target"].parent / "elsewhere" / "model.safetensors"
    other.parent.mkdir()
    other.write_bytes(b"weights")
    assert "it opened 'model.safetensors' in '" in refused(bench, "opens another's")


@pytest.mark.parametrize("linked", [False, True], ids=["there", "by a link"])
def test_weights_of_the_checkpoint(bench: "Bench", tmp_path: Path, *, linked: bool) -> None:
    """Its own weights are no fault, also where the checkpoint's folder holds a link to them."""
    there = bench.runtime.checkpoints["target"] / "model.safetensors"
    kept = tmp_path / "elsewhere.safetensors" if linked else there
    kept.write_bytes(b"weights")
    if linked:
        there.symlink_to(kept)
    with bench.run("opens") as server:
        assert server.alive()

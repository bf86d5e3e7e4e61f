"""Sealing at the end of a foreground launch: only what a server that was up left when it ended well."""

from pathlib import Path

import pytest

from reproducer.cache.guard import sealed_at_end
from reproducer.errors import NotCheckedError
from tests.cache.conftest import Place
from tests.launch.conftest import Listening


def test_a_server_that_ended(place: Place) -> None:
    """It is sealed and told; without the option it is not."""
    root = place.root("first", 2)
    reporter = Listening()
    with sealed_at_end(place.kv, root.name, wanted=False, reporter=reporter) as ending:
        ending.up = True
    assert not (root / "seal.json").exists()
    with sealed_at_end(place.kv, root.name, wanted=True, reporter=reporter) as ending:
        ending.up = True
    assert (root / "seal.json").exists()
    assert reporter.notes == [f"4 pages of {root.name} are sealed"]


def ended_by(place: Place, root: Path, error: BaseException, *, up: bool) -> None:
    """A launch that ends with an error, or with the interrupt of a person."""
    with sealed_at_end(place.kv, root.name, wanted=True, reporter=Listening()) as ending:
        ending.up = up
        raise error


def test_a_server_that_a_person_ended(place: Place) -> None:
    """Ctrl-C is how a foreground server ends: it is sealed, and the interrupt goes on."""
    root = place.root("first", 2)
    with pytest.raises(KeyboardInterrupt):
        ended_by(place, root, KeyboardInterrupt(), up=True)
    assert (root / "seal.json").exists()


@pytest.mark.parametrize(("error", "up"), [(NotCheckedError("the server died"), True), (KeyboardInterrupt(), False)])
def test_a_server_that_died(place: Place, error: BaseException, up: bool) -> None:  # noqa: FBT001
    """What it left is not blessed; nor is anything where the wait for a server was interrupted."""
    root = place.root("first", 2)
    with pytest.raises(type(error)):
        ended_by(place, root, error, up=up)
    assert not (root / "seal.json").exists()

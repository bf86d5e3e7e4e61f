"""What all tests share: which stay together when several processes take them, and where those put their files."""

import os
import tempfile
from collections.abc import Iterator

import pytest

TOGETHER = ("engine", "releases")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist writes the groups into the names
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share one real store or one download stay in one process."""
    for item in items:
        for name in TOGETHER:
            if item.get_closest_marker(name) is not None:
                item.add_marker(pytest.mark.xdist_group(name))
                break


@pytest.fixture(scope="session", autouse=True)
def own_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Each process of tests has a temporary folder of its own: a suite measures alone on a machine, by a lock there."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("tmp")))
        patch.setattr(tempfile, "tempdir", None)
        yield

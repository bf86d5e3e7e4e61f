"""What all tests share: which stay together when several processes take them, and where those put their files."""

import os
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

ENGINE = ("tests/end_to_end/", "tests/freeze/test_real_engine.py")


class EngineInOneProcess(LoadScopeScheduling):
    """One process takes all tests of the real engine, which share one store; the others take the rest file by file."""

    def _split_scope(self, nodeid: str) -> str:
        return "engine" if nodeid.startswith(ENGINE) else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> EngineInOneProcess:
    """How tests are shared out among processes."""
    return EngineInOneProcess(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests that take longest come first, so that one process has begun with them when the others begin."""
    items.sort(key=lambda item: not item.nodeid.startswith(ENGINE))


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

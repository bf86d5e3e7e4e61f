"""The real thing: one store, filled from the package index once, shared by every end-to-end test."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.newcomer import ROOT, Penny, copy_of_repository, edit_lock, servers_of, shorten


@pytest.fixture(scope="session")
def filled_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store that holds the built runtime of the committed lock; PENNY_TEST_STORE keeps one between test runs."""
    kept = os.environ.get("PENNY_TEST_STORE")
    store = Path(kept) if kept else tmp_path_factory.mktemp("store")
    penny = Penny(ROOT, store, tmp_path_factory.mktemp("keys"))
    ended = penny("build", "--yes", "--json")
    if ended.code == 96 and "index" in ended.err:
        pytest.skip(f"no package index within reach: {ended.err.strip()}")
    assert ended.code == 0, ended.err
    yield store
    assert servers_of(store) == []
    if not kept:
        shutil.rmtree(store, ignore_errors=True)


@pytest.fixture
def newcomer(tmp_path: Path, filled_store: Path) -> Penny:
    """A fresh copy of the repository's lock with the filled store."""
    return Penny(copy_of_repository(tmp_path / "clone"), filled_store, tmp_path / "keys")


@pytest.fixture
def short(newcomer: Penny) -> Penny:
    """The same with a suite of a few seconds."""
    edit_lock(newcomer.folder, shorten)
    return newcomer


@pytest.fixture(scope="session")
def bundle_of_a_run(filled_store: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Penny, Path]:
    """A bundle of a short run, made once for the tests that run again or tamper with copies of it."""
    folder = tmp_path_factory.mktemp("run")
    penny = Penny(copy_of_repository(folder / "clone"), filled_store, folder / "keys")
    edit_lock(penny.folder, shorten)
    ended = penny("reproduce", "--yes", "--json")
    assert ended.code == 0, ended.err
    return penny, penny.folder / ended.result["bundle"]

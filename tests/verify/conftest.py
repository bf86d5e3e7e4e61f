"""One good bundle, made once; every test works on a copy of its own."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from reproducer.attest.keys import SigningKey, signing_key
from tests.verify.factory import Evidence, good_evidence, signed_bundle


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    """The signer's key."""
    return signing_key(tmp_path_factory.mktemp("keys") / "signer")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    """The key of somebody else."""
    return signing_key(tmp_path_factory.mktemp("keys") / "stranger")


@pytest.fixture(scope="session")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A lock and the receipts of a good run."""
    return good_evidence(tmp_path_factory.mktemp("lock") / "small")


@pytest.fixture(scope="session")
def good(evidence: Evidence, key: SigningKey, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle; not to be changed."""
    return signed_bundle(evidence, tmp_path_factory.mktemp("evidence") / "bundle", key)


@pytest.fixture
def copy(good: Path, tmp_path: Path) -> Path:
    """A copy of the bundle to tamper with."""
    return Path(shutil.copytree(good, tmp_path / "bundle"))


@pytest.fixture
def rewrite(copy: Path) -> Callable[[str, Callable[[bytes], bytes]], None]:
    """Change the bytes of one file of the copy."""

    def change(name: str, edit: Callable[[bytes], bytes]) -> None:
        path = copy / name
        before = path.read_bytes()
        after = edit(before)
        assert after != before
        path.write_bytes(after)

    return change

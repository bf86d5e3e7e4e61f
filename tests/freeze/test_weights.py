"""Checkpoint folders: what a hub's client noted is used, and then every byte is held against it."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from reproducer.documents.sources import FolderSource, HubSource
from reproducer.errors import NotCheckedError, UnsafeInputError
from reproducer.freeze.weights import Named, Weights, read, resolve
from reproducer.progress import Silent

COMMIT, OTHER = "a" * 40, "b" * 40


def git_blob(data: bytes) -> str:
    """The name under which git keeps these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def snapshot(hub: Path, commit: str = COMMIT, *, config: bytes = b"{}") -> Path:
    """One revision of org/name in a hub's cache, one file in git and one in LFS."""
    repository = hub / "models--org--name"
    folder = repository / "snapshots" / commit
    folder.mkdir(parents=True)
    (repository / "blobs").mkdir(exist_ok=True)
    weights = b"\x02\0\0\0\0\0\0\0{}"
    for name, data, blob in (
        ("config.json", config, git_blob(config)),
        ("model.safetensors", weights, hashlib.sha256(weights).hexdigest()),
    ):
        (repository / "blobs" / blob).write_bytes(data)
        (folder / name).symlink_to(f"../../blobs/{blob}")
    (repository / "refs").mkdir(exist_ok=True)
    (repository / "refs" / "main").write_text(commit)
    return folder


def weights(named: Named) -> Weights:
    """Read it as a target."""
    return read(named, name="name", role="target", trust_remote_code=False, reporter=Silent())


def test_a_snapshot_is_its_revision(tmp_path: Path) -> None:
    """Repository and commit from the path, each file by the name of its blob."""
    found = weights(Named(snapshot(tmp_path), None)).stated
    assert found.source == HubSource(repository="org/name", revision=COMMIT)
    assert [(each.path, each.blob) for each in found.listed] == [
        ("config.json", git_blob(b"{}")),
        ("model.safetensors", None),
    ]


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_changed_bytes_are_no_revision(tmp_path: Path, name: str) -> None:
    """A file that was edited in the cache is found, and the folder is known by its digests only."""
    folder = snapshot(tmp_path)
    (folder / name).resolve().write_bytes(b"changed!")
    found = weights(Named(folder, None))
    assert isinstance(found.stated.source, FolderSource)
    assert f"not those that the hub served: '{name}'" in found.doubts[0]


def test_a_local_folder_is_its_revision_where_the_repository_is_known(tmp_path: Path) -> None:
    """`local_dir` downloads note revision and digest of each file; the repository must come from elsewhere."""
    (tmp_path / "config.json").write_bytes(b"{}")
    notes = tmp_path / ".cache" / "huggingface" / "download"
    notes.mkdir(parents=True)
    (notes / "config.json.metadata").write_text(f"{COMMIT}\n{git_blob(b'{}')}\n1700000000.0\n")
    known = weights(Named(tmp_path, "org/name")).stated
    assert known.source == HubSource(repository="org/name", revision=COMMIT)
    assert [each.path for each in known.listed] == ["config.json"]
    unknown = weights(Named(tmp_path, None))
    assert isinstance(unknown.stated.source, FolderSource)
    assert COMMIT in unknown.doubts[0]
    (tmp_path / "other.json").write_bytes(b"{}")
    more = weights(Named(tmp_path, "org/name"))
    assert isinstance(more.stated.source, FolderSource)
    assert "no hub's client noted these files: 'other.json'" in more.doubts[0]


def test_a_repository_is_the_revision_that_its_reference_meant(tmp_path: Path) -> None:
    """Names of a hub are resolved in the server's own cache; one that moved since the start is not guessed."""
    folder = snapshot(tmp_path / "hub")
    environ = {"HF_HOME": str(tmp_path)}
    later = time.time() + 3600
    named = resolve("org/name", revision=None, cwd=tmp_path, environ=environ, since=later)
    assert named == Named(folder, "org/name")
    snapshot(tmp_path / "hub", OTHER, config=b"[]")
    with pytest.raises(NotCheckedError, match="was moved in the hub's cache after the server started"):
        resolve("org/name", revision=None, cwd=tmp_path, environ=environ, since=time.time() - 3600)
    exact = resolve("org/name", revision=COMMIT, cwd=tmp_path, environ=environ, since=0)
    assert exact.folder == folder
    with pytest.raises(NotCheckedError, match="not there any more"):
        resolve("/nowhere/at/all", revision=None, cwd=tmp_path, environ=environ, since=0)


def test_links_out_of_a_checkpoint_are_refused(tmp_path: Path) -> None:
    """A folder whose file is a link to somewhere else holds what no lock can pin."""
    (tmp_path / "model").mkdir()
    (tmp_path / "outside").write_bytes(b"x")
    (tmp_path / "model" / "config.json").symlink_to(tmp_path / "outside")
    with pytest.raises(UnsafeInputError, match="leads out of the checkpoint"):
        weights(Named(tmp_path / "model", None))


def test_a_pipe_in_a_checkpoint_is_refused(tmp_path: Path) -> None:
    """Nobody waits for it."""
    os.mkfifo(tmp_path / "weights")
    with pytest.raises(UnsafeInputError, match="not a regular file"):
        weights(Named(tmp_path, None))

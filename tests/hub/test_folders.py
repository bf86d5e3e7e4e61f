"""Folders of the user's: what is in them, what leads out of them, and snapshots of the hub's own cache."""

import os
from pathlib import Path

import pytest

from reproducer.errors import DriftError, NotCheckedError, UnsafeInputError, UsageError
from tests.hub.conftest import FILES, NAME, WEIGHTS, Bench, checkpoint_of
from tests.hub.test_fetching import tree


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with exactly the locked files."""
    folder = tmp_path / "own"
    for path, data in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


def test_a_folder_serves_without_the_hub(bench: Bench, own: Path) -> None:
    """The right bytes are verified and presented, and the hub is asked for nothing."""
    checkpoint = checkpoint_of(bench.hub)
    brought = bench.fetch(checkpoint, folders={"target": own})
    assert bench.hub.requests == []
    assert tree(brought.folders["model"]) == FILES


def test_a_folder_source_needs_a_folder(bench: Bench, own: Path) -> None:
    """A checkpoint that is known by its files only is named by whoever has it."""
    from reproducer.documents.sources import FolderSource

    checkpoint = checkpoint_of(bench.hub, source=FolderSource())
    with pytest.raises(NotCheckedError, match="nothing says where checkpoint model is") as caught:
        bench.fetch(checkpoint)
    assert "--checkpoint target=DIR" in caught.value.todo
    assert tree(bench.fetch(checkpoint, folders={"target": own}).folders["model"]) == FILES


def test_every_difference_is_named(bench: Bench, own: Path) -> None:
    """A missing file and a changed one are both named."""
    (own / "README.md").unlink()
    (own / "model-00001-of-00002.safetensors").write_bytes(WEIGHTS[:-1] + b"?")
    with pytest.raises(DriftError, match="the folder is not checkpoint model") as caught:
        bench.fetch(checkpoint_of(bench.hub), folders={"target": own})
    assert "README.md: expected" in caught.value.why
    assert "model-00001-of-00002.safetensors: expected" in caught.value.why


def test_links_that_leave_the_folder_are_refused(bench: Bench, own: Path, tmp_path: Path) -> None:
    """A link out of the folder is refused even where the bytes are right: for a file, and for a folder on the way."""
    outside = tmp_path / "outside"
    (own / "config.json").rename(outside)
    (own / "config.json").symlink_to(outside)
    with pytest.raises(UnsafeInputError, match=r"'config\.json' leads out of its folder"):
        bench.fetch(checkpoint_of(bench.hub), folders={"target": own})
    (own / "config.json").unlink()
    outside.rename(own / "config.json")
    (own / "nested").rename(tmp_path / "elsewhere")
    (own / "nested").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeInputError, match=r"'nested/notes\.txt' leads out"):
        bench.fetch(checkpoint_of(bench.hub), folders={"target": own})


def test_links_inside_the_folder_serve(bench: Bench, own: Path) -> None:
    """A link that stays inside is followed, and the engine gets a regular file."""
    (own / "config.json").rename(own / "kept.json")
    (own / "config.json").symlink_to("kept.json")
    folder = bench.fetch(checkpoint_of(bench.hub), folders={"target": own}).folders["model"]
    assert tree(folder) == FILES
    assert not (folder / "config.json").is_symlink()


def test_a_pipe_is_refused_and_not_waited_for(bench: Bench, own: Path) -> None:
    """A pipe in place of a file ends with an error, at once."""
    (own / "config.json").unlink()
    os.mkfifo(own / "config.json")
    with pytest.raises(UnsafeInputError, match="is no regular file"):
        bench.fetch(checkpoint_of(bench.hub), folders={"target": own})


def test_a_snapshot_of_the_real_client(bench: Bench) -> None:
    """The snapshot folder that huggingface_hub made, all links to its blobs, serves as a folder."""
    from huggingface_hub import snapshot_download

    revision = bench.hub.repositories[NAME].refs["main"]
    snapshot = snapshot_download(
        NAME, revision=revision, cache_dir=bench.cache.with_name("other"), endpoint=bench.hub.url
    )
    bench.hub.forget()
    assert (Path(snapshot) / "config.json").is_symlink()
    brought = bench.fetch(checkpoint_of(bench.hub), folders={"target": Path(snapshot)})
    assert bench.hub.requests == []
    assert tree(brought.folders["model"]) == FILES


def test_a_folder_that_is_none(bench: Bench, tmp_path: Path) -> None:
    """A name that leads nowhere is a wrong use."""
    with pytest.raises(UsageError, match="is no folder"):
        bench.fetch(checkpoint_of(bench.hub), folders={"target": tmp_path / "nothing"})

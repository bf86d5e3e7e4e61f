"""Fetching a checkpoint from a hub: into its own cache, resumed, verified, presented as exactly the locked files."""

import errno
import hashlib
import os
import socket
from pathlib import Path

import pytest

from reproducer.errors import DriftError, NotCheckedError, UnsafeInputError, UsageError
from reproducer.fetch.web import Patience
from reproducer.hub import asking, download, presenting
from reproducer.hub.presenting import presented
from reproducer.progress import Silent
from tests.hub.conftest import CONFIG, FILES, MORE, NAME, WEIGHTS, Bench, checkpoint_of
from tests.hub.server import safetensors

BIG = safetensors(os.urandom(3 << 20))


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_checkpoint_is_brought_whole(bench: Bench) -> None:
    """Every locked file is in the presented folder and in the hub's own cache, under the names its client uses."""
    from huggingface_hub import try_to_load_from_cache

    brought = bench.fetch()
    assert tree(brought.folders["model"]) == FILES
    assert brought.downloaded == sum(map(len, FILES.values()))
    revision = bench.hub.repositories[NAME].refs["main"]
    for path, data in FILES.items():
        cached = try_to_load_from_cache(NAME, path, cache_dir=bench.cache, revision=revision)
        assert isinstance(cached, str)
        assert Path(cached).read_bytes() == data


def test_nothing_is_downloaded_twice(bench: Bench) -> None:
    """A second fetch asks the hub for nothing; one with another store takes the bytes from the cache."""
    bench.fetch()
    bench.hub.forget()
    again = bench.fetch()
    assert (again.downloaded, again.reused) == (0, len(FILES))
    bench.store.__init__(bench.store.root.with_name("other"))  # type: ignore[misc]
    third = bench.fetch()
    assert (third.downloaded, third.reused) == (0, len(FILES))
    assert bench.hub.requests == []
    assert tree(third.folders["model"]) == FILES


def test_what_the_real_client_cached_is_verified_and_not_downloaded(bench: Bench) -> None:
    """Files that huggingface_hub itself brought serve; only the others are transferred."""
    from huggingface_hub import hf_hub_download

    name = "model-00001-of-00002.safetensors"
    revision = bench.hub.repositories[NAME].refs["main"]
    hf_hub_download(NAME, name, revision=revision, cache_dir=bench.cache, endpoint=bench.hub.url)
    bench.hub.forget()
    brought = bench.fetch()
    assert bench.hub.received(WEIGHTS) == 0
    assert brought.reused == 1
    assert tree(brought.folders["model"]) == FILES


def test_the_real_client_uses_what_penny_cached(bench: Bench) -> None:
    """A cache that penny filled is whole for huggingface_hub, without a network."""
    from huggingface_hub import snapshot_download

    bench.fetch()
    revision = bench.hub.repositories[NAME].refs["main"]
    snapshot = snapshot_download(NAME, revision=revision, cache_dir=bench.cache, local_files_only=True)
    assert tree(Path(snapshot)) == FILES


def test_a_broken_connection_is_resumed(bench: Bench) -> None:
    """A transfer that breaks off goes on where it stopped: no byte comes twice."""
    bench.hub.add(NAME, {**FILES, "model-00001-of-00002.safetensors": BIG})
    bench.hub.faults.cut[hashlib.sha256(BIG).hexdigest()] = [1 << 20, 1 << 20]
    brought = bench.fetch()
    assert bench.hub.received(BIG) == len(BIG)
    assert tree(brought.folders["model"])["model-00001-of-00002.safetensors"] == BIG


def test_an_earlier_runs_part_is_resumed(bench: Bench) -> None:
    """What an earlier penny left of a file is taken up by the next one."""
    part = bench.blob(WEIGHTS).with_name(f"{bench.blob(WEIGHTS).name}.penny.incomplete")
    part.parent.mkdir(parents=True)
    part.write_bytes(WEIGHTS[:200_000])
    bench.fetch()
    assert bench.hub.received(WEIGHTS) == len(WEIGHTS) - 200_000
    assert not part.exists()


def test_a_part_that_does_not_fit_is_dropped(bench: Bench) -> None:
    """An earlier part with other bytes costs one more transfer, and the file is right in the end."""
    part = bench.blob(WEIGHTS).with_name(f"{bench.blob(WEIGHTS).name}.penny.incomplete")
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 1000)
    brought = bench.fetch()
    assert tree(brought.folders["model"]) == FILES
    assert any("from its start" in line for line in bench.notes.lines)


def test_a_server_without_ranges_is_read_from_the_start(bench: Bench) -> None:
    """A server that answers a range with the whole file gives the right file all the same."""
    part = bench.blob(WEIGHTS).with_name(f"{bench.blob(WEIGHTS).name}.penny.incomplete")
    part.parent.mkdir(parents=True)
    part.write_bytes(WEIGHTS[:100])
    bench.hub.faults.ignore_range = True
    assert tree(bench.fetch().folders["model"]) == FILES


def test_other_bytes_are_drift(bench: Bench) -> None:
    """Bytes of the right length and another digest are refused with expected and got, and nothing of them is kept."""
    other = WEIGHTS[:-1] + b"!"
    expected = hashlib.sha256(WEIGHTS).hexdigest()
    bench.hub.faults.other_bytes[expected] = other
    with pytest.raises(DriftError, match="is not the file that was expected") as caught:
        bench.fetch()
    assert expected in caught.value.why
    assert hashlib.sha256(other).hexdigest() in caught.value.why
    assert not bench.blob(WEIGHTS).exists()
    assert not list(bench.blob(WEIGHTS).parent.glob(f"{expected}*"))


def test_a_file_without_end_is_refused(bench: Bench) -> None:
    """A server that sends more than the locked size is stopped at that size."""
    bench.hub.faults.other_bytes[hashlib.sha256(WEIGHTS).hexdigest()] = WEIGHTS + b"x" * (1 << 20)
    with pytest.raises(UnsafeInputError, match="does not end after"):
        bench.fetch()


def test_a_git_file_is_held_against_its_object_name(bench: Bench) -> None:
    """A lock whose sha256 fits and whose git object name does not is refused: it would poison the hub's cache."""
    checkpoint = checkpoint_of(bench.hub)
    files = tuple(f.model_copy(update={"blob": "a" * 40}) if f.path == "config.json" else f for f in checkpoint.listed)
    with pytest.raises(DriftError, match=r"git object a{40}"):
        bench.fetch(checkpoint.model_copy(update={"files": files}))


@pytest.mark.parametrize("damage", ["bytes", "short", "link-out", "folder"])
def test_a_damaged_cache_file_is_set_aside_and_fetched_again(bench: Bench, damage: str, tmp_path: Path) -> None:
    """Whatever became of a cached file, the right bytes are fetched, and what was there is kept aside."""
    blob = bench.blob(WEIGHTS)
    blob.parent.mkdir(parents=True)
    if damage == "bytes":
        blob.write_bytes(WEIGHTS[:-1] + b"?")
    elif damage == "short":
        blob.write_bytes(WEIGHTS[:10])
    elif damage == "link-out":
        outside = tmp_path / "outside"
        outside.write_bytes(b"secret")
        blob.symlink_to(outside)
    else:
        blob.mkdir()
    if damage == "folder":
        with pytest.raises((NotCheckedError, UsageError)):
            bench.fetch()
        return
    assert tree(bench.fetch().folders["model"]) == FILES
    assert blob.read_bytes() == WEIGHTS
    if damage == "link-out":
        assert outside.read_bytes() == b"secret"
    else:
        assert list(blob.parent.glob("*.damaged"))


def test_an_extra_file_never_reaches_the_engine(bench: Bench) -> None:
    """A file that somebody put into the snapshot or into the presented folder is not served."""
    bench.fetch()
    revision = bench.hub.repositories[NAME].refs["main"]
    snapshot = bench.cache / "models--some--model" / "snapshots" / revision
    (snapshot / "modeling_evil.py").write_text("print('hello')")
    checkpoint = checkpoint_of(bench.hub)
    folder = presented(bench.store, checkpoint, reporter=Silent())
    assert folder is not None
    assert tree(folder) == FILES
    (folder / "stray.json").write_text("{}")
    assert presented(bench.store, checkpoint, reporter=Silent()) is None
    assert tree(bench.fetch().folders["model"]) == FILES


def test_a_changed_byte_is_found_before_use(bench: Bench) -> None:
    """One byte that changed since the fetch, with time and size as they were, is found."""
    folder = bench.fetch().folders["model"]
    victim = folder / "model-00001-of-00002.safetensors"
    before = victim.stat()
    with victim.open("r+b") as file:
        file.seek(5000)
        file.write(b"\xff\xfe")
    os.utime(victim, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert presented(bench.store, checkpoint_of(bench.hub), reporter=Silent()) is None


@pytest.mark.parametrize("way", ["as the disk can", "hard links", "copies"])
def test_the_presented_folder_shares_bytes_where_it_can(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """On one disk the folder takes no second room; on another one the files are copied, and that is told."""
    if way != "as the disk can":
        monkeypatch.setattr(presenting, "_cloned", lambda *_: False)
    if way == "copies":

        def link(*_: object, **__: object) -> None:
            raise OSError(errno.EXDEV, "Invalid cross-device link")

        monkeypatch.setattr(os, "link", link)
    folder = bench.fetch().folders["model"]
    assert tree(folder) == FILES
    weights = folder / "model-00001-of-00002.safetensors"
    assert not weights.is_symlink()
    same = weights.stat().st_ino == bench.blob(WEIGHTS).stat().st_ino
    copied = any("6 files are copied" in line for line in bench.notes.lines)
    assert (same, copied) == {"hard links": (True, False), "copies": (False, True)}.get(way, (same, False))


def test_offline_takes_the_cache_and_nothing_else(bench: Bench) -> None:
    """Offline a cached checkpoint is verified; one that is not there is named with what is missing."""
    with pytest.raises(NotCheckedError, match=r"6 files of checkpoint model are not in the hub's cache"):
        bench.fetch(offline=True)
    assert bench.hub.requests == []
    bench.fetch()
    bench.store.__init__(bench.store.root.with_name("other"))  # type: ignore[misc]
    bench.hub.forget()
    assert tree(bench.fetch(offline=True).folders["model"]) == FILES
    assert bench.hub.requests == []


def test_a_gated_repository(bench: Bench) -> None:
    """A gated repository says what its publisher asks for; with a token that may read it is fetched."""
    bench.hub.repository(NAME).gated = True
    with pytest.raises(NotCheckedError, match="some/model is gated") as caught:
        bench.fetch()
    assert "accept them on the page of some/model" in caught.value.todo


def test_the_users_token_is_used_and_never_shown(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The token goes to the hub and not to the network behind it, and stands in no error, note, lock or store."""
    bench.hub.repository(NAME).gated = True
    monkeypatch.setenv("HF_TOKEN", "hf_allowed")
    bench.fetch()
    to_cdn = [each for each in bench.hub.requests if each.path.startswith("cdn:")]
    to_hub = [each for each in bench.hub.requests if each.path.startswith("hub:")]
    assert to_cdn
    assert all("authorization" not in each.headers for each in to_cdn)
    assert all(each.headers["authorization"] == "Bearer hf_allowed" for each in to_hub)
    monkeypatch.setenv("HF_TOKEN", "hf_refused_secret")
    bench.store.__init__(bench.store.root.with_name("other"))  # type: ignore[misc]
    bench.cache = bench.cache.with_name("empty")
    with pytest.raises(NotCheckedError) as caught:
        bench.fetch()
    told = f"{caught.value} {bench.notes.lines}"
    assert "hf_refused_secret" not in told
    assert "Signature" not in told
    written = b"".join(path.read_bytes() for path in bench.store.root.parent.rglob("*") if path.is_file())
    assert b"hf_allowed" not in written
    assert b"hf_refused" not in written


def test_a_vanished_repository_and_a_vanished_revision_differ(bench: Bench) -> None:
    """Each says what vanished, and neither falls back to a branch."""
    checkpoint = checkpoint_of(bench.hub)
    repository = bench.hub.repositories[NAME]
    revision = repository.refs["main"]
    kept = repository.commits.pop(revision)
    repository.refs["main"] = repository.commit({"config.json": b"{}"})
    with pytest.raises(DriftError, match="has no revision"):
        bench.fetch(checkpoint)
    repository.commits[revision] = {path: data for path, data in kept.items() if path != "README.md"}
    with pytest.raises(DriftError, match=r"has no file 'README\.md'"):
        bench.fetch(checkpoint)
    del bench.hub.repositories[NAME]
    with pytest.raises(DriftError, match="some/model is not on the hub"):
        bench.fetch(checkpoint)


def test_too_many_requests_are_waited_for(bench: Bench) -> None:
    """429 with a short wait is waited for and then succeeds."""
    bench.hub.faults.refuse = [(429, {"Retry-After": "1"}), (503, {})]
    assert tree(bench.fetch().folders["model"]) == FILES


def test_patience_has_an_end(bench: Bench) -> None:
    """A wait beyond all patience is an error at once, and so is a limit that does not end."""
    bench.hub.faults.refuse = [(429, {"Retry-After": str(int(asking.LONGEST_WAIT) + 1)})] * 50
    with pytest.raises(NotCheckedError, match="takes no more requests now") as caught:
        bench.fetch()
    assert "61 seconds" in caught.value.why
    bench.hub.faults.refuse = [(429, {})] * 500
    with pytest.raises(NotCheckedError, match="takes no more requests now"):
        bench.fetch()


def test_a_mirror_that_is_down(bench: Bench) -> None:
    """A hub that cannot be reached, and one that answers 500, are named without anything secret of their address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    bench.patience = Patience(attempts=2, first_wait=0.01)
    bench.hub.url = f"http://user:secret@127.0.0.1:{port}"
    with pytest.raises(NotCheckedError, match="the hub cannot be reached") as caught:
        bench.fetch()
    assert "secret" not in str(caught.value)
    assert "no connection" in caught.value.why
    bench.hub.url = f"http://127.0.0.1:{bench.hub.servers[0].server_address[1]}"
    bench.hub.faults.refuse = [(500, {})] * 100
    with pytest.raises(NotCheckedError, match="does not give some/model"):
        bench.fetch()


def test_a_redirect_to_a_file_is_refused(bench: Bench) -> None:
    """A redirect may not lead to another scheme."""
    bench.hub.faults.redirect = "file:///nowhere"
    with pytest.raises(UnsafeInputError, match="a redirect from http to 'file' is refused"):
        bench.fetch()


def test_files_beyond_plain_http_go_through_the_client(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a hub gives through Xet only is brought by its client, and verified like everything else."""
    monkeypatch.setattr(download, "LARGEST_BY_HTTP", 100_000)
    assert tree(bench.fetch().folders["model"]) == FILES
    assert any(each.method == "HEAD" for each in bench.hub.requests)
    bench.hub.faults.other_bytes[hashlib.sha256(MORE).hexdigest()] = MORE[:-1] + b"!"
    bench.store.__init__(bench.store.root.with_name("other"))  # type: ignore[misc]
    bench.cache = bench.cache.with_name("empty")
    with pytest.raises(DriftError, match="is not the file that was expected"):
        bench.fetch()


def test_no_room(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk without room is named before anything is transferred."""
    monkeypatch.setattr("reproducer.hub.fetching.free_bytes", lambda _: 1000)
    with pytest.raises(NotCheckedError, match="the disk is full") as caught:
        bench.fetch()
    assert "1000 are free" in caught.value.why
    assert bench.hub.requests == []


def test_unsound_safetensors_are_refused(bench: Bench) -> None:
    """A file whose tensors overlap is refused although its digest is the locked one."""
    broken = WEIGHTS[:-5000]
    bench.hub.add(NAME, {**FILES, "model-00001-of-00002.safetensors": broken})
    with pytest.raises(UnsafeInputError, match="cover its data"):
        bench.fetch()


def test_a_pickle_under_another_name_is_refused(bench: Bench) -> None:
    """Content that runs code when it is loaded is found whatever the file is called, unless the lock names it."""
    import pickle

    data = pickle.dumps({"weights": list(range(2000))}) + b"\0" * 4096
    bench.hub.add(NAME, {"config.json": CONFIG, "weights.data": data})
    with pytest.raises(UnsafeInputError, match=r"'weights\.data' is a pickle"):
        bench.fetch()
    allowed = checkpoint_of(bench.hub, pickles=("weights.data",))
    assert bench.fetch(allowed).files == 2


def test_a_pickle_in_a_lock_must_be_allowed_by_it(bench: Bench) -> None:
    """A lock that lists a pickle and does not say that it may be one is refused before anything is fetched."""
    bench.hub.add(NAME, {"config.json": CONFIG, "pytorch_model.bin": b"\x80\x02}q\x00."})
    with pytest.raises(UnsafeInputError, match=r"pytorch_model\.bin"):
        bench.fetch()
    assert bench.hub.requests == []


@pytest.mark.parametrize("paths", [("A.txt", "a.txt"), ("a", "a/b"), ("X/one", "x/two")])
def test_names_that_collide_are_refused(bench: Bench, paths: tuple[str, str]) -> None:
    """Two paths of a lock that are one on another disk, or file and folder at once, are refused."""
    checkpoint = checkpoint_of(bench.hub)
    files = tuple(checkpoint.listed[0].model_copy(update={"path": path}) for path in paths)
    with pytest.raises(UnsafeInputError):
        bench.fetch(checkpoint.model_copy(update={"files": files}))

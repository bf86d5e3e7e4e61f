"""Files by digest."""

import hashlib
import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reproducer.errors import DriftError, NotCheckedError, UnsafeInputError
from reproducer.store import Store, default_root


def leftovers(store: Store) -> list[str]:
    """What lies where nothing stays."""
    return sorted(
        str(path.relative_to(store.root)) for piece in ("work", "locks") for path in (store.root / piece).iterdir()
    )


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=5000))
def test_what_goes_in_comes_out(tmp_path: Path, data: bytes) -> None:
    """A file that was added is served with the same bytes, read-only, and nothing else stays behind."""
    store = Store(tmp_path / "store")
    sha256 = hashlib.sha256(data).hexdigest()
    source = tmp_path / "source"
    source.write_bytes(data)
    path = store.add_file(source, sha256=sha256, size=len(data), what="source")
    assert path.read_bytes() == data
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    assert store.verified(sha256, len(data), what="source") == path
    assert store.add_bytes(data) == sha256
    assert leftovers(store) == []


def test_a_wrong_file_is_refused_and_not_kept(store: Store, tmp_path: Path) -> None:
    """Other bytes than expected: the error has expected and got, and the store holds nothing."""
    (tmp_path / "source").write_bytes(b"abc")
    right, got = hashlib.sha256(b"xyz").hexdigest(), hashlib.sha256(b"abc").hexdigest()
    with pytest.raises(DriftError, match=f"expected sha256 {right} of 3 bytes, got {got} of 3 bytes"):
        store.add_file(tmp_path / "source", sha256=right, size=3, what="x")
    assert not store.has(right)
    assert not store.has(got)
    assert list((store.root / "blobs").iterdir()) == []
    assert leftovers(store) == []


def test_a_file_larger_than_expected_is_read_no_further(store: Store, tmp_path: Path) -> None:
    """The copy ends one piece after the size that is expected."""
    (tmp_path / "source").write_bytes(b"a" * 100)
    with pytest.raises(DriftError, match="got more than 10 bytes"):
        store.add_file(tmp_path / "source", sha256="0" * 64, size=10, what="x")


def test_damage_is_found_set_aside_and_healed(store: Store) -> None:
    """A damaged file is not served, not deleted, and can be added again."""
    sha256 = store.add_bytes(b"good")
    path = store.blob_path(sha256)
    path.chmod(0o644)
    path.write_bytes(b"evil")
    got = hashlib.sha256(b"evil").hexdigest()
    with pytest.raises(DriftError, match=f"expected sha256 {sha256} of 4 bytes, got {got} of 4 bytes") as caught:
        store.verified(sha256, 4, what="the wheel")
    assert "the wheel is damaged" in str(caught.value)
    assert not store.has(sha256)
    (kept,) = (store.root / "damaged").iterdir()
    assert kept.read_bytes() == b"evil"
    assert str(kept) in str(caught.value)
    assert store.add_bytes(b"good") == sha256
    assert store.verified(sha256, 4, what="the wheel") == path


def test_damage_is_healed_by_adding(store: Store, tmp_path: Path) -> None:
    """Adding a file whose copy in the store is damaged sets that aside and stores the good one."""
    sha256 = store.add_bytes(b"good")
    store.blob_path(sha256).chmod(0o644)
    store.blob_path(sha256).write_bytes(b"evil")
    (tmp_path / "source").write_bytes(b"good")
    path = store.add_file(tmp_path / "source", sha256=sha256, size=4, what="x")
    assert path.read_bytes() == b"good"
    assert len(list((store.root / "damaged").iterdir())) == 1


def test_a_wrong_size_in_the_lock_is_not_damage(store: Store) -> None:
    """Right digest and another size: an error about the lock; the file stays."""
    sha256 = store.add_bytes(b"good")
    with pytest.raises(DriftError, match="another size"):
        store.verified(sha256, 5, what="x")
    assert store.has(sha256)


def test_an_absent_file_is_drift(store: Store) -> None:
    """What is not in the store is named."""
    with pytest.raises(DriftError, match="the wheel is not in the store"):
        store.verified("0" * 64, 1, what="the wheel")


def test_a_link_in_place_of_a_file_is_never_served(store: Store, tmp_path: Path) -> None:
    """A link to the right bytes is set aside all the same: its target is not the store's."""
    sha256 = store.add_bytes(b"good")
    (tmp_path / "copy").write_bytes(b"good")
    store.blob_path(sha256).unlink()
    store.blob_path(sha256).symlink_to(tmp_path / "copy")
    assert not store.has(sha256)
    with pytest.raises(DriftError, match="got a symbolic link"):
        store.verified(sha256, 4, what="x")
    assert (tmp_path / "copy").exists()


def test_a_link_in_place_of_a_folder_is_refused(store: Store, tmp_path: Path) -> None:
    """A folder of digests that leads out of the store is refused before anything is written there."""
    sha256 = hashlib.sha256(b"good").hexdigest()
    store.prepare()
    (tmp_path / "elsewhere").mkdir()
    (store.root / "blobs" / sha256[:2]).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeInputError, match="symbolic link"):
        store.add_bytes(b"good")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "0" * 63, "0" * 65, "G" * 64, "A" * 64, "0" * 64 + "\n"])
def test_only_a_digest_names_a_file(store: Store, digest: str) -> None:
    """What is no digest never becomes a path."""
    with pytest.raises(UnsafeInputError):
        store.blob_path(digest)


def test_many_threads_add_the_same_file(store: Store, tmp_path: Path) -> None:
    """All get the same whole file and nothing stays behind."""
    data = os.urandom(300_000)
    sha256 = hashlib.sha256(data).hexdigest()
    (tmp_path / "source").write_bytes(data)
    faults: list[BaseException] = []

    def add() -> None:
        try:
            Store(store.root).add_file(tmp_path / "source", sha256=sha256, size=len(data), what="x")
        except BaseException as error:  # noqa: BLE001  a thread's error must reach the test
            faults.append(error)

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert store.verified(sha256, len(data), what="x").read_bytes() == data
    assert leftovers(store) == []


def test_an_unreadable_source_is_one_clear_error(store: Store, tmp_path: Path) -> None:
    """A file that cannot be read could not be checked."""
    with pytest.raises(NotCheckedError, match="cannot be read"):
        store.add_file(tmp_path / "missing", sha256="0" * 64, size=1, what="x")


def test_the_root_is_the_users_cache_or_what_they_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """PENNY_STORE wins over the cache folder."""
    monkeypatch.delenv("PENNY_STORE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert default_root() == tmp_path / "cache" / "penny"
    monkeypatch.setenv("PENNY_STORE", str(tmp_path / "named"))
    assert default_root() == tmp_path / "named"

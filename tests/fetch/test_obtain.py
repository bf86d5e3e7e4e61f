"""Artefacts from indexes and find-links into the store."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.sources import Artefact
from reproducer.errors import DriftError, NotCheckedError
from reproducer.fetch import fetch_artefacts
from reproducer.fetch.indexes import Indexes
from reproducer.fetch.web import Patience
from reproducer.store import Store

WHEEL = "six-1.0-py3-none-any.whl"
NOWHERE = "http://127.0.0.1:9/simple"
Bring = Callable[..., Any]


@pytest.fixture
def bring(store: Store, indexes: Indexes, quick: Patience, reporter: Any) -> Bring:
    """fetch_artefacts with this test's store, and its one index unless told otherwise."""

    def run(*choices: Artefact | tuple[Artefact, ...], **keys: Any) -> Any:
        needs = [each if isinstance(each, tuple) else (each,) for each in choices]
        return fetch_artefacts(needs, store, **{"indexes": indexes, "reporter": reporter, "patience": quick, **keys})

    return run


@pytest.mark.parametrize("speaks_json", [True, False])
@pytest.mark.parametrize("says_digest", [True, False])
def test_from_an_index(index: Any, bring: Bring, store: Store, *, speaks_json: bool, says_digest: bool) -> None:
    """Both forms of the simple API, with and without digests on the page."""
    index.json = speaks_json
    habits = {} if says_digest else {"listed_sha256": None}
    wheel = index.add(WHEEL, b"wheel" * 1000, **habits)
    obtained = bring(wheel)
    assert (obtained.chosen, obtained.downloaded, obtained.reused) == ((wheel,), 5000, 0)
    assert store.verified(wheel.sha256, wheel.size, what="x").read_bytes() == b"wheel" * 1000
    assert list((store.root / "partial").iterdir()) == []
    assert list((store.root / "locks").iterdir()) == []


def test_what_is_there_is_verified_and_not_asked_for(index: Any, bring: Bring) -> None:
    """A second run sends no request at all."""
    wheel = index.add(WHEEL, b"wheel")
    bring(wheel)
    index.requests.clear()
    obtained = bring(wheel)
    assert (obtained.downloaded, obtained.reused) == (0, 1)
    assert index.requests == []


def test_what_is_damaged_in_the_store_is_fetched_again(index: Any, bring: Bring, store: Store, reporter: Any) -> None:
    """The damaged file is set aside with a note, and the right one is there afterwards."""
    wheel = index.add(WHEEL, b"wheel")
    bring(wheel)
    store.blob_path(wheel.sha256).chmod(0o644)
    store.blob_path(wheel.sha256).write_bytes(b"wheex")
    assert bring(wheel).downloaded == 5
    assert store.verified(wheel.sha256, 5, what="x").read_bytes() == b"wheel"
    (note,) = reporter.notes
    assert "damaged in the store" in note
    assert len(list((store.root / "damaged").iterdir())) == 1


def test_a_wrong_size_in_the_lock_is_drift(index: Any, bring: Bring) -> None:
    """What is in the store under the right digest with another size than the lock's is an error, not a download."""
    wheel = index.add(WHEEL, b"wheel")
    bring(wheel)
    with pytest.raises(DriftError, match="another size"):
        bring(wheel.model_copy(update={"size": 6}))


def test_many_packages_at_once(index: Any, bring: Bring) -> None:
    """Ninety packages come in order of the needs, each page asked for once, each file once."""
    wheels = [index.add(f"p{number}-1.0-py3-none-any.whl", b"x" * number) for number in range(90)]
    assert bring(*wheels).chosen == tuple(wheels)
    assert set(index.pages().values()) == {1}
    assert all(len(index.gets(wheel.filename)) == 1 for wheel in wheels)


def test_the_same_file_for_two_needs_is_fetched_once(index: Any, bring: Bring) -> None:
    """Two needs for one file are one download."""
    wheel = index.add(WHEEL, b"wheel" * 100)
    again = Artefact(**{**wheel.model_dump(), "version": "1.0"})
    obtained = bring(wheel, again)
    assert obtained.downloaded == 500
    assert len(index.gets(WHEEL)) == 1


def test_find_links_come_first(index: Any, bring: Bring, tmp_path: Path) -> None:
    """A folder with the file makes requests unnecessary; a file URL and a plain page serve too."""
    wheel = index.add(WHEEL, b"wheel")
    links = tmp_path / "my links"
    links.mkdir()
    (links / WHEEL).write_bytes(b"wheel")
    assert bring(wheel, indexes=Indexes((index.url,), (links.as_uri(),))).downloaded == 5
    assert index.requests == []


def test_a_find_links_page(index: Any, bring: Bring, tmp_path: Path) -> None:
    """An HTML file in a folder, and a page on the web, link to files."""
    wheel = index.add(WHEEL, b"wheel")
    (tmp_path / WHEEL).write_bytes(b"wheel")
    (tmp_path / "page.html").write_text(f'<a href="{WHEEL}">x</a>')
    assert bring(wheel, indexes=Indexes((), ((tmp_path / "page.html").as_uri(),))).downloaded == 5
    six = index.add("six-2.0-py3-none-any.whl", b"two")
    assert bring(six, indexes=Indexes((), (f"{index.url}/six/",))).downloaded == 3


def test_an_index_on_disk(make_artefact: Any, bring: Bring, tmp_path: Path) -> None:
    """A file URL of a simple index reads each project's index.html and follows its links; a missing project is fine."""
    (tmp_path / "simple" / "six").mkdir(parents=True)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / WHEEL).write_bytes(b"wheel")
    digest = hashlib.sha256(b"wheel").hexdigest()
    (tmp_path / "simple" / "six" / "index.html").write_text(f'<a href="../../files/{WHEEL}#sha256={digest}">x</a>')
    place = Indexes(((tmp_path / "simple").as_uri(),))
    assert bring(make_artefact(WHEEL, b"wheel"), indexes=place).downloaded == 5
    with pytest.raises(NotCheckedError, match="could not be fetched"):
        bring(make_artefact("other-1.0-py3-none-any.whl", b"x"), indexes=place)


def test_sources_that_are_missing_do_not_matter_while_others_serve(
    index: Any, bring: Bring, tmp_path: Path, reporter: Any
) -> None:
    """A folder that is not there, an index nobody answers and one that lacks the project are all fine."""
    wheel = index.add(WHEEL, b"wheel")
    place = Indexes(
        (NOWHERE, (tmp_path / "no-index").as_uri(), f"{index.root}/empty", index.url), ((tmp_path / "none").as_uri(),)
    )
    assert bring(wheel, indexes=place).downloaded == 5
    assert reporter.notes == []


def test_everything_that_is_missing_stands_in_one_error(
    index: Any, make_artefact: Any, bring: Bring, tmp_path: Path
) -> None:
    """All files, and all sources that could not be asked, with the reason; nothing is downloaded before."""
    there = index.add(WHEEL, b"wheel")
    a, b = make_artefact("a-1.0-py3-none-any.whl", b"a"), make_artefact("b-1.0.tar.gz", b"b")
    place = Indexes((index.url, NOWHERE), ((tmp_path / "none").as_uri(),))
    with pytest.raises(NotCheckedError) as caught:
        bring(there, a, b, indexes=place)
    message = str(caught.value)
    assert "2 files could not be fetched: a-1.0-py3-none-any.whl, b-1.0.tar.gz" in message
    assert f"{NOWHERE}: no connection to 127.0.0.1" in message
    assert "there is no such folder" in message
    assert index.gets(WHEEL) == []


def test_an_index_that_is_down_is_asked_with_patience_and_then_left(
    index: Any, make_artefact: Any, bring: Bring
) -> None:
    """503 is tried again a few times; what is then missing names the index and its answer."""
    index.down = 503
    wheels = [make_artefact(f"p{number}-1.0-py3-none-any.whl", b"x") for number in range(40)]
    with pytest.raises(NotCheckedError, match="answered 503"):
        bring(*wheels)
    assert len(index.requests) <= 16 * 4


def test_an_index_that_recovers(index: Any, bring: Bring) -> None:
    """429 and 503 pass."""
    wheel = index.add(WHEEL, b"wheel")
    index.page_statuses = [429, 503]
    assert bring(wheel).downloaded == 5


def test_an_index_that_asks_for_a_login(index: Any, bring: Bring, store: Store) -> None:
    """The user's login is sent for pages and for files of the same host; an error names the answer, not the login."""
    wheel = index.add(WHEEL, b"wheel")
    index.login = "Basic bWU6c2VjcmV0"
    with pytest.raises(NotCheckedError, match="answered 401"):
        bring(wheel)
    with_login = index.url.replace("http://", "http://me:secret@")
    assert bring(wheel, indexes=Indexes((with_login,))).downloaded == 5
    far = index.add("far-1.0.tar.gz", b"far", page={"url": f"{index.root}/files/far-1.0.tar.gz"})
    assert bring(far, indexes=Indexes((with_login,))).downloaded == 3
    index.login = "Basic other"
    store.blob_path(wheel.sha256).unlink()
    with pytest.raises(NotCheckedError) as caught:
        bring(wheel, indexes=Indexes((with_login,)))
    assert "secret" not in str(caught.value)


def test_the_next_index_is_asked_where_a_digest_differs(index: Any, other_index: Any, bring: Bring) -> None:
    """A file of the same name and another digest is passed over."""
    index.add(WHEEL, b"other")
    wheel = other_index.add(WHEEL, b"wheel")
    assert bring(wheel, indexes=Indexes((index.url, other_index.url))).chosen == (wheel,)
    assert index.gets(WHEEL) == []


def test_a_liar_is_passed_over(index: Any, other_index: Any, bring: Bring, store: Store) -> None:
    """A page that promises the digest and serves other bytes: nothing of it is kept, the next index serves."""
    wheel = other_index.add(WHEEL, b"wheel")
    index.add(WHEEL, b"wheex", listed_sha256=wheel.sha256)
    assert bring(wheel, indexes=Indexes((index.url, other_index.url))).chosen == (wheel,)
    assert not store.has(hashlib.sha256(b"wheex").hexdigest())


@pytest.mark.parametrize("listed", ["truth", "lie", "nothing"])
def test_only_other_bytes_are_drift(index: Any, make_artefact: Any, bring: Bring, store: Store, listed: str) -> None:
    """Expected and got digest stand in the error, whatever the page says; nothing is kept."""
    wheel = make_artefact(WHEEL, b"wheel")
    got = hashlib.sha256(b"wheex").hexdigest()
    says = {"truth": got, "lie": wheel.sha256, "nothing": None}[listed]
    index.add(WHEEL, b"wheex", listed_sha256=says)
    with pytest.raises(DriftError, match=f"expected sha256 {wheel.sha256} of 5 bytes, got {got}"):
        bring(wheel)
    assert list((store.root / "partial").iterdir()) == []
    assert list((store.root / "blobs").iterdir()) == []
    assert list((store.root / "locks").iterdir()) == []


def test_other_bytes_in_find_links_are_drift(make_artefact: Any, bring: Bring, tmp_path: Path) -> None:
    """A local file of the right name and other bytes is an error with both digests."""
    (tmp_path / WHEEL).write_bytes(b"wheex")
    wheel = make_artefact(WHEEL, b"wheel")
    with pytest.raises(DriftError, match=f"got {hashlib.sha256(b'wheex').hexdigest()} of 5 bytes"):
        bring(wheel, indexes=Indexes((), (tmp_path.as_uri(),)))


def test_drift_and_missing_files_together(index: Any, make_artefact: Any, bring: Bring) -> None:
    """Both stand in one error, and both in its exit code."""
    index.add(WHEEL, b"wheex")
    with pytest.raises(NotCheckedError) as caught:
        bring(make_artefact(WHEEL, b"wheel"), make_artefact("a-1.0.tar.gz", b"a"))
    assert caught.value.exit_code == 64 + 1 + 32
    assert "a-1.0.tar.gz" in str(caught.value)
    assert "expected sha256" in str(caught.value)


def test_the_best_choice_that_is_served(index: Any, make_artefact: Any, bring: Bring) -> None:
    """Where no source has the best choice, the next one does; what is in the store beats what is not."""
    best = make_artefact("torch-2.0+cpu-cp311-cp311-linux_x86_64.whl", b"cpu")
    public = index.add("torch-2.0-cp311-cp311-linux_x86_64.whl", b"public")
    assert bring((best, public)).chosen == (public,)
    index.add(best.filename, b"cpu")
    assert bring((best, public)).chosen == (public,)
    assert bring(best).chosen == (best,)
    assert bring((best, public)).chosen == (best,)


def test_the_next_choice_where_the_best_is_damaged_at_its_source(index: Any, make_artefact: Any, bring: Bring) -> None:
    """A best choice whose source lies does not stand in the way of the next one."""
    best = make_artefact("torch-2.0+cpu-cp311-cp311-linux_x86_64.whl", b"cpu")
    index.add(best.filename, b"cpx", listed_sha256=best.sha256)
    public = index.add("torch-2.0-cp311-cp311-linux_x86_64.whl", b"public")
    assert bring((best, public)).chosen == (public,)


@pytest.mark.parametrize("speaks_json", [True, False])
def test_yanked_files_are_fetched_and_said(index: Any, bring: Bring, reporter: Any, *, speaks_json: bool) -> None:
    """A lock may pin what its publisher withdrew; a note says so."""
    index.json = speaks_json
    wheel = index.add(WHEEL, b"wheel", page={"yanked": True})
    assert bring(wheel).chosen == (wheel,)
    assert reporter.notes == [f"{WHEEL} was withdrawn by its publisher and is used all the same"]


def test_offline_uses_the_store_alone(index: Any, make_artefact: Any, bring: Bring) -> None:
    """What is there is used; all that is missing is named; no source is asked."""
    there = index.add(WHEEL, b"wheel")
    bring(there)
    index.requests.clear()
    assert bring(there, offline=True).reused == 1
    a, b = index.add("a-1.0.tar.gz", b"a"), make_artefact("b-1.0.tar.gz", b"b")
    with pytest.raises(NotCheckedError, match=r"2 files are not in the store: a-1.0.tar.gz, b-1.0.tar.gz"):
        bring(there, a, b, offline=True)
    assert index.requests == []


def test_no_room_is_known_before(index: Any, bring: Bring, store: Store) -> None:
    """A size that no disk has is refused before anything is transferred."""
    wheel = index.add(WHEEL, b"wheel").model_copy(update={"size": 2**52})
    with pytest.raises(NotCheckedError, match=f"the disk is full.*needs {2**52} bytes") as caught:
        bring(wheel)
    assert str(store.root) in str(caught.value)
    assert index.gets(WHEEL) == []


def test_one_reason_for_many_files_stands_once(index: Any, bring: Bring) -> None:
    """Forty files behind one fault are forty names and one reason."""
    wheels = [index.add(f"p{number}-1.0.tar.gz", b"x" * number, statuses=[403]) for number in range(1, 41)]
    with pytest.raises(NotCheckedError) as caught:
        bring(*wheels)
    message = str(caught.value)
    assert all(wheel.filename in message for wheel in wheels)
    assert message.count("answered 403") == 1
    assert f"40 files from {index.url}: answered 403" in message

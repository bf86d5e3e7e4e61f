"""Seals: what is blessed, what never is, and what a seal from a stranger can do."""

import fcntl
import json
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from reproducer.cache import sealing
from reproducer.cache.folders import open_kv, open_namespace
from reproducer.cache.model import Sealed
from reproducer.cache.seal import Row, SealWriter
from reproducer.canonical import content_digest
from reproducer.errors import NotCheckedError, UnsafeInputError
from reproducer.identity.root import pages_of
from reproducer.progress import Silent
from tests.cache.conftest import Place, command, key, spoil, tree, wait_until


def sealed(place: Place, name: str = "first", *, running: bool = False, accept_changes: bool = False) -> Sealed:
    """Seal the namespace of a lock."""
    with open_kv(place.kv) as handle, open_namespace(place.kv, handle, place.namespace(name).name) as root:
        return sealing.seal(root, running=running, accept_changes=accept_changes, reporter=Silent())


def rows(root: Path) -> dict[str, str]:
    """The sealed pages with their digests, as they lie there."""
    seal = json.loads((root / "seal.json").read_text("utf-8"))
    (path,) = (root / "seal").iterdir()
    assert path.name == f"{seal['list_sha256']}.jsonl"
    return {line[0]: line[1] for line in map(json.loads, path.read_text("utf-8").splitlines())}


def test_all_pages_are_sealed(place: Place) -> None:
    """Every file of a page is in the list with its digest; sealing again adds nothing and gives the same list."""
    root = place.root(pages=40)
    first = sealed(place)
    before = rows(root)
    again = sealed(place)

    assert (first.pages, first.added, first.size) == (80, 80, 80 * 4096)
    assert set(before) == {path.name for path in pages_of(root).iterdir()}
    assert (again.pages, again.added) == (80, 0)
    assert rows(root) == before


def test_names_of_any_kind(place: Place) -> None:
    """A name with a newline, one that is not UTF-8 and one in a folder of pages are sealed and found again."""
    root = place.root()
    pages = pages_of(root)
    (pages / "a\nb").write_bytes(b"one")
    Path(os.fsdecode(os.fsencode(pages) + b"/\xff\xfe")).write_bytes(b"two")
    (pages / "0f").mkdir()
    (pages / "0f" / "page").write_bytes(b"three")
    sealed(place)

    assert set(rows(root)) == {"a\nb", os.fsdecode(b"\xff\xfe"), "0f/page"}
    assert sealed(place).added == 0


def test_a_damaged_page_is_never_blessed(place: Place) -> None:
    """A page whose bytes changed keeps the digest it had and is told; only by name are changes accepted."""
    root = place.root(pages=3)
    sealed(place)
    before = rows(root)
    bad = place.path(root, 1, "v")
    spoil(bad)

    said = sealed(place)
    assert (said.damaged, [fault.page for fault in said.faults]) == (1, [bad.name])
    assert rows(root) == before

    accepted = sealed(place, accept_changes=True)
    assert (accepted.damaged, accepted.accepted) == (0, 1)
    assert rows(root)[bad.name] != before[bad.name]


def test_what_is_not_complete_is_left_out(place: Place) -> None:
    """An empty file, a link, a pipe and a file that is shorter than the others of its kind are counted, not sealed."""
    root = place.root(pages=3)
    pages = pages_of(root)
    (pages / f"{key(7)}_model_0_1_k").write_bytes(b"")
    (pages / f"{key(8)}_model_0_1_k").write_bytes(b"cut off")
    (pages / "link").symlink_to(root / "factors.json")
    os.mkfifo(pages / "pipe")

    said = sealed(place)
    assert (said.pages, said.changing) == (6, 4)


def test_a_running_server_may_be_writing(place: Place) -> None:
    """Beside a server a file of the last seconds is left out; when the server has ended it is sealed."""
    root = place.root(pages=2)
    place.page(root, 2, "k", age_s=0)

    assert (sealed(place, running=True).pages, sealed(place, running=False).pages) == (4, 5)


def test_a_page_that_changes_while_it_is_read(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that grows between the first look and the last byte is counted as changing, and not sealed."""
    root = place.root(pages=2)
    growing = pages_of(root) / "growing"
    growing.write_bytes(b"page")
    number = growing.stat().st_ino

    def grow(handle: int, *_: int) -> None:  # called between the first look at a file and its bytes
        if os.fstat(handle).st_ino == number:
            with growing.open("ab") as file:
                file.write(b"more")

    monkeypatch.setattr(os, "posix_fadvise", grow)
    said = sealed(place)
    assert growing.read_bytes() == b"pagemore"
    assert (said.pages, said.changing) == (4, 1)
    assert growing.name not in rows(root)


def test_a_sealed_page_that_changes_while_it_is_read(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps the digest it had, and is counted as changing."""
    root = place.root(pages=2)
    sealed(place)
    before = rows(root)
    touched = place.path(root, 0, "k")
    number = touched.stat().st_ino

    def touch(handle: int, *_: int) -> None:
        if os.fstat(handle).st_ino == number:
            touched.write_bytes(b"n" * 4096)

    monkeypatch.setattr(os, "posix_fadvise", touch)
    said = sealed(place, accept_changes=True)
    assert (said.changing, said.accepted, said.damaged) == (1, 0, 0)
    assert rows(root) == before


def test_a_file_is_written_all_the_time(place: Place) -> None:
    """A real writer beside the sealing: no digest in the seal is one of bytes that were still being written."""
    root = place.root(pages=30)
    page = pages_of(root) / "written"
    done = threading.Event()

    def write() -> None:
        with page.open("wb") as file:
            while not done.is_set():
                file.write(os.urandom(4096))
                file.flush()
                time.sleep(0.0005)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_until(page.exists)
        for _ in range(5):
            said = sealed(place, running=True)
            assert page.name not in rows(root)
            assert said.changing == 1
    finally:
        done.set()
        writer.join()


@pytest.mark.parametrize("name", ["seal.json", "list"])
def test_a_seal_that_is_cut_short(place: Place, name: str) -> None:
    """Half a seal, or half a list, is no seal: nothing is checked or resealed, until changes are accepted."""
    root = place.root(pages=2)
    sealed(place)
    path = root / name if name == "seal.json" else next((root / "seal").iterdir())
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    before = tree(root)

    with pytest.raises(NotCheckedError):
        sealed(place)
    place.json("verify", root.name, code=64 + 32)
    assert tree(root) == before
    assert sealed(place, accept_changes=True).pages == 4


def test_a_seal_is_of_one_namespace(place: Place) -> None:
    """The seal and list of another namespace, copied here, say nothing."""
    first, second = place.root("first", 2), place.root("second", 2)
    sealed(place)
    (second / "seal").mkdir()
    for path in (first / "seal.json", next((first / "seal").iterdir())):
        (second / path.relative_to(first)).write_bytes(path.read_bytes())

    with pytest.raises(NotCheckedError, match="another namespace"):
        sealed(place, "second")


@pytest.mark.parametrize("path", ["../x", "/x", "a//b", "./a", "a/../../factors.json", "\0", "\ud800"])
def test_a_seal_that_names_something_outside(place: Place, path: str) -> None:
    """A seal whose digests hold, and which names something outside the pages, is refused whole; nothing moves."""
    root = place.root(pages=2)
    (root.parent / "x").write_bytes(b"mine")
    with open_kv(place.kv) as handle, open_namespace(place.kv, handle, root.name) as opened, SealWriter(opened) as made:
        made.add(Row(path, "0" * 64, 4))
        made.finish()
    before = tree(place.kv)

    with pytest.raises(UnsafeInputError):
        sealed(place)
    place.json("verify", root.name, code=2)
    assert tree(place.kv) == before


def test_a_forged_seal(place: Place) -> None:
    """A seal that was edited by hand does not hold."""
    root = place.root(pages=2)
    sealed(place)
    data = json.loads((root / "seal.json").read_text("utf-8"))
    (root / "seal.json").write_text(json.dumps({**data, "pages": 3}), encoding="utf-8")
    with pytest.raises(NotCheckedError, match="its digest"):
        sealed(place)
    content = {**data, "pages": 3}
    del content["sha256"]
    (root / "seal.json").write_text(json.dumps({**content, "sha256": content_digest(content)}), encoding="utf-8")
    with pytest.raises(NotCheckedError, match="add up"):
        sealed(place)


def test_two_seals_at_once(place: Place) -> None:
    """Two processes wait for a third that works on the pages, and then for each other; both succeed."""
    root = place.root(pages=60)
    arguments = [*command(), "seal", root.name, "--kv", str(place.kv), "--json"]
    handle = os.open(root, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        both = [
            subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)
        ]
        for each in both:
            assert each.stderr is not None
            assert "waiting for another penny" in each.stderr.readline()
        assert not (root / "seal.json").exists()
    finally:
        os.close(handle)
    said = [json.loads(each.communicate()[0])["namespaces"][0] for each in both]

    assert [each.returncode for each in both] == [0, 0]
    assert [each["pages"] for each in said] == [120, 120]
    assert sorted(each["added"] for each in said) == [0, 120]
    assert len(rows(root)) == 120


def test_a_killed_seal_leaves_the_old_one(place: Place) -> None:
    """Killed while it writes, again and again: the seal of before holds, and the next one removes what was left."""
    root = place.root(pages=20)
    sealed(place)
    before = rows(root)
    for number in range(20, 400):
        place.page(root, number, "k")
    killed = 0
    for delay in (0.0, 0.005, 0.02):
        with subprocess.Popen([*command(), "seal", root.name, "--kv", str(place.kv), "--quiet"]) as process:
            wait_until(lambda: list((root / "seal").glob(".*.partial")) or process.poll() is not None)
            time.sleep(delay)
            process.kill()
        if process.returncode == -9 and rows_of_seal(root) == before:
            killed += 1
    assert killed
    assert sealed(place).pages == 420
    assert len(rows(root)) == 420
    assert not list(root.rglob("*.partial"))


def rows_of_seal(root: Path) -> dict[str, str]:
    """The list that the seal names, whatever lies beside it."""
    seal = json.loads((root / "seal.json").read_text("utf-8"))
    text = (root / "seal" / f"{seal['list_sha256']}.jsonl").read_text("utf-8")
    return {line[0]: line[1] for line in map(json.loads, text.splitlines())}

"""Checks: damaged pages become misses whole, and everything else stays where it is."""

import json
import os
from pathlib import Path

import pytest

from reproducer.cache.folders import page_key
from reproducer.cache.guard import prepare_namespace
from reproducer.errors import NotCheckedError
from reproducer.identity.policy import COMMIT
from reproducer.identity.root import pages_of
from tests.cache.conftest import PAGE, Place, key, spoil, tree
from tests.launch.conftest import Listening


def names(root: Path) -> set[str]:
    """The files in the folder of pages."""
    return {str(path.relative_to(pages_of(root))) for path in pages_of(root).rglob("*") if not path.is_dir()}


def test_whole_pages_hold(place: Place) -> None:
    """Sealed pages whose bytes hold are counted, unsealed ones are named as unchecked; nothing changes."""
    root = place.root(pages=5)
    place.json("seal", root.name)
    place.page(root, 9, "k")
    before = tree(root)
    (said,) = place.json("verify", root.name)["namespaces"]

    assert (said["good"], said["size"], said["damaged"], said["unsealed"]) == (10, 10 * PAGE, 0, 1)
    assert tree(root) == before


def test_one_flipped_bit(place: Place) -> None:
    """A page with one other bit, its size and times as they were, is set aside with its other half, and recorded."""
    root = place.root(pages=4)
    place.json("seal", root.name)
    bad, other = place.path(root, 2, "v"), place.path(root, 2, "k")
    spoil(bad)
    bytes_of = {bad.name: bad.read_bytes(), other.name: other.read_bytes()}
    before = names(root)
    (said,) = place.json("verify", root.name, code=64 + 1)["namespaces"]

    assert (said["good"], said["damaged"], said["beside"], said["missing"]) == (6, 1, 1, 0)
    assert names(root) == before - {bad.name, other.name}
    aside = Path(said["record"]).parent / "pages"
    assert {path.name: path.read_bytes() for path in aside.iterdir()} == bytes_of
    record = [json.loads(line) for line in Path(said["record"]).read_text("utf-8").splitlines()]
    assert [each["page"] for each in record] == [bad.name, other.name]
    assert record[0]["expected"] != record[0]["got"]
    (again,) = place.json("verify", root.name)["namespaces"]
    assert (again["good"], again["damaged"], again["missing"]) == (6, 0, 0)


def test_a_page_that_was_set_aside_may_be_written_anew(place: Place) -> None:
    """The seal forgets a damaged page: other bytes at the same place are unsealed, not damaged."""
    root = place.root(pages=2)
    place.json("seal", root.name)
    bad = place.path(root, 0, "k")
    spoil(bad)
    place.json("verify", root.name, code=64 + 1)
    bad.write_bytes(b"n" * PAGE)
    (said,) = place.json("verify", root.name)["namespaces"]

    assert (said["good"], said["damaged"], said["unsealed"]) == (2, 0, 1)


def test_every_file_of_a_page_goes(place: Place) -> None:
    """Keys and values of all ranks, pools and folders share the key of their page, and nothing else does."""
    root = place.root(pages=2)
    pages = pages_of(root)
    (pages / "a3").mkdir()
    mates = {f"{key(0)}_model_1_2_k", f"{key(0)}_model_1_2_mamba_temporal", f"a3/{key(0)}_model_0_2_v"}
    strangers = {f"{key(7)}_model_1_2_k", "notes_k", f"a3/{key(1)}_model_0_2_v"}
    for name in mates | strangers:
        (pages / name).write_bytes(b"x")
    place.json("seal", root.name)
    spoil(place.path(root, 0, "k"))
    place.json("verify", root.name, code=64 + 1)

    assert not mates & names(root)
    assert names(root) == strangers | {place.path(root, 1, half).name for half in "kv"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("0123456789abcdef0123456789abcdef_m_0_1_k", "0123456789abcdef0123456789abcdef"),
        ("3f/0123456789abcdef0123456789abcdef_m_0_1_v", "0123456789abcdef0123456789abcdef"),
        ("0123456789abcdef0123456789abcdef.bin", "0123456789abcdef0123456789abcdef"),
        ("page_k", "page"),
        ("page_v", "page"),
        ("0123_m", "0123_m"),
        ("page_x", "page_x"),
    ],
)
def test_the_key_of_a_page(name: str, expected: str) -> None:
    """The hex digits that a name begins with, or what stands before a last `_k` or `_v`."""
    assert page_key(name) == expected


def test_half_a_page_is_missing(place: Place) -> None:
    """Where one half of a sealed page is gone, the engine must not use the other."""
    root = place.root(pages=3)
    place.json("seal", root.name)
    place.path(root, 1, "v").unlink()
    (said,) = place.json("verify", root.name)["namespaces"]

    assert (said["good"], said["damaged"], said["missing"], said["beside"]) == (4, 0, 1, 1)
    assert not place.path(root, 1, "k").exists()


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "shorter", "longer", "unreadable"])
def test_something_else_lies_there(place: Place, kind: str) -> None:
    """A link, a pipe, a folder or a file of another size in a page's place is no page; what it points to stays."""
    root = place.root(pages=2)
    place.json("seal", root.name)
    path = place.path(root, 0, "k")
    data = path.read_bytes()
    path.unlink()
    elsewhere = place.kv / "elsewhere"
    elsewhere.write_bytes(data)
    if kind == "link":
        path.symlink_to(elsewhere)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "unreadable":
        path.write_bytes(data)
        path.chmod(0)
        if os.geteuid() == 0:
            spoil(path)  # nothing is unreadable to root
    else:
        path.write_bytes(data[:-1] if kind == "shorter" else data + b"x")
    (said,) = place.json("verify", root.name, code=64 + 1)["namespaces"]

    assert (said["good"], said["damaged"]) == (2, 1)
    assert not os.path.lexists(path)
    assert elsewhere.read_bytes() == data


def test_nothing_was_sealed(place: Place) -> None:
    """A check that could check nothing says so with its exit code, and how much was unchecked."""
    root = place.root(pages=2)
    (said,) = place.json("verify", root.name, code=64 + 32)["namespaces"]
    assert (said["sealed"], said["unsealed"]) == (False, 4)
    place.json("verify", code=64 + 32)

    sealed = place.root("second", pages=2)
    place.json("seal", sealed.name)
    both = {each["namespace"]: each["good"] for each in place.json("verify")["namespaces"]}
    assert both == {root.name: 0, sealed.name: 4}


def test_before_a_launch(place: Place) -> None:
    """A launch notes its lock and checks what is sealed; damaged pages are told and missed."""
    root = place.root(pages=3)
    place.json("seal", root.name)
    bad = place.path(root, 0, "k")
    spoil(bad)
    reporter = Listening()
    opened = place.opened()
    said = prepare_namespace(place.kv, place.namespace(), opened, COMMIT, reporter=reporter)

    assert (said.good, said.damaged, said.beside) == (4, 1, 1)
    assert not bad.exists()
    assert len(reporter.notes) == 1
    assert "1 sealed pages" in reporter.notes[0]
    assert said.record in reporter.notes[0]
    note = json.loads((root / "locks" / f"{opened.digest}.json").read_text("utf-8"))
    assert note == {
        "format": "penny-lock-note/1",
        "lock_digest": opened.digest,
        "name": opened.lock.name,
        "path": str(opened.path),
        "policy": "commit",
    }


def test_a_launch_over_a_broken_seal(place: Place) -> None:
    """Where the seal does not hold nobody can say what the pages are: no launch."""
    root = place.root(pages=3)
    place.json("seal", root.name)
    (root / "seal.json").write_bytes(b"{")
    with pytest.raises(NotCheckedError):
        prepare_namespace(place.kv, place.namespace(), place.opened(), COMMIT, reporter=Listening())

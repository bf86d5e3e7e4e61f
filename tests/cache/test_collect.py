"""Collecting: only namespaces go, only those that nobody uses, and never half of one under its name."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from reproducer.cache.guard import prepare_namespace
from reproducer.cache.sizes import parse_size
from reproducer.errors import UsageError
from reproducer.identity.policy import COMMIT
from reproducer.identity.root import pages_of
from reproducer.progress import Silent
from tests.cache.conftest import PAGE, Place, command, key, tree, wait_until


def fates(said: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    """What happened to each namespace."""
    return {each["namespace"]: each["fate"] for each in said["namespaces"]}


def note(place: Place, name: str) -> Path:
    """Launch a lock as far as its note goes; the path of the lock."""
    opened = place.opened(name)
    prepare_namespace(place.kv, place.namespace(name), opened, COMMIT, reporter=Silent())
    return opened.path


def test_nothing_goes_without_apply(place: Place) -> None:
    """The dry run names what would go, oldest use first, and changes nothing; `--apply` removes exactly that."""
    old, used, older = place.root("old", 2), place.root("used", 2), place.root("older", 2)
    note(place, "used")
    os.utime(old / "factors.json", (2000, 2000))
    os.utime(older / "factors.json", (1000, 1000))
    before = tree(place.kv)
    said = place.json("gc")

    assert fates(said) == {older.name: "removed", old.name: "removed", used.name: "kept"}
    assert [each["namespace"] for each in said["namespaces"]][:2] == [older.name, old.name]
    assert tree(place.kv) == before
    assert place.json("gc", "--apply")["namespaces"] == said["namespaces"]
    assert [path.name for path in place.kv.iterdir()] == [used.name]
    assert len(list(pages_of(used).iterdir())) == 4


def test_what_keeps_a_namespace(place: Place) -> None:
    """A lock that still derives it, one that cannot be read, one that is named; not one that is gone or changed."""
    for name in ("there", "broken", "gone", "other", "named"):
        place.root(name, 1)
    note(place, "there")
    note(place, "broken").write_text("[", encoding="utf-8")
    note(place, "gone").unlink()
    note(place, "other").write_text(place.opened("there").path.read_text("utf-8"), encoding="utf-8")
    named = place.opened("named").path
    said = place.json("gc", "--lock", str(named))

    names = {place.namespace(name).name: name for name in ("there", "broken", "gone", "other", "named")}
    assert {names[name]: fate for name, fate in fates(said).items()} == {
        "there": "kept",
        "broken": "kept",
        "named": "kept",
        "gone": "removed",
        "other": "removed",
    }
    listed = {names[each["namespace"]]: each["locks"] for each in place.json("list")["namespaces"]}
    states = {name: [lock["state"] for lock in locks] for name, locks in listed.items()}
    assert states == {
        "there": ["uses"],
        "broken": ["unreadable"],
        "gone": ["gone"],
        "other": ["other"],
        "named": [],
    }


def test_a_named_lock_that_cannot_be_read(place: Place) -> None:
    """What it uses would look unused: nothing is removed."""
    root = place.root("first", 1)
    ended = place.penny("gc", "--apply", "--lock", "nowhere.toml")
    assert ended.returncode == 2
    assert root.exists()


@pytest.mark.parametrize("content", [b"", b"[]", b'{"format": "penny-lock-note/1"}', b"x" * 100])
def test_a_note_that_cannot_be_read(place: Place, content: bytes) -> None:
    """It may name a lock, so the namespace stays."""
    root = place.root("first", 1)
    path = note(place, "first")
    path.unlink()
    (written,) = (root / "locks").iterdir()
    written.write_bytes(content)
    assert fates(place.json("gc")) == {root.name: "kept"}


def test_what_is_no_namespace_stays(place: Place) -> None:
    """Links, folders without a factor document or with another's, files, pipes, run folders: told, never touched."""
    root = place.root("first", 1)
    outside = place.kv.parent / "outside"
    shutil.copytree(root, outside / root.name)
    second = place.namespace("second").name
    (place.kv / second).symlink_to(outside / root.name)
    (place.kv / "model-sglang-000000000000").mkdir()
    shutil.copytree(root, place.kv / "model-sglang-111111111111")
    third = place.root("third", 1)
    (third / "factors.json").unlink()
    (third / "factors.json").symlink_to(outside / root.name / "factors.json")
    fourth = place.root("fourth", 1)
    (fourth / "factors.json").write_bytes(b'{"format"')
    (place.kv / "a\nfile").write_bytes(b"x")
    os.mkfifo(place.kv / "pipe")
    (place.kv / "qualification" / "0123456789abcdef").mkdir(parents=True)
    (place.kv / f".{second}.0123456789abcdef.gone").mkdir()
    (place.kv / f".{second}.0123456789abcdef.gone" / "mine").write_bytes(b"x")
    shutil.rmtree(root)
    before, beside = tree(place.kv), tree(outside)

    said = place.json("gc", "--apply")
    assert said["namespaces"] == []
    assert (tree(place.kv), tree(outside)) == (before, beside)
    others = {each["name"]: each["why"] for each in place.json("list")["others"]}
    assert len(others) == 9
    assert others[second] == "a link"
    assert others[f".{second}.0123456789abcdef.gone"] == "no factor document of ours lies in it"
    assert "a\\nfile" in place.penny("list").stdout


def test_another_users_namespace(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace that belongs to another user is listed as none of ours and stays."""
    from reproducer.cache.collect import Budget, collect
    from reproducer.cache.known import Locks

    root = place.root("first", 1)
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    done = collect(place.kv, Locks(), Budget(), apply=True, reporter=Silent())
    assert done.removals == ()
    assert len(tree(root)) == 5


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a folder to another user")
@pytest.mark.parametrize("part", ["", "factors.json", "pages"])
def test_a_part_of_another_user(place: Place, part: str) -> None:
    """Where the root or its document is another user's it is no namespace of ours; of such pages none is evicted."""
    root = place.root("first", 2)
    note(place, "first")
    os.chown(root / part, 12345, -1)
    before = tree(root)
    said = place.json("gc", "--apply", "--budget", "1", code=64 + 32 if part == "pages" else 0)
    assert all(each["fate"] == "kept" for each in said["namespaces"])
    assert len(said["namespaces"]) == (part == "pages")
    assert tree(root) == before


def test_links_and_pipes_in_the_pages(place: Place) -> None:
    """A link in the pages is removed, and what it points to is not; so are pipes and folders with strange names."""
    root = place.root("first", 1)
    outside = place.kv.parent / "outside"
    outside.mkdir()
    (outside / "mine").write_bytes(b"mine")
    (pages_of(root) / "link").symlink_to(outside)
    os.mkfifo(pages_of(root) / "pipe")
    (pages_of(root) / "a\nb" / "-rf").mkdir(parents=True)
    (pages_of(root) / "a\nb" / "-rf" / "..x").write_bytes(b"x")
    (root / "more").symlink_to(outside / "mine")

    assert fates(place.json("gc", "--apply")) == {root.name: "removed"}
    assert tree(place.kv) == {}
    assert tree(outside) == {"mine": b"mine"}


def test_a_killed_collection_is_finished(place: Place) -> None:
    """Killed in the middle: the namespace has lost its name, an open makes a new empty one, the next run finishes."""
    root = place.root("first")
    for number in range(3000):
        (pages_of(root) / f"{key(number)}_k").write_bytes(b"x")
    interrupted = 0
    process = subprocess.Popen([*command(), "gc", "--apply", "--quiet", "--kv", str(place.kv)])
    with process:
        wait_until(lambda: list(place.kv.glob(".*.gone")) or process.poll() is not None)
        process.kill()
    left = list(place.kv.glob(".*.gone"))
    interrupted = len(left)
    assert interrupted == 1
    assert not root.exists()
    assert (left[0] / "factors.json").exists()
    fresh = place.root("first", 1)
    note(place, "first")

    dry = place.json("gc")
    assert dry["finished"] == [left[0].name]
    assert left[0].exists()
    assert place.json("gc", "--apply")["finished"] == [left[0].name]
    assert not left[0].exists()
    assert len(list(pages_of(fresh).iterdir())) == 2


def test_two_collections_at_once(place: Place) -> None:
    """Several at once remove everything between them, and none calls the others' work a fault."""
    for number in range(12):
        root = place.root(f"name{number}", 20)
        del root
    arguments = [*command(), "gc", "--apply", "--json", "--kv", str(place.kv)]
    all_of_them = [subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [json.loads(each.communicate()[0]) for each in all_of_them]

    assert [each.returncode for each in all_of_them] == [0, 0, 0]
    assert [each["short"] for each in said] == [[], [], []]
    assert [path for path in place.kv.iterdir() if path.suffix != ".server"] == []


def test_a_seal_at_work_keeps_a_namespace(place: Place) -> None:
    """What another penny seals is in use and stays."""
    import fcntl

    root = place.root("first", 1)
    handle = os.open(root, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        said = place.json("gc", "--apply")
        assert fates(said) == {root.name: "kept"}
        assert "in use by another penny" in said["namespaces"][0]["why"]
    finally:
        os.close(handle)
    assert fates(place.json("gc", "--apply")) == {root.name: "removed"}


def test_the_oldest_pages_go(place: Place) -> None:
    """Over a budget the pages that were used least go, both halves together, and only as many as have to."""
    root = place.root("first")
    note(place, "first")
    for number in range(20):
        place.page(root, number, "k", age_s=1000 - number)
        place.page(root, number, "v", age_s=900 - number)
    base = place.json("list")["namespaces"][0]["on_disk"]
    budget = base - 10 * PAGE
    dry = place.json("gc", "--budget-each", str(budget))
    assert len(list(pages_of(root).iterdir())) == 40

    done = place.json("gc", "--apply", "--budget-each", str(budget))
    assert [each for each in dry["namespaces"] if each["fate"] == "evicted"] == [
        each for each in done["namespaces"] if each["fate"] == "evicted"
    ]
    left = {path.name for path in pages_of(root).iterdir()}
    gone = [number for number in range(20) if place.path(root, number, "k").name not in left]
    assert all((place.path(root, number, "v").name in left) == (number not in gone) for number in range(20))
    assert gone == list(range(10))
    assert place.json("list")["namespaces"][0]["on_disk"] <= base - 10 * PAGE


def test_a_budget_for_all(place: Place) -> None:
    """The namespace that was used least gives pages first; one that is used now gives none."""
    roots = {name: place.root(name, 10) for name in ("old", "new")}
    for name in roots:
        note(place, name)
    os.utime(roots["old"] / "factors.json", (1000, 1000))
    total = sum(each["on_disk"] for each in place.json("list")["namespaces"])
    place.json("gc", "--apply", "--budget", str(total - 4 * PAGE))

    assert len(list(pages_of(roots["old"]).iterdir())) == 16
    assert len(list(pages_of(roots["new"]).iterdir())) == 20
    said = place.json("gc", "--budget", "1", code=64 + 32)
    assert said["short"]


def test_the_folder_of_one_run(place: Place) -> None:
    """Pages of a run that may be between two boots are the run's."""
    run = place.kv / "qualification" / "0123456789abcdef"
    run.mkdir(parents=True)
    inside = Place(run)
    root = inside.root("first", 1)
    assert inside.penny("gc", "--apply").returncode == 2
    assert root.exists()


@pytest.mark.parametrize(
    ("text", "size"),
    [("10GiB", 10 << 30), ("500MB", 500_000_000), ("1024", 1024), ("1.5k", 1500), ("0", 0), ("2 TiB", 2 << 40)],
)
def test_sizes(text: str, size: int) -> None:
    """Units with an i are powers of 1024, the others of 1000."""
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "-1", "1e3", "10XB", "iB", "1iB", "GiB", "1" * 30])
def test_no_sizes(text: str) -> None:
    """What is no size is refused."""
    with pytest.raises(UsageError):
        parse_size(text)


def test_tables_fit(place: Place) -> None:
    """What a person sees fits 80 columns, whatever the names are."""
    root = place.root("first", 3)
    place.root("second", 3)
    place.json("seal", root.name)
    note(place, "second")
    for arguments in (["list"], ["gc"], ["seal", root.name], ["verify"], ["gc", "--budget", "1kB"]):
        lines = place.seen(*arguments)
        assert any(lines)
        assert all(len(line.replace(str(place.kv), "KV")) <= 80 for line in lines), arguments

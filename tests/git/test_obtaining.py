"""Every commit of a lock in the store: verified, fetched from wherever they are, all faults at once."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from reproducer.archives.tree_writer import Limits
from reproducer.documents.lock import Component, Lock
from reproducer.documents.sources import GitSource
from reproducer.errors import DriftError, NotCheckedError, UnsafeInputError, UsageError
from reproducer.git.mirrors import Mirror
from reproducer.git.obtaining import Commits, obtain, verify
from reproducer.store import Store
from tests.git.conftest import Desk, Notes, Repository, Serve, Server, bare


def _lock(**sources: GitSource) -> Lock:
    """What `obtain` looks at of a lock."""
    components = tuple(
        Component(name=name, kind="wheel", source=source, outputs=()) for name, source in sources.items()
    )
    return cast("Lock", SimpleNamespace(components=components))


def _obtain(store: Store, lock: Lock, **options: Any) -> Commits:
    return obtain(lock, store, **{"reporter": Notes(), "offline": False, **options})


@pytest.fixture
def other(tmp_path: Path) -> Store:
    """The store of another machine, with nothing in it."""
    return Store(tmp_path / "other-store")


def _with_submodule(repository: Repository, tmp_path: Path) -> Repository:
    part = Repository.new(tmp_path / "part")
    part.commit({"part.txt": "part"})
    repository.submodule("../part", "third/part")
    return part


def test_from_addresses(desk: Desk, repository: Repository, daemon: Server, other: Store, tmp_path: Path) -> None:
    """A stranger's machine fetches commit and submodule from their addresses, once, and offline they are there then."""
    part = _with_submodule(repository, tmp_path)
    bare(part, daemon.folder, "part")
    bare(repository, daemon.folder, "kernel.git")
    source = desk.source(daemon.at("kernel.git"), repository.head)
    assert source.submodules[0].url == f"{daemon.url}/part"
    lock = _lock(kernel=source)
    with pytest.raises(NotCheckedError, match=r"2 commits could not be had.*--offline"):
        _obtain(other, lock, offline=True)
    first = _obtain(other, lock)
    assert (first.commits, first.reused) == (2, 0)
    assert first.downloaded > 0
    assert _obtain(other, lock, offline=True) == Commits(2, 2, 0)
    assert desk.exported(source)["third/part/part.txt"] == "part"


def test_without_an_address(desk: Desk, repository: Repository, other: Store, tmp_path: Path) -> None:
    """A commit without an address comes from where the person says it lies, and a submodule from inside of it."""
    _with_submodule(repository, tmp_path)
    source = desk.source(repository.path, repository.head)
    lock = _lock(kernel=source)
    with pytest.raises(NotCheckedError, match="--repository"):
        _obtain(other, lock)
    came = _obtain(other, lock, places={"kernel": repository.path})
    assert (came.commits, came.reused) == (2, 0)
    assert _obtain(other, lock, offline=True).reused == 2


def test_place_of_a_submodule(desk: Desk, repository: Repository, other: Store, tmp_path: Path) -> None:
    """A submodule's repository is named by NAME/PATH where the clone does not have it checked out."""
    part = _with_submodule(repository, tmp_path)
    lock = _lock(kernel=desk.source(repository.path, repository.head))
    clone = bare(repository, tmp_path, "clone.git")
    with pytest.raises(NotCheckedError, match="kernel/third/part"):
        _obtain(other, lock, places={"kernel": clone})
    came = _obtain(other, lock, places={"kernel": clone, "kernel/third/part": part.path}, offline=True)
    assert came.commits == 2


def test_place_before_address(desk: Desk, repository: Repository, daemon: Server, other: Store) -> None:
    """A repository that has gone from its address is had from this machine."""
    bare(repository, daemon.folder, "kernel.git")
    lock = _lock(kernel=desk.source(daemon.at("kernel.git"), repository.head))
    shutil.rmtree(daemon.folder / "kernel.git")
    with pytest.raises(NotCheckedError, match=r"kernel\.git"):
        _obtain(other, lock)
    assert _obtain(other, lock, places={"kernel": repository.path}).downloaded > 0


def test_no_network_where_a_place_has_it(desk: Desk, repository: Repository, web: Serve, other: Store) -> None:
    """A repository on this machine is asked before a server, which is then not asked at all."""
    server = web()
    bare(repository, server.folder, "kernel.git")
    lock = _lock(kernel=desk.source(server.at("kernel.git"), repository.head))
    server.asked.clear()
    _obtain(other, lock, places={"kernel": repository.path})
    assert server.asked == []


def test_wrong_place(desk: Desk, repository: Repository, other: Store, tmp_path: Path) -> None:
    """A place that lacks the commit is an error with what it has; a name that the lock lacks, with the nearest."""
    lock = _lock(kernel=desk.source(repository.path, repository.head))
    wrong = Repository.new(tmp_path / "wrong")
    wrong.commit({"x": "x"})
    with pytest.raises(DriftError, match=f"has no commit {repository.head}.*main is {wrong.head[:12]}"):
        _obtain(other, lock, places={"kernel": wrong.path})
    with pytest.raises(UsageError, match="Did you mean 'kernel'"):
        _obtain(other, lock, places={"kernels": repository.path})


def test_damaged_mirror(desk: Desk, repository: Repository) -> None:
    """A mirror that is damaged is found when it is fetched again, set aside and made anew."""
    source = desk.source(repository.path, repository.head)
    mirror = Mirror.of(desk.store, None, repository.head)
    (pack,) = mirror.folder.glob("objects/pack/*.pack")
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 0xFF
    pack.chmod(0o644)
    pack.write_bytes(data)
    notes = Notes()
    came = _obtain(desk.store, _lock(kernel=source), places={"kernel": repository.path}, reporter=notes)
    assert (came.commits, came.reused) == (1, 0)
    assert any("set aside" in note for note in notes.said)
    assert len(list((desk.store.root / "damaged").iterdir())) == 1
    assert desk.exported(source)["kernel.py"] == "KERNEL = 1\n"


def test_another_tree(desk: Desk, repository: Repository) -> None:
    """A lock whose commit has another tree is refused when it is fetched, and the good mirror stays (R6)."""
    source = desk.source(repository.path, repository.head)
    with pytest.raises(DriftError, match="another tree than the lock says"):
        _obtain(desk.store, _lock(kernel=source.model_copy(update={"tree": "1" * 40})))
    assert not list((desk.store.root / "damaged").iterdir())


def test_all_faults_at_once(desk: Desk, repository: Repository, daemon: Server, other: Store) -> None:
    """Gone and unreachable commits stand in one error, whose exit code says both."""
    bare(repository, daemon.folder, "kernel.git")
    good = desk.source(daemon.at("kernel.git"), repository.head)
    gone = good.model_copy(update={"commit": "1" * 40})
    away = good.model_copy(update={"url": f"{daemon.url}/nothing.git"})
    with pytest.raises(NotCheckedError, match=r"2 commits could not be had.*no commit 1111.*nothing\.git") as caught:
        _obtain(other, _lock(gone=gone, away=away, good=good))
    assert caught.value.exit_code == 97
    assert Mirror.of(other, good.url, good.commit).has(good.commit)


def test_large(desk: Desk, repository: Repository) -> None:
    """A commit that holds more than a source tree does is refused before the file is read."""
    repository.commit({"large.bin": bytes(1 << 20)})
    source = desk.source(repository.path, repository.head)
    mirror = Mirror.of(desk.store, None, repository.head)
    verify(mirror, source, where="kernel")
    with pytest.raises(UnsafeInputError, match="holds more than 524288 bytes"):
        verify(mirror, source, where="kernel", limits=Limits(total=1 << 19))

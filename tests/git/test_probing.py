"""Is a commit still there? Asked of real servers."""

import shutil
from pathlib import Path

from reproducer.git.mirrors import Mirror
from reproducer.git.probing import probe
from tests.git.conftest import Desk, Repository, Serve, Server, bare, git


def test_there(desk: Desk, repository: Repository, daemon: Server, web: Serve) -> None:
    """A tip, and a commit that no branch and no tag is at, are there; nothing goes into the store."""
    old = repository.head
    repository.commit({"weights.bin": bytes(1000)})
    for server in (daemon, web()):
        bare(repository, server.folder, "kernel.git")
        for commit in (old, repository.head):
            source = desk.source(repository.path, commit).model_copy(update={"url": f"{server.url}/kernel.git"})
            assert probe(source, store=desk.store).status == "there"
            assert not Mirror.of(desk.store, source.url, commit).has(commit)


def test_gone(desk: Desk, repository: Repository, daemon: Server) -> None:
    """A commit that the repository no longer has is gone; it says what is there, and whether the store has it."""
    copy = bare(repository, daemon.folder, "kernel.git")
    source = desk.source(daemon.at("kernel.git"), repository.head)
    repository.git("checkout", "--quiet", "--orphan", "fresh")
    new = repository.commit({"kernel.py": "KERNEL = 9\n"})
    repository.git("push", "--quiet", "--force", str(copy), "fresh:main")
    git("reflog", "expire", "--expire=now", "--all", cwd=copy)
    git("gc", "--quiet", "--prune=now", cwd=copy)
    found = probe(source)
    assert found.status == "gone"
    assert f"main is {new[:12]}" in found.detail
    assert "--repository" in found.todo
    assert probe(source, store=desk.store).detail.endswith("the store has it")


def test_unreachable(desk: Desk, repository: Repository, daemon: Server) -> None:
    """A repository that does not answer is not one that lacks the commit."""
    copy = bare(repository, daemon.folder, "kernel.git")
    source = desk.source(daemon.at("kernel.git"), repository.head)
    shutil.rmtree(copy)
    assert probe(source).status == "unreachable"


def test_moved_tag(desk: Desk, repository: Repository, daemon: Server) -> None:
    """A tag that the manifest names and that was moved is told, though the old commit is still there (R1)."""
    repository.git("tag", "v1")
    copy = bare(repository, daemon.folder, "kernel.git")
    source = desk.source(daemon.at("kernel.git"), repository.head)
    assert probe(source, ref="v1").status == "there"
    new = repository.commit({"kernel.py": "KERNEL = 2\n"})
    repository.git("tag", "--force", "v1")
    repository.git("push", "--quiet", "--force", str(copy), "main", "v1")
    assert probe(source, ref="main").status == "there"
    found = probe(source, ref="v1")
    assert found.status == "moved"
    assert f"the lock has {source.commit}, the tag is {new} now" in found.detail
    repository.git("push", "--quiet", str(copy), ":refs/tags/v1")
    assert probe(source, ref="v1").status == "moved"


def test_without_an_address(desk: Desk, repository: Repository) -> None:
    """What has no address is in the store, or nobody knows where it is."""
    source = desk.source(repository.path, repository.head)
    assert probe(source, store=desk.store).status == "there"
    assert probe(source).status == "unnamed"


def test_submodules(desk: Desk, repository: Repository, daemon: Server, tmp_path: Path) -> None:
    """A submodule that is gone makes the source gone, and is named."""
    part = Repository.new(tmp_path / "part")
    part.commit({"part.txt": "1"})
    copy = bare(part, daemon.folder, "part")
    repository.submodule("../part", "third/part")
    bare(repository, daemon.folder, "kernel.git")
    source = desk.source(daemon.at("kernel.git"), repository.head)
    assert "its 1 submodule can be had" in probe(source).detail
    shutil.rmtree(copy)
    found = probe(source)
    assert found.status == "unreachable"
    assert "third/part" in found.detail

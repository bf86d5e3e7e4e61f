"""A repository on this machine that a stranger made: its folder names no program, no pipe, and no end of names."""

import difflib
import os
from pathlib import Path

import pytest

from reproducer.errors import DriftError, NotCheckedError, UnsafeInputError
from reproducer.git import references, running
from reproducer.git.addresses import Address, address
from reproducer.git.changes import changes_of, working_tree
from reproducer.git.mirrors import Mirror
from reproducer.git.references import resolve
from tests.git.conftest import PERSON, Desk, Repository, Serve, bare, git


def _trapped(repository: Repository, program: Path, ran: Path) -> None:
    """Let a file be missing that the repository's configuration says to fetch, by way of a program."""
    program.write_text(f"#!/bin/sh\necho ran >> {ran}\nexit 1\n")
    program.chmod(0o755)
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "evil",
        "remote.evil.url": repository.path.as_uri(),
        "remote.evil.promisor": "true",
        "remote.evil.uploadpack": str(program),
        "protocol.allow": "always",
    }.items():
        repository.git("config", key, value)
    blob = repository.git("rev-parse", "HEAD:kernel.py")
    (repository.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()


def test_missing_objects_are_fetched_by_nobody(
    desk: Desk, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository names the program that fetches what it lacks; it never runs, where git itself would run it too."""
    monkeypatch.setitem(running._SET, "GIT_NO_LAZY_FETCH", "0")  # as a git that does not know this variable
    ran = tmp_path / "ran"
    _trapped(repository, tmp_path / "trap", ran)
    place = address(repository.path.as_uri(), root=tmp_path, where="manifest")
    found = resolve(place, "main", folder=tmp_path, where="manifest")
    with pytest.raises(NotCheckedError, match="fetching commit"):
        desk.contents(place, found.commit)
    assert not ran.exists()
    fetch = ["fetch", "--quiet", "--", str(place), "main"]
    git("init", "--quiet", "--bare", "other.git", cwd=tmp_path)
    with pytest.raises(AssertionError):
        _as_before(fetch, tmp_path / "other.git")
    assert ran.exists(), "the trap is set: the same fetch without our precaution steps into it"


def _as_before(fetch: list[str], folder: Path) -> None:
    import subprocess

    environment = {**PERSON, "GIT_NO_LAZY_FETCH": "0", "GIT_ALLOW_PROTOCOL": "file"}
    done = subprocess.run(["git", *fetch], cwd=folder, env=environment, capture_output=True, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    "name", [".git/HEAD", ".git/config", ".git/objects/info/alternates", ".git/refs/heads/other", ".git"]
)
def test_pipes_in_its_folder(name: str, desk: Desk, repository: Repository, tmp_path: Path) -> None:
    """Where git would wait at a pipe for ever, nothing is asked of the repository."""
    pipe = repository.path / name
    if pipe.exists():
        pipe.rename(tmp_path / "aside")
    os.mkfifo(pipe)
    place = Address(path=repository.path)
    with pytest.raises(UnsafeInputError, match=f"'{pipe.name}' is a pipe or a device"):
        resolve(place, "main", folder=tmp_path, where="manifest")
    with pytest.raises(UnsafeInputError, match=f"'{pipe.name}' is a pipe or a device"):
        desk.contents(place, "1" * 40)
    with pytest.raises(UnsafeInputError, match=f"'{pipe.name}' is a pipe or a device"):
        working_tree(repository.path)


@pytest.mark.parametrize("kind", ["bare", "pointed at", "linked"])
def test_pipes_in_other_layouts(kind: str, repository: Repository, tmp_path: Path) -> None:
    """A bare repository, one beside its files, and a linked working tree are looked at where their folders are."""
    path = tmp_path / "layout"
    if kind == "bare":
        own = bare(repository, tmp_path, "layout")
    elif kind == "linked":
        repository.git("worktree", "add", "--quiet", str(path), "-b", "side")
        own = repository.path / ".git"
    else:
        own = tmp_path / "elsewhere"
        repository.path.rename(path)
        (path / ".git").rename(own)
        (path / ".git").write_text(f"gitdir: {own}\n")
    assert resolve(Address(path=path), "main", folder=tmp_path, where="manifest").kind == "branch"
    os.mkfifo(own / "objects" / "info" / "alternates")
    with pytest.raises(UnsafeInputError, match="'alternates' is a pipe or a device"):
        resolve(Address(path=path), "main", folder=tmp_path, where="manifest")


@pytest.mark.parametrize("name", [".gitignore", "lib/.gitattributes"])
def test_pipes_among_its_files(name: str, desk: Desk, repository: Repository) -> None:
    """A pipe that git would read to know what is ignored is refused; any other one is not looked at."""
    os.mkfifo(repository.path / "lib" / "socket")
    tree = working_tree(repository.path)
    assert tree is not None
    desk.contents(repository.path, tree.commit)
    mirror = Mirror.of(desk.store, None, tree.commit)
    with desk.store.private_folder() as work:
        assert changes_of(tree, mirror, work / "one", where="kernel") is None
        os.mkfifo(repository.path / name)
        with pytest.raises(UnsafeInputError, match="is a pipe or a device"):
            changes_of(tree, mirror, work / "two", where="kernel")


def test_names_without_end(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many and however long its names are, an error quotes a few of them and the nearest takes no time."""
    looked: list[int] = []
    close = difflib.get_close_matches

    def counted(word: str, names: list[str], n: int = 3) -> list[str]:
        looked.append(sum(map(len, names)))
        return list(close(word, names, n=n))

    monkeypatch.setattr(difflib, "get_close_matches", counted)
    long = [f"{'x' * 1000}{number:06d}" for number in range(200)]
    names = [*long, *(f"t{number:06d}" for number in range(30_000))]
    head = repository.head
    packed = "".join(f"{head} refs/tags/{name}\n" for name in sorted(names))
    (repository.path / ".git" / "packed-refs").write_text("# pack-refs with: peeled fully-peeled sorted \n" + packed)
    place = Address(path=repository.path)
    with pytest.raises(DriftError, match="Did you mean 't000123'") as caught:
        resolve(place, "t00x0123", folder=tmp_path, where="manifest")
    with pytest.raises(DriftError, match=r"It has main, ") as other:
        resolve(place, "x" * 1000, folder=tmp_path, where="manifest")
    (repository.path / ".git" / "packed-refs").write_text("".join(f"{head} refs/tags/{n}\n" for n in long))
    text = references.what_is_there(place, folder=tmp_path)
    assert max(len(str(caught.value)), len(str(other.value)), len(text)) < 2000
    assert max(looked) < 200_000


def test_a_server_whose_names_become_folders(repository: Repository, desk: Desk, web: Serve) -> None:
    """Where all is fetched, a branch `a` that became `a/b` is no reason to fail."""
    server = web(dumb=True)
    copy = bare(repository, server.folder, "kernel.git")
    git("branch", "a", cwd=copy)
    git("update-server-info", cwd=copy)
    place = server.at("kernel.git")
    desk.contents(place, repository.head)
    new = repository.commit({"kernel.py": "KERNEL = 2\n"})
    git("branch", "-D", "a", cwd=copy)
    git("fetch", "--quiet", str(repository.path), "main:a/b", cwd=copy)
    git("update-server-info", cwd=copy)
    assert desk.contents(place, new).tree == repository.tree


@pytest.mark.parametrize("url", ["a" * 300, "a/" * 3000, "file:///" + "a" * 300])
def test_no_such_path(url: str, tmp_path: Path) -> None:
    """A path that is longer than any path names nothing."""
    assert not address(url, root=tmp_path, where="manifest").is_here


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_a_path_that_nobody_may_look_at(tmp_path: Path) -> None:
    """A folder that is closed is no reason to say that nothing is there."""
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(NotCheckedError, match="cannot be looked for"):
        _ = address("closed/x", root=tmp_path, where="manifest").is_here

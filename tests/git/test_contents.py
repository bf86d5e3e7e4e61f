"""What a commit holds: submodules that are missing, stale or hostile, and reading without a network."""

from pathlib import Path

import pytest

from reproducer.errors import DriftError, NotCheckedError, UnsafeInputError
from reproducer.git.addresses import Address
from tests.git.conftest import Desk, Repository, Server, bare


def _modules(repository: Repository, text: str, commit: str, path: str = "part") -> str:
    """Commit a gitlink with a `.gitmodules` as it stands; the commit."""
    tree = repository.made_tree(("100644", repository.blob(text.encode()), ".gitmodules"), ("160000", commit, path))
    return repository.commit_tree(tree)


def test_over_a_network(desk: Desk, repository: Repository, daemon: Server, tmp_path: Path) -> None:
    """A submodule's relative address is absolute in the lock; its commit is the one that the parent's tree names."""
    part = Repository.new(tmp_path / "part")
    pinned = part.commit({"part.txt": "1"})
    part.commit({"part.txt": "2"})
    bare(part, daemon.folder, "part.git")
    commit = _modules(repository, '[submodule "p"]\n\tpath = part\n\turl = ../part.git\n\tbranch = main\n', pinned)
    bare(repository, daemon.folder, "kernel.git")
    source = desk.source(daemon.at("kernel.git"), commit)
    (module,) = source.submodules
    assert (module.path, module.url, module.commit) == ("part", f"{daemon.url}/part.git", pinned)
    assert desk.exported(source)["part/part.txt"] == "1"


def test_missing_submodule_commit(desk: Desk, repository: Repository, daemon: Server, tmp_path: Path) -> None:
    """A submodule whose repository lacks the commit is an error with what it has; it is not another commit's (R9)."""
    part = Repository.new(tmp_path / "part")
    part.commit({"part.txt": "1"})
    bare(part, daemon.folder, "part.git")
    commit = _modules(repository, '[submodule "p"]\n\tpath = part\n\turl = ../part.git\n', "1" * 40)
    bare(repository, daemon.folder, "kernel.git")
    with pytest.raises(DriftError, match=f"part.git has no commit 1111.*main is {part.head[:12]}"):
        desk.contents(daemon.at("kernel.git"), commit)


def test_missing_submodule_repository(desk: Desk, repository: Repository, daemon: Server) -> None:
    """A submodule whose repository is gone cannot be checked."""
    commit = _modules(repository, '[submodule "p"]\n\tpath = part\n\turl = ../gone.git\n', "1" * 40)
    bare(repository, daemon.folder, "kernel.git")
    with pytest.raises(NotCheckedError, match=r"gone\.git"):
        desk.contents(daemon.at("kernel.git"), commit)


def test_submodule_without_an_address(desk: Desk, repository: Repository) -> None:
    """A commit in the tree that `.gitmodules` does not name is an error, and so is one without the file."""
    commit = _modules(repository, '[submodule "p"]\n\tpath = other\n\turl = ../part.git\n', "1" * 40)
    with pytest.raises(DriftError, match=r"submodule 'part' has no address.*\.gitmodules names 'other'"):
        desk.contents(repository.path, commit)
    commit = repository.commit_tree(repository.made_tree(("160000", "1" * 40, "part")))
    with pytest.raises(DriftError, match="names none"):
        desk.contents(repository.path, commit)


@pytest.mark.parametrize(
    "text",
    [
        '[submodule "../../x"]\n\tpath = part\n\turl = ../part\n',
        '[submodule "a/../../x"]\n\tpath = part\n\turl = ../part\n',
        '[submodule "-x"]\n\tpath = part\n\turl = ../part\n',
        '[submodule "p"]\n\tpath = part\n\turl = -u./payload\n',
        '[submodule "p"]\n\tpath = part\n\turl = ext::sh -c payload\n',
        '[submodule "p"]\n\tpath = part\n\turl = file:///etc\n',
        '[submodule "p"]\n\tpath = part\n\turl = /etc\n',
        '[submodule "p"]\n\tpath = part\n\turl = "https://git.example/a\\nhost=b"\n',
        '[submodule "p"]\n\tpath = -part\n\turl = ../part\n',
    ],
)
def test_hostile_modules(text: str, desk: Desk, repository: Repository) -> None:
    """Names that leave, options, commands, line breaks and places on this machine are refused, by git or by penny."""
    commit = _modules(repository, text, repository.head)
    with pytest.raises(UnsafeInputError):
        desk.contents(repository.path, commit)


def test_includes_and_commands_of_modules(desk: Desk, repository: Repository, tmp_path: Path) -> None:
    """`.gitmodules` includes no file, and an `update` command in it is no command of anybody's."""
    part = Repository.new(tmp_path / "part")
    part.commit({"part.txt": "1"})
    secret = tmp_path / "secret"
    secret.write_text('[submodule "p"]\n\turl = ../other\n')
    ran = tmp_path / "ran"
    text = f'[submodule "p"]\n\tpath = part\n\turl = ../part\n[include]\n\tpath = {secret}\n'
    held = desk.contents(repository.path, _modules(repository, text, part.head))
    assert held.submodules[0].tree == part.tree
    text = f'[submodule "p"]\n\tpath = part\n\turl = ../part\n\tupdate = !touch {ran}\n'
    with pytest.raises(UnsafeInputError, match="objects that git refuses"):
        desk.contents(repository.path, _modules(repository, text, part.head))
    assert not ran.exists()


def test_modules_that_is_a_link(desk: Desk, repository: Repository) -> None:
    """`.gitmodules` that is a link is refused."""
    tree = repository.made_tree(("120000", repository.blob(b"/etc/passwd"), ".gitmodules"))
    with pytest.raises(UnsafeInputError):
        desk.contents(repository.path, repository.commit_tree(tree))


def test_offline(desk: Desk, repository: Repository, daemon: Server) -> None:
    """Without a network the mirrors count, and so does a repository on this machine; a server does not."""
    bare(repository, daemon.folder, "kernel.git")
    place = daemon.at("kernel.git")
    with pytest.raises(NotCheckedError, match="--offline"):
        desk.contents(place, repository.head, offline=True)
    desk.contents(place, repository.head)
    assert desk.contents(place, repository.head, offline=True).tree == repository.tree
    assert desk.contents(Address(path=repository.path), repository.head, offline=True).tree == repository.tree

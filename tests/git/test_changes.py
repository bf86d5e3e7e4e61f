"""Working trees with changes: locked as commit and patch, tracked and untracked, and nothing of their `.git` runs."""

import os
from pathlib import Path

import pytest

from reproducer.errors import DriftError, NotCheckedError, UnsafeInputError
from reproducer.git.addresses import Address
from reproducer.git.changes import changes_of, clean_submodule, paths_of, working_tree
from reproducer.git.mirrors import Mirror
from tests.git.conftest import Desk, Repository, files_of, git


def _changes(desk: Desk, repository: Repository, name: str = "work") -> bytes | None:
    tree = working_tree(repository.path)
    assert tree is not None
    mirror = desk.reading().mirrored(None, tree.commit, (Address(path=repository.path),), where="kernel")
    with desk.store.private_folder() as work:
        return changes_of(tree, mirror, work / name, where="kernel")


def _round_trip(desk: Desk, repository: Repository) -> bytes:
    """The patch, after seeing that commit and patch are exactly the working tree."""
    patch = _changes(desk, repository)
    assert patch is not None
    source = desk.source(repository.path, repository.head)
    desk.exported(source, "changed", changes=patch)
    left = {name: data for name, data in files_of(repository.path).items() if not name.startswith(".git/")}
    assert files_of(desk.folder / "changed") == left
    return patch


@pytest.mark.parametrize("sha", ["sha1", "sha256"])
def test_everything(sha: str, desk: Desk, tmp_path: Path) -> None:
    """Changed, new, deleted, renamed, binary, empty, executable files and links come back exactly, and are named."""
    repository = Repository.new(tmp_path / "kernel", sha=sha)
    repository.commit(
        {
            "kernel.py": "".join(f"line {number}\n" for number in range(200)),
            "gone.py": "gone\n",
            "old name.py": "moved\n" * 30,
            "table.bin": bytes(range(256)) * 40,
            "run.sh": "#!/bin/sh\n",
            "no newline": "last",
        }
    )
    text = (repository.path / "kernel.py").read_text()
    repository.write(
        {
            "kernel.py": text.replace("line 7\n", "line seven\n").replace("line 150\n", ""),
            "table.bin": bytes(reversed(range(256))) * 41,
            "new.bin": os.urandom(5000),
            "new/deep/file.py": "NEW = 1\n",
            'ünïcode \t".txt': "x\n",
            "empty": "",
            "no newline": "last\nbut one",
        }
    )
    (repository.path / "gone.py").unlink()
    (repository.path / "old name.py").rename(repository.path / "new name.py")
    (repository.path / "run.sh").chmod(0o755)
    (repository.path / "link").symlink_to("kernel.py")
    # A tab is a control character, which no source tree has.
    (repository.path / 'ünïcode \t".txt').rename(repository.path / "ünïcode.txt")
    patch = _round_trip(desk, repository)
    assert (desk.folder / "changed" / "run.sh").stat().st_mode & 0o777 == 0o755
    assert patch == _changes(desk, repository, "again")
    assert {"kernel.py", "new.bin", "gone.py", "run.sh", "new/deep/file.py"} <= set(paths_of(patch))
    assert str(tmp_path).encode() not in patch


def test_clean(desk: Desk, repository: Repository) -> None:
    """A clean working tree has no changes: not what is ignored, not a new time, not what only the index says."""
    repository.commit({".gitignore": "*.o\nbuild/\n"})
    repository.write({"a.o": "x", "build/x": "x", "local": "x"})
    (repository.path / ".git" / "info").mkdir(exist_ok=True)
    (repository.path / ".git" / "info" / "exclude").write_text("local\n")
    os.utime(repository.path / "kernel.py", (1, 1))
    assert _changes(desk, repository) is None


def test_staged_and_hidden(desk: Desk, repository: Repository) -> None:
    """What counts is what lies there, whatever the index claims: staged, assumed unchanged or skipped."""
    repository.write({"kernel.py": "KERNEL = 2\n", "lib/part.py": "PART = 2\n"})
    repository.git("add", "kernel.py")
    repository.git("update-index", "--assume-unchanged", "lib/part.py")
    assert paths_of(_round_trip(desk, repository)) == ("kernel.py", "lib/part.py")


def test_line_ends(desk: Desk, repository: Repository) -> None:
    """Files that git keeps with other line ends than it checks out are no changes."""
    repository.commit({".gitattributes": "*.txt text eol=crlf\n", "a.txt": "a\nb\n"})
    (repository.path / "a.txt").write_bytes(b"a\r\nb\r\n")
    assert _changes(desk, repository) is None


def test_lfs(desk: Desk, repository: Repository) -> None:
    """A file in the place of its LFS pointer is no change; another one is."""
    import hashlib

    data = os.urandom(3000)
    digest = hashlib.sha256(data).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(data)}\n"
    repository.commit({"model.bin": pointer})
    repository.write({"model.bin": data})
    assert _changes(desk, repository) is None
    repository.write({"model.bin": os.urandom(3000)})
    assert paths_of(_changes(desk, repository) or b"") == ("model.bin",)


def test_submodule_is_looked_at(desk: Desk, repository: Repository, tmp_path: Path) -> None:
    """A submodule with changes or at another commit is refused; a clean one, or one that is not checked out, is not."""
    part = Repository.new(tmp_path / "part")
    part.commit({"part.txt": "1"})
    repository.submodule("../part", "part")
    source = desk.source(repository.path, repository.head)
    (module,) = source.submodules
    mirror = Mirror.of(desk.store, module.url, module.commit)

    def look(name: str) -> None:
        with desk.store.private_folder() as work:
            clean_submodule(repository.path / "part", module, mirror, work / name, where="kernel")

    look("clean")
    assert _changes(desk, repository) is None
    inner = Repository(repository.path / "part")
    inner.write({"new.txt": "x"})
    with pytest.raises(UnsafeInputError, match="holds changes that are not committed"):
        look("dirty")
    inner.commit()
    with pytest.raises(UnsafeInputError, match=f"is at commit {inner.head}"):
        look("moved")
    repository.git("submodule", "--quiet", "deinit", "--force", "--all")
    look("absent")
    assert _changes(desk, repository) is None


def test_repository_inside(desk: Desk, repository: Repository) -> None:
    """A repository inside that is no submodule cannot be carried by a patch."""
    Repository.new(repository.path / "inside").commit({"x": "x"})
    with pytest.raises(UnsafeInputError, match=r"'inside.*' holds a repository of its own"):
        _changes(desk, repository)


def test_sparse(desk: Desk, repository: Repository) -> None:
    """A sparse working tree leaves files out, and what else it changed cannot be told."""
    repository.git("sparse-checkout", "set", "lib")
    with pytest.raises(NotCheckedError, match="sparse"):
        _changes(desk, repository)


def test_linked_working_tree(desk: Desk, repository: Repository, tmp_path: Path) -> None:
    """A second working tree of a repository (`git worktree`) is one like any other."""
    repository.git("worktree", "add", "--quiet", str(tmp_path / "second"), "-b", "second")
    second = Repository(tmp_path / "second")
    second.write({"kernel.py": "KERNEL = 2\n"})
    assert paths_of(_changes(desk, second) or b"") == ("kernel.py",)


def test_bare(repository: Repository, tmp_path: Path) -> None:
    """A bare repository has no working tree, and one without a commit has nothing checked out."""
    git("clone", "--quiet", "--bare", str(repository.path), str(tmp_path / "bare"), cwd=tmp_path)
    assert working_tree(tmp_path / "bare") is None
    assert working_tree(Repository.new(tmp_path / "empty").path) is None


def test_other_commit(desk: Desk, repository: Repository) -> None:
    """A patch of another commit, one that was edited, and one that does not apply are refused."""
    repository.write({"kernel.py": "KERNEL = 2\n"})
    patch = _changes(desk, repository)
    assert patch is not None
    source = desk.source(repository.path, repository.head)
    with pytest.raises(DriftError, match="give another tree than they say"):
        desk.exported(source, "edited", changes=patch.replace(b"KERNEL = 2", b"KERNEL = 3"))
    with pytest.raises(DriftError, match="do not apply"):
        desk.exported(source, "broken", changes=patch.replace(b"-KERNEL = 1", b"-KERNEL = 7"))
    with pytest.raises(DriftError, match="names no commit"):
        desk.exported(source, "headless", changes=patch[patch.index(b"diff") :])
    repository.commit()
    other = desk.source(repository.path, repository.head)
    with pytest.raises(DriftError, match="they are of commit"):
        desk.exported(other, "other", changes=patch)


@pytest.mark.parametrize("path", ["../outside", ".git/hooks/post-checkout", "/penny/outside", ".GIT/config"])
def test_patch_that_leaves(path: str, desk: Desk, repository: Repository) -> None:
    """A patch that names a file outside of the tree, or in a repository's own folder, writes nothing."""
    repository.write({"new.txt": "payload\n"})
    patch = _changes(desk, repository)
    assert patch is not None
    source = desk.source(repository.path, repository.head)
    hostile = patch.replace(b"a/new.txt b/new.txt", f"a/{path} b/{path}".encode()).replace(
        b"+++ b/new.txt", f"+++ b/{path}".encode()
    )
    assert hostile != patch
    with pytest.raises(DriftError):
        desk.exported(source, "hostile", changes=hostile)
    assert not list(desk.folder.rglob("outside"))
    assert not list((desk.folder / "hostile").rglob("*"))


def test_patch_through_a_link(desk: Desk, repository: Repository, tmp_path: Path) -> None:
    """A patch that makes a link out of the tree is refused when the tree is written."""
    (repository.path / "out").symlink_to(tmp_path)
    patch = _changes(desk, repository)
    source = desk.source(repository.path, repository.head)
    with pytest.raises(UnsafeInputError, match="a link that leaves"):
        desk.exported(source, "linked", changes=patch)

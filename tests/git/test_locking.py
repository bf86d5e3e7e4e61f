"""`penny lock` with a component from git: resolved once, kept while the manifest asks for the same, then taken anew."""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.lock import Lock
from reproducer.documents.opened import open_lock
from reproducer.documents.sources import GitSource
from reproducer.errors import DriftError, InvalidDocumentError, NotCheckedError, UnsafeInputError, UsageError
from reproducer.git.mirrors import Mirror
from tests.git.conftest import Notes, Repository, Server, bare
from tests.locking.conftest import BACKEND, PROJECT, Project

LOCAL = 'source = { kind = "local", path = "runtime/kernels" }'


def kernels(path: Path) -> Repository:
    """A repository of the component `kernels`, in a subfolder, like no other one."""
    repository = Repository.new(path)
    backend = BACKEND.replace("@NAME@", "kernels").replace("@VERSION@", "0.1")
    token = secrets.token_hex(8)
    repository.commit(
        {"py/pyproject.toml": PROJECT, "py/backend.py": backend, "py/kernels.py": f"KERNELS = '{token}'\n"}, token
    )
    repository.git("tag", "-a", "v1", "-m", "one")
    return repository


@pytest.fixture
def from_git(project: Project, tmp_path: Path) -> Callable[..., Repository]:
    """Lets the project's component `kernels` come from git."""

    def change(url: str | None = None, ref: str = "v1", more: str = "") -> Repository:
        repository = kernels(tmp_path / "project" / "vendor")
        where = url or "vendor"
        project.edit(LOCAL, f'source = {{ kind = "git", url = "{where}", ref = "{ref}", subfolder = "py"{more} }}')
        return repository

    return change


def source_of(lock: Lock) -> GitSource:
    """The git source of the component `kernels`."""
    source = next(each.source for each in lock.components if each.name == "kernels")
    assert isinstance(source, GitSource)
    return source


def test_locked(project: Project, from_git: Callable[..., Repository]) -> None:
    """A tag becomes a commit and a tree; the lock carries no tag, no branch and no path of this machine (R1)."""
    repository = from_git()
    locked = project.written()
    source = source_of(locked.document)
    assert (source.url, source.commit, source.tree, source.subfolder) == (None, repository.head, repository.tree, "py")
    text = project.path.read_text()
    assert '"v1"' not in text
    assert "vendor" not in text
    assert str(project.folder) not in text
    members = next(data for path, data in locked.files.items() if path.endswith("kernels-0.1-py3-none-any.whl.members"))
    assert b"kernels.py" in members
    assert project.lock(check=True).reasons == ()
    assert project.lock().reasons == ()


def test_kept(project: Project, from_git: Callable[..., Repository]) -> None:
    """A branch that moves on leaves the lock as it is; --upgrade takes it anew, and the build with it."""
    repository = from_git(ref="main")
    first = source_of(project.written().document)
    new = repository.commit({"py/kernels.py": f"KERNELS = '{secrets.token_hex(4)}'\n"})
    notes = Notes()
    assert project.lock(check=True, reporter=notes).reasons == ()
    assert any(f"main is at {new[:12]} now; the lock keeps {first.commit[:12]}" in note for note in notes.said)
    assert source_of(project.written().document) == first
    upgraded = project.written(upgrade=frozenset({"kernels"}))
    assert source_of(upgraded.document).commit == new
    reasons = "\n".join(upgraded.reasons)
    assert f"components[kernels].source.commit: '{first.commit}' becomes '{new}'" in reasons
    assert "outputs[kernels-0.1-py3-none-any.whl].sha256" in reasons
    assert source_of(project.written(upgrade=frozenset({"ALL"})).document).commit == new


def test_other_words(project: Project, from_git: Callable[..., Repository]) -> None:
    """Where the manifest asks for another name or commit it is resolved, without --upgrade."""
    repository = from_git(ref="main")
    first = source_of(project.written().document)
    new = repository.commit({"py/kernels.py": f"KERNELS = '{secrets.token_hex(4)}'\n"})
    project.edit('ref = "main"', f'ref = "{new}"')
    second = source_of(project.written().document)
    assert (second.commit, second.asked) == (new, None)
    project.edit(f'ref = "{new}"', 'ref = "v1"')
    assert source_of(project.written().document).commit == first.commit


def test_moved_tag(project: Project, from_git: Callable[..., Repository]) -> None:
    """A tag that was moved is a reason of --check, never followed silently; --upgrade follows it and says so (R1)."""
    repository = from_git()
    first = source_of(project.written().document)
    new = repository.commit({"py/kernels.py": f"KERNELS = '{secrets.token_hex(4)}'\n"})
    repository.git("tag", "--force", "-a", "v1", "-m", "moved")
    (reason,) = project.lock(check=True).reasons
    assert f"the tag 'v1' was moved: the lock has {first.commit}, the tag is {new} now" in reason
    assert source_of(project.written().document) == first
    notes = Notes()
    assert source_of(project.written(upgrade=frozenset({"kernels"}), reporter=notes).document).commit == new
    assert any("was moved" in note for note in notes.said)
    repository.git("tag", "--delete", "v1")
    (reason,) = project.lock(check=True).reasons
    assert "has no branch or tag 'v1'" in reason


def test_missing(project: Project, from_git: Callable[..., Repository]) -> None:
    """A tag or commit that is not there is an error with what is; nothing falls back to a branch (R7)."""
    from_git(ref="v1.0")
    with pytest.raises(DriftError, match="Did you mean 'v1'"):
        project.lock()
    project.edit('ref = "v1.0"', f'ref = "{"1" * 40}"')
    with pytest.raises(DriftError, match=r"has no commit 1111.*main is"):
        project.lock()
    project.edit('url = "vendor"', 'url = "nowhere"')
    with pytest.raises(DriftError, match=r"there is no repository at .*nowhere"):
        project.lock()


@pytest.mark.parametrize(
    ("url", "ref", "error"),
    [
        ("ext::sh -c id", "main", UnsafeInputError),
        ("--upload-pack=id", "main", UnsafeInputError),
        ("https://user:word@git.example/x", "main", UnsafeInputError),
        ("vendor", "--upload-pack=id", InvalidDocumentError),
        ("vendor", "main\\nx", InvalidDocumentError),
        ("vendor", "main^", InvalidDocumentError),
    ],
)
def test_hostile(
    url: str, ref: str, error: type[Exception], project: Project, from_git: Callable[..., Repository]
) -> None:
    """Options, commands and expressions in a manifest are refused before git is asked."""
    from_git(url, ref)
    with pytest.raises(error):
        project.lock()


def test_subfolder(project: Project, from_git: Callable[..., Repository]) -> None:
    """A subfolder that the commit does not have, or that is a link, is an error."""
    repository = from_git(ref="main")
    project.edit('subfolder = "py"', 'subfolder = "python"')
    with pytest.raises(DriftError, match="no folder 'python'"):
        project.lock()
    (repository.path / "python").symlink_to("py")
    repository.commit()
    with pytest.raises(DriftError, match="no folder 'python'"):
        project.lock()


def test_changes(project: Project, from_git: Callable[..., Repository]) -> None:
    """A working tree with changes is refused, or locked as commit and patch beside the lock and built so."""
    repository = from_git(ref="main")
    (repository.path / "py" / "kernels.py").write_text("KERNELS = 'changed'\n")
    repository.write({"py/table.bin": bytes(range(256)), "notes.txt": "untracked\n"})
    with pytest.raises(DriftError, match=r"holds changes that its commit does not.*'notes.txt', .*changes = true"):
        project.lock()
    project.edit('subfolder = "py"', 'subfolder = "py", changes = true')
    notes = Notes()
    locked = project.written(reporter=notes)
    source = source_of(locked.document)
    assert source.commit == repository.head
    assert source.changes is not None
    assert source.changes.path == "runtime/expected/kernels.changes.patch"
    assert b"KERNELS = 'changed'" in (project.folder / source.changes.path).read_bytes()
    assert any("locked as commit" in note and "py/table.bin" in note for note in notes.said)
    assert project.lock(check=True).reasons == ()
    before = locked.document
    repository.write({"notes.txt": "more\n"})
    assert any("source.changes.sha256" in reason for reason in project.lock(check=True).reasons)
    repository.git("checkout", "--quiet", "--", ".")
    repository.git("clean", "--quiet", "--force")
    clean = project.written().document
    assert source_of(clean).changes is None
    assert source_of(clean).commit == source.commit
    assert clean.components[1].outputs != before.components[1].outputs


def test_lock_inside_of_the_repository(project: Project) -> None:
    """A lock may lie in the repository that it locks: what it writes itself is no change of the source."""
    repository = Repository(project.folder)
    repository.git("init", "--quiet", "--initial-branch=main")
    token = secrets.token_hex(8)
    repository.commit({"runtime/kernels/kernels.py": f"KERNELS = '{token}'\n"}, token)
    text = 'source = { kind = "git", url = ".", ref = "main", subfolder = "runtime/kernels", changes = true }'
    project.edit(LOCAL, text)
    repository.commit()
    first = project.written().document
    assert source_of(first).changes is None
    assert project.lock(check=True).reasons == ()
    repository.write({"runtime/kernels/kernels.py": "KERNELS = 'changed'\n"})
    locked = project.written()
    patch = locked.files["runtime/expected/kernels.changes.patch"]
    assert patch.count(b"diff --git") == 1
    assert project.lock(check=True).reasons == ()
    assert project.written().document == locked.document


def test_changes_of_another_commit(project: Project, from_git: Callable[..., Repository]) -> None:
    """Changes belong to the commit that is checked out; beside another one they are refused, or do not matter."""
    repository = from_git(ref="v1")
    project.edit('subfolder = "py"', 'subfolder = "py", changes = true')
    first = project.written().document
    repository.commit({"py/kernels.py": f"KERNELS = '{secrets.token_hex(4)}'\n"})
    with pytest.raises(DriftError, match="working tree is at commit"):
        project.lock()
    project.edit(", changes = true", "")
    repository.write({"notes.txt": "untracked\n"})
    assert source_of(project.written().document).commit == source_of(first).commit


def test_dirty_submodule(project: Project, from_git: Callable[..., Repository], tmp_path: Path) -> None:
    """Changes in a submodule are not carried by its parent's patch: they are refused, whatever the manifest says."""
    repository = from_git(ref="main")
    part = Repository.new(tmp_path / "project" / "part")
    part.commit({"part.txt": secrets.token_hex(4)})
    repository.submodule("../part", "py/part")
    source = source_of(project.written().document)
    assert [each.path for each in source.submodules] == ["py/part"]
    (repository.path / "py" / "part" / "part.txt").write_text("changed\n")
    project.edit('subfolder = "py"', 'subfolder = "py", changes = true')
    with pytest.raises(UnsafeInputError, match="submodule 'py/part' holds changes"):
        project.lock()


def test_on_a_strangers_machine(project: Project, from_git: Callable[..., Repository], tmp_path: Path) -> None:
    """Where the repository is not there the lock stays as it is; what is not locked yet cannot be."""
    repository = from_git()
    repository.write({"notes.txt": "untracked\n"})
    project.edit('subfolder = "py"', 'subfolder = "py", changes = true')
    first = project.written().document
    repository.path.rename(tmp_path / "elsewhere")
    notes = Notes()
    assert project.lock(check=True, reporter=notes).reasons == ()
    assert project.lock().document == first
    assert any("what the lock says of it is kept" in note for note in notes.said)
    with pytest.raises(DriftError, match="there is no repository"):
        project.lock(upgrade=frozenset({"kernels"}))


def test_from_a_server(project: Project, daemon: Server, tmp_path: Path) -> None:
    """An address is locked with commit, tree and submodules; --check of it fetches no file of an unlocked commit."""
    repository = kernels(tmp_path / "origin")
    bare(repository, daemon.folder, "kernels.git")
    url = f"{daemon.url}/kernels.git"
    project.edit(LOCAL, f'source = {{ kind = "git", url = "{url}", ref = "main", subfolder = "py" }}')
    checked = project.lock(check=True)
    assert any("components[kernels].source" in reason for reason in checked.reasons)
    assert not Mirror.of(project.store, url, repository.head).has(repository.head)
    assert Mirror.of(project.store, url, repository.head, "outline").has(repository.head)
    locked = project.written().document
    assert (source_of(locked).url, source_of(locked).commit) == (url, repository.head)
    assert project.lock(offline=True).reasons == ()
    notes = Notes()
    assert project.lock(offline=True, check=True, reporter=notes).reasons == ()
    assert any("was not asked: --offline" in note for note in notes.said)
    with pytest.raises(NotCheckedError, match=r"branch or a tag|touches no network"):
        project.lock(offline=True, upgrade=frozenset({"kernels"}))


def test_check_that_cannot_ask(project: Project, daemon: Server, tmp_path: Path) -> None:
    """A --check that cannot ask where a tag is now has not checked it: it does not say that all is well."""
    repository = kernels(tmp_path / "origin")
    copy = bare(repository, daemon.folder, "kernels.git")
    url = f"{daemon.url}/kernels.git"
    project.edit(LOCAL, f'source = {{ kind = "git", url = "{url}", ref = "v1", subfolder = "py" }}')
    project.written()
    copy.rename(tmp_path / "away")
    with pytest.raises(NotCheckedError, match=r"kernels\.git"):
        project.lock(check=True)
    assert project.lock().reasons == ()


@pytest.mark.parametrize(("name", "near"), [("kernel", "kernels"), ("alpa", "alpha"), ("modle", "model")])
def test_upgrade_of_nothing(name: str, near: str, project: Project) -> None:
    """--upgrade of a name that nothing goes by is an error with the nearest one."""
    with pytest.raises(UsageError, match=f"nothing is named '{name}'.*Did you mean '{near}'"):
        project.lock(upgrade=frozenset({name}))


@pytest.mark.parametrize("name", ["ALL", "kernels", "model", "gamma", "Engine", "tiny_model", "lonely"])
def test_upgrade_of_something(name: str, project: Project) -> None:
    """Components, checkpoints, packages and projects may be named, in any spelling of a project's name."""
    assert project.lock(upgrade=frozenset({name}), check=True).document


def test_open_lock_checks_the_patch(project: Project, from_git: Callable[..., Repository]) -> None:
    """The patch beside the lock is pinned by its digest."""
    repository = from_git(ref="main", more=", changes = true")
    repository.write({"notes.txt": "untracked\n"})
    project.written()
    opened = open_lock(project.path)
    opened.check_files()
    patch: Any = source_of(opened.lock).changes
    (project.folder / patch.path).write_bytes(b"other")
    with pytest.raises(DriftError, match="not the file that the lock pins"):
        opened.check_files()

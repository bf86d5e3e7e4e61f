"""Branches, tags and commits: what they name now, and what is said where they name nothing."""

from pathlib import Path

import pytest

from reproducer.errors import DriftError, InvalidDocumentError
from reproducer.git.addresses import Address
from reproducer.git.references import asked, checked, is_commit, resolve
from tests.git.conftest import Repository, Server, bare


def _resolve(repository: Repository, ref: str) -> tuple[str, str]:
    found = resolve(Address(path=repository.path), ref, folder=repository.path, where="manifest")
    return found.commit, found.kind


@pytest.mark.parametrize("sha", ["sha1", "sha256"])
def test_kinds(tmp_path: Path, sha: str) -> None:
    """A branch, a light tag, an annotated tag (peeled, even twice), HEAD, a full reference and a full commit."""
    repository = Repository.new(tmp_path / "kernel", sha=sha)
    first = repository.commit({"a": "1"})
    repository.git("tag", "light")
    repository.git("tag", "-a", "v1", "-m", "annotated")
    repository.git("tag", "-a", "v1-again", "-m", "of a tag", "v1")
    second = repository.commit({"a": "2"})
    repository.git("update-ref", "refs/pull/7/head", first)
    assert len(first) == {"sha1": 40, "sha256": 64}[sha]
    assert _resolve(repository, "main") == (second, "branch")
    assert _resolve(repository, "HEAD") == (second, "branch")
    assert _resolve(repository, "light") == (first, "tag")
    assert _resolve(repository, "v1") == (first, "tag")
    assert _resolve(repository, "v1-again") == (first, "tag")
    assert _resolve(repository, "refs/tags/v1") == (first, "tag")
    assert _resolve(repository, "refs/pull/7/head") == (first, "other")
    assert _resolve(repository, first) == (first, "commit")


def test_tail_of_a_name_is_another_name(repository: Repository) -> None:
    """`part` is not the branch `other/part`, though git's patterns would match its end."""
    repository.git("branch", "other/part")
    with pytest.raises(DriftError, match="no branch or tag 'part'"):
        _resolve(repository, "part")


def test_missing(repository: Repository) -> None:
    """A name that is not there is an error with the nearest one; nothing falls back to a branch."""
    repository.git("tag", "v0.5.9")
    with pytest.raises(DriftError, match=r"has no branch or tag 'v0\.5\.8'\. Did you mean 'v0\.5\.9'\?"):
        _resolve(repository, "v0.5.8")
    with pytest.raises(DriftError, match=r"It has main, v0\.5\.9"):
        _resolve(repository, "something-else")


def test_abbreviated(repository: Repository) -> None:
    """An abbreviated commit is refused, for it may come to mean another one."""
    with pytest.raises(DriftError, match="Write all digits of the commit"):
        _resolve(repository, repository.head[:10])


def test_branch_and_tag(repository: Repository) -> None:
    """A name that is a branch and a tag, at two commits, is nobody's to choose."""
    repository.git("tag", "both")
    repository.git("checkout", "--quiet", "-b", "both")
    repository.commit({"b": "1"})
    with pytest.raises(InvalidDocumentError, match="Write refs/heads/both or refs/tags/both"):
        _resolve(repository, "both")
    assert _resolve(repository, "refs/tags/both")[1] == "tag"


def test_empty(tmp_path: Path) -> None:
    """A repository without a commit says so."""
    repository = Repository.new(tmp_path / "empty")
    with pytest.raises(DriftError, match="it has no branch and no tag"):
        _resolve(repository, "main")


@pytest.mark.parametrize(
    "ref",
    [
        *("-x", "--upload-pack=touch x", "a..b", "main^", "main~1", "main:file", "a b", "a\nb", "*", "refs/heads/*"),
        *("main@{1}", "@", "", "a\\b", "[a]", "/a", "a/", "a//b", "x.lock", "a/.b", "a\u202eb", "a?", ".hidden"),
    ],
)
def test_no_names(ref: str) -> None:
    """Options, expressions, patterns and control characters are no names."""
    with pytest.raises(InvalidDocumentError):
        checked(ref, where="manifest")


def test_asked() -> None:
    """A lock carries what was asked for without a name in it; a commit asks for nothing else."""
    assert asked("main") != asked("v1")
    assert "main" not in str(asked("main"))
    assert asked("a" * 40) is None
    assert is_commit("a" * 64)
    assert not is_commit("a" * 41)


def test_over_a_network(repository: Repository, daemon: Server) -> None:
    """The same from a server."""
    repository.git("tag", "-a", "v1", "-m", "annotated")
    bare(repository, daemon.folder, "kernel.git")
    found = resolve(daemon.at("kernel.git"), "v1", folder=daemon.folder, where="manifest")
    assert (found.commit, found.kind) == (repository.head, "tag")

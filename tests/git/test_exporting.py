"""Source trees from commits: exactly the bytes that the hashes name, and nothing that could become more than files."""

import os
import shutil
from pathlib import Path

import pytest

from reproducer.archives.tree_writer import Limits
from reproducer.documents.sources import GitSource, Submodule
from reproducer.errors import DriftError, UnsafeInputError
from reproducer.git.mirrors import Mirror
from reproducer.git.objects import DamagedError
from tests.git.conftest import EPOCH, Desk, Repository, git


def _planted(desk: Desk, repository: Repository, commit: str) -> Mirror:
    """A commit in its mirror as git's own checks would never have let it in."""
    mirror = Mirror.of(desk.store, None, commit)
    desk.store.prepare()
    mirror.folder.parent.mkdir(parents=True, exist_ok=True)
    git("init", "--quiet", "--bare", "--template=", str(mirror.folder), cwd=desk.folder)
    shutil.copytree(repository.path / ".git" / "objects", mirror.folder / "objects", dirs_exist_ok=True)
    git("update-ref", f"refs/penny/{commit}", commit, cwd=mirror.folder)
    return mirror


@pytest.mark.parametrize("sha", ["sha1", "sha256"])
def test_whole_tree(sha: str, desk: Desk, tmp_path: Path) -> None:
    """Files, links, modes, times, and submodules below submodules, of repositories with either kind of name."""
    inner = Repository.new(tmp_path / "inner", sha=sha)
    inner.commit({"inner.txt": "inner"})
    part = Repository.new(tmp_path / "part", sha=sha)
    part.commit({"part.txt": "part"})
    part.submodule("../inner", "deep/inner")
    kernel = Repository.new(tmp_path / "kernel", sha=sha)
    kernel.write({"a b/run.sh": "#!/bin/sh\n", "ünïcode": "x", "empty": ""})
    (kernel.path / "a b" / "run.sh").chmod(0o755)
    (kernel.path / "link").symlink_to("a b/run.sh")
    (kernel.path / "dangling").symlink_to("not-there")
    kernel.commit()
    kernel.submodule("../part", "third party/part")
    source = desk.source(kernel.path, kernel.head)
    assert source.tree == kernel.tree
    assert [(each.path, each.url, each.commit, each.tree) for each in source.submodules] == [
        ("third party/part", None, part.head, part.tree),
        ("third party/part/deep/inner", None, inner.head, inner.tree),
    ]
    files = desk.exported(source)
    assert files.pop(".gitmodules").startswith("[submodule")
    assert files.pop("third party/part/.gitmodules").startswith("[submodule")
    assert files == {
        "a b/run.sh": "#!/bin/sh\n",
        "dangling": "-> not-there",
        "empty": "",
        "link": "-> a b/run.sh",
        "third party/part/deep/inner/inner.txt": "inner",
        "third party/part/part.txt": "part",
        "ünïcode": "x",
    }
    out = tmp_path / "out"
    assert (out / "a b" / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (out / "empty").stat().st_mode & 0o777 == 0o644
    assert {path.lstat().st_mtime for path in out.rglob("*")} == {float(EPOCH)}


def test_attributes_change_nothing(desk: Desk, repository: Repository) -> None:
    """What `.gitattributes` says of line ends, idents and exports is not heeded: the bytes are those of the blobs."""
    repository.git("config", "core.autocrlf", "false")
    data: dict[str, str | bytes] = {
        "text.txt": "a\nb\n",
        "ident.txt": "$Id$\n",
        "left-out.txt": "there",
        "subst.txt": "$Format:%H$\n",
        "utf16.txt": "plain\n",
    }
    repository.commit(data)
    attributes = "text.txt text eol=crlf\nident.txt ident\nleft-out.txt export-ignore\nsubst.txt export-subst\n"
    repository.commit({".gitattributes": attributes})
    files = desk.exported(desk.source(repository.path, repository.head))
    assert {name: files[name] for name in data} == data


def test_lfs(desk: Desk, repository: Repository) -> None:
    """Files that are LFS pointers are recorded with the digest and size of what they stand for; the like is not."""
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize 12345\n"
    repository.commit(
        {
            "w/model.bin": pointer,
            "README": f"It looks like this:\n{pointer}",
            "half": pointer.replace("size 12345\n", ""),
            "long": pointer + "x" * 2000,
        }
    )
    held = desk.contents(repository.path, repository.head)
    assert [(each.path, each.sha256, each.size) for each in held.lfs] == [("w/model.bin", "ab" * 32, 12345)]
    assert desk.exported(desk.source(repository.path, repository.head))["w/model.bin"] == pointer


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (".git", "repository's own folder"),
        (".GIT", "repository's own folder"),
        ("git~1", "repository's own folder"),
        (".g\u200cit", "repository's own folder"),
        (".git::$INDEX_ALLOCATION", "repository's own folder"),
        (".git. ", "repository's own folder"),
        ("..", "leaves its folder"),
        (".", "leaves its folder"),
        ("a/../../b", "leaves its folder"),
        ("/absolute", "leaves its folder"),
        ("", "leaves its folder"),
        ("back\\slash", "backslash"),
        ("line\nbreak", "control character"),
        ("\x1b[2J", "control character"),
        ("\udcff", "not UTF-8"),
        ("n" * 300, "too long"),
    ],
)
@pytest.mark.parametrize("mode", ["100644", "40000"])
def test_names(name: str, message: str, mode: str, desk: Desk, repository: Repository) -> None:
    """Names that leave the folder, hide a repository or steer a terminal are refused, as files and as folders."""
    blob = repository.blob(b"payload")
    oid = blob if mode == "100644" else repository.made_tree(("100644", blob, "inside"))
    commit = repository.commit_tree(repository.made_tree((mode, oid, name)))
    _planted(desk, repository, commit)
    with pytest.raises(UnsafeInputError, match=message):
        desk.source(repository.path, commit)
    tree = repository.git("rev-parse", f"{commit}^{{tree}}")
    source = GitSource(commit=commit, tree=tree)
    with pytest.raises(UnsafeInputError, match=message):
        desk.exported(source)
    assert not (desk.folder / "payload").exists()


def test_git_refuses_them_too(desk: Desk, repository: Repository) -> None:
    """Such a tree does not even get into a mirror: git checks every object that comes."""
    commit = repository.commit_tree(repository.made_tree(("100644", repository.blob(b"x"), ".GIT")))
    with pytest.raises(UnsafeInputError, match="objects that git refuses"):
        desk.contents(repository.path, commit)
    assert not Mirror.of(desk.store, None, commit).has(commit)


def test_twice(desk: Desk, repository: Repository) -> None:
    """A name that stands twice in a tree, once as a link and once as a folder, is refused."""
    link = repository.blob(b"/tmp")
    inside = repository.made_tree(("100644", repository.blob(b"payload"), "payload"))
    commit = repository.commit_tree(repository.made_tree(("120000", link, "d"), ("40000", inside, "d")))
    _planted(desk, repository, commit)
    with pytest.raises(UnsafeInputError, match="stands twice"):
        desk.source(repository.path, commit)


@pytest.mark.parametrize(
    "links",
    [
        {"out": "../outside"},
        {"out": "/etc"},
        {"a/b/up": "../..", "out": "a/b/up/../outside"},
        {"one": "two/..", "two": "../x"},
        {"out": "a/../../x"},
    ],
)
def test_links_that_leave(links: dict[str, str], desk: Desk, repository: Repository) -> None:
    """A link that leaves the tree, by itself or through others, is refused."""
    for name, target in links.items():
        (repository.path / name).parent.mkdir(parents=True, exist_ok=True)
        (repository.path / name).symlink_to(target)
    repository.commit()
    source = desk.source(repository.path, repository.head)
    with pytest.raises(UnsafeInputError, match="a link that leaves"):
        desk.exported(source)


def test_modes(desk: Desk, repository: Repository) -> None:
    """A mode that is no file's is refused."""
    commit = repository.commit_tree(repository.made_tree(("10644", repository.blob(b"x"), "pipe")))
    _planted(desk, repository, commit)
    with pytest.raises(UnsafeInputError, match="which no file has"):
        desk.source(repository.path, commit)


def test_endless_tree(desk: Desk, repository: Repository) -> None:
    """A few objects that name each other ten times, ten deep, would be ten thousand million files: it stops early."""
    oid, mode = repository.blob(b"x"), "100644"
    for _ in range(10):
        oid, mode = repository.made_tree(*((mode, oid, f"n{number}") for number in range(10))), "40000"
    commit = repository.commit_tree(oid)
    _planted(desk, repository, commit)
    with pytest.raises(UnsafeInputError, match="more than 200000 entries"):
        desk.source(repository.path, commit)


def test_deep_tree(desk: Desk, repository: Repository) -> None:
    """Folders without end are refused."""
    oid, mode = repository.blob(b"x"), "100644"
    for _ in range(80):
        oid, mode = repository.made_tree((mode, oid, "d")), "40000"
    commit = repository.commit_tree(oid)
    _planted(desk, repository, commit)
    with pytest.raises(UnsafeInputError, match=r"too long|deeper than"):
        desk.source(repository.path, commit)


def test_large(desk: Desk, repository: Repository) -> None:
    """A tree that grows beyond the limit is refused before the file is written."""
    repository.commit({"large.bin": bytes(1 << 20)})
    source = desk.source(repository.path, repository.head)
    with pytest.raises(UnsafeInputError, match="grows beyond"):
        desk.exported(source, limits=Limits(total=1 << 19))
    assert not (desk.folder / "out" / "large.bin").exists()


def test_label_is_not_content(desk: Desk, repository: Repository) -> None:
    """A lock that names one commit and the tree of another is refused: the commit's own object says its tree (R6)."""
    first = desk.source(repository.path, repository.head)
    repository.commit({"kernel.py": "KERNEL = 2\n"})
    second = desk.source(repository.path, repository.head)
    with pytest.raises(DriftError, match=f"another tree than the lock says.*expected {second.tree}, got {first.tree}"):
        desk.exported(first.model_copy(update={"tree": second.tree}))


def test_damaged_object(desk: Desk, repository: Repository) -> None:
    """An object whose bytes are not those of its name is found, though git hands it out."""
    commit = repository.head
    mirror = _planted(desk, repository, commit)
    source = desk.source(repository.path, commit)
    blob = repository.git("rev-parse", "HEAD:kernel.py")
    other = repository.blob(b"KERNEL = 6\n")
    place = mirror.folder / "objects" / blob[:2] / blob[2:]
    place.chmod(0o644)
    shutil.copyfile(repository.path / ".git" / "objects" / other[:2] / other[2:], place)
    with pytest.raises(DamagedError, match=f"{blob} is damaged|{blob} cannot be read"):
        desk.exported(source)
    place.unlink()
    with pytest.raises(DamagedError, match=f"{blob} is not there"):
        desk.exported(source, "again")


def test_replaced_object(desk: Desk, repository: Repository) -> None:
    """`refs/replace`, by which git would hand out another commit, is not heeded."""
    commit = repository.head
    mirror = _planted(desk, repository, commit)
    source = desk.source(repository.path, commit)
    other = repository.commit({"kernel.py": "KERNEL = 6\n"})
    git("fetch", "--quiet", str(repository.path), "main", cwd=mirror.folder)
    git("update-ref", f"refs/replace/{commit}", other, cwd=mirror.folder)
    assert git("show", f"{commit}:kernel.py", cwd=mirror.folder) == "KERNEL = 6"
    assert desk.exported(source)["kernel.py"] == "KERNEL = 1\n"


def test_submodules_of_a_lock(desk: Desk, repository: Repository, tmp_path: Path) -> None:
    """A submodule that the lock does not name, at another commit, or in no parent is refused."""
    part = Repository.new(tmp_path / "part")
    part.commit({"part.txt": "part"})
    repository.submodule("../part", "part")
    source = desk.source(repository.path, repository.head)
    assert desk.exported(source)["part/part.txt"] == "part"
    (module,) = source.submodules
    with pytest.raises(DriftError, match="it names none there"):
        desk.exported(source.model_copy(update={"submodules": ()}), "none")
    moved = Repository(tmp_path / "part").commit({"part.txt": "other"})
    other = desk.source(tmp_path / "part", moved)
    stale = module.model_copy(update={"commit": other.commit, "tree": other.tree})
    with pytest.raises(DriftError, match="not the lock's"):
        desk.exported(source.model_copy(update={"submodules": (stale,)}), "stale")
    extra = Submodule(path="elsewhere", commit=module.commit, tree=module.tree)
    with pytest.raises(DriftError, match="its parent has none there"):
        desk.exported(source.model_copy(update={"submodules": (module, extra)}), "extra")
    relabelled = module.model_copy(update={"tree": repository.tree})
    with pytest.raises(DriftError, match="another tree than the lock says"):
        desk.exported(source.model_copy(update={"submodules": (relabelled,)}), "relabelled")


def test_not_fetched(desk: Desk, repository: Repository) -> None:
    """What is not in the store is not fetched while it is exported."""
    source = desk.source(repository.path, repository.head)
    with pytest.raises(DriftError, match="is not in the store"):
        desk.exported(source.model_copy(update={"url": "https://git.example/kernel"}))


def test_many_files(desk: Desk, repository: Repository) -> None:
    """Five hundred files, some of them large, come out as they went in."""
    data: dict[str, str | bytes] = {f"d{number % 20}/f{number}": f"{number}\n" * number for number in range(500)}
    repository.commit(data)
    files = desk.exported(desk.source(repository.path, repository.head))
    assert {name: files[name] for name in data} == data
    assert os.path.realpath(desk.folder / "out") == str(desk.folder / "out")

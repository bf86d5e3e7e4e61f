"""What a working tree holds beside its commit: read without its own git, kept as a patch, applied to trees.

Its `.git` may name programs to run for nearly every command. So the files are looked at from a repository of penny's
own, which has no configuration; of theirs it reads the commit that is checked out and the list of what is ignored.
"""

import hashlib
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reproducer.documents.base import shown
from reproducer.documents.opened import LARGEST_FILE
from reproducer.documents.sources import GitSource, Submodule
from reproducer.errors import DriftError, NotCheckedError, UnsafeInputError
from reproducer.git.contents import pointer
from reproducer.git.mirrors import Mirror
from reproducer.git.objects import objects
from reproducer.git.reaching import refuse_pipes, refuse_pipes_among
from reproducer.git.running import GitFaultError, ask, run
from reproducer.git.trees import FILE, KIND, SUBMODULE

_HEAD = re.compile(rb"\AChanges of a working tree beside commit ([0-9a-f]+): with them its tree is ([0-9a-f]+)\.\n\n")
_GITLINK = re.compile(r"^160000 ([0-9a-f]+) 0\t(.+)$", re.DOTALL)
_RAW = re.compile(r"^:([0-7]{6}) ([0-7]{6}) ([0-9a-f]+) ([0-9a-f]+) ([A-Z])[0-9]*$")
_LARGEST_IGNORED = 1 << 20
_LARGEST_POINTER = 1024
_NAMED = 4
_PATIENCE_S = 120.0
_DIFF = ("diff-index", "--cached", "--no-renames", "--ignore-submodules=none")


@dataclass(frozen=True)
class WorkingTree:
    """A working tree on this machine.

    Attributes:
        path: its top folder.
        git_dir: its own repository.
        commit: what is checked out.
    """

    path: Path
    git_dir: Path
    commit: str


def working_tree(path: Path) -> WorkingTree | None:
    """The working tree at a path; None for a bare repository, and where nothing is checked out.

    Raises:
        GitFaultError: it is no repository.
        UnsafeInputError: git would wait at a pipe in it.
    """
    inside = path / ".git"
    refuse_pipes(path)
    if not inside.exists():
        return None
    found = run(
        ["rev-parse", "--absolute-git-dir"],
        folder=path,
        git_dir=inside,
        what="looking at it",
        where=str(path),
        patience_s=_PATIENCE_S,
    )
    git_dir = Path(found.decode("utf-8", "surrogateescape").rstrip("\n"))
    said = ask(
        ["rev-parse", "--verify", "--quiet", "--end-of-options", "HEAD^{commit}"],
        folder=path,
        git_dir=inside,
        what="looking for what is checked out",
        patience_s=_PATIENCE_S,
    )
    commit = said.out.decode("ascii", "replace").strip()
    return WorkingTree(path, git_dir, commit) if said.status == 0 else None


def changes_of(
    tree: WorkingTree,
    mirror: Mirror,
    work: Path,
    *,
    where: str,
    left_out: Callable[[str], bool] = lambda _path: False,
) -> bytes | None:
    """The patch from the commit that is checked out to what lies there, tracked and untracked; None where it is clean.

    Args:
        tree: the working tree.
        mirror: has its commit.
        work: a folder of penny's own, that does not exist yet.
        where: what it is for, for errors.
        left_out: files that count as they are in the commit.

    Raises:
        UnsafeInputError: what no patch carries: repositories inside, and more than a lock's files may have.
        NotCheckedError: a file cannot be read; a sparse working tree.
    """
    _not_sparse(tree, where)
    refuse_pipes_among(tree.path)
    index = _Index.over(work, mirror, tree.path)
    index.ignore(_ignored(tree))
    index.run("read-tree", tree.commit)
    with index.without_submodules():
        try:
            index.run("add", "--all", "--", ".")
        except GitFaultError as error:
            raise NotCheckedError("the working tree cannot be read", where=str(tree.path), why=error.why) from error
    index.settle(tree.commit, left_out)
    index.settle_pointers(tree.commit)
    changed = list(index.changed(tree.commit))
    if not changed:
        return None
    modules = [path for path, modes in changed if SUBMODULE in modes]
    if modules:
        raise UnsafeInputError(
            f"{', '.join(map(shown, modules[:_NAMED]))} holds a repository of its own",
            where=where,
            why="a patch carries no repository",
            todo="make it a submodule, or take it away",
        )
    result = index.run("write-tree").decode().strip()
    patch = index.run(
        *_DIFF, "--patch", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", tree.commit
    )
    head = f"Changes of a working tree beside commit {tree.commit}: with them its tree is {result}.\n\n"
    if len(head) + len(patch) > LARGEST_FILE:
        raise UnsafeInputError(f"the changes are larger than {LARGEST_FILE} bytes", where=where, todo="commit them")
    return head.encode() + patch


def clean_submodule(place: Path, module: Submodule, mirror: Mirror, work: Path, *, where: str) -> None:
    """Refuse a submodule of a working tree that is not exactly its commit; one that is not checked out is.

    Raises:
        UnsafeInputError: it holds changes or is at another commit.
    """
    tree = working_tree(place)
    if tree is None:
        return
    at_other = tree.commit != module.commit
    if at_other or changes_of(tree, mirror, work, where=where) is not None:
        raise UnsafeInputError(
            f"the submodule {shown(module.path)} "
            + (f"is at commit {tree.commit}" if at_other else "holds changes that are not committed"),
            where=where,
            why=f"the parent names {module.commit}, and a patch of the parent carries nothing of a submodule",
            todo="commit it there and in the parent, or put it back",
        )


def paths_of(patch: bytes) -> tuple[str, ...]:
    """The files that a patch of this kind is about, for notes."""
    names = re.findall(rb"^diff --git (?:\"?a/.*?\"? )\"?b/(.*?)\"?$", patch, re.MULTILINE)
    return tuple(name.decode("utf-8", "replace") for name in names)


def changed_tree(work: Path, mirror: Mirror, source: GitSource, patch: bytes, *, where: str) -> str:
    """The tree of a commit with its changes, in a new repository at `work` that reads the mirror's objects too.

    Nothing is written but objects: a path that would leave is refused by git's index, and whoever exports the tree
    checks every name again.

    Raises:
        DriftError: the patch belongs to another commit, does not apply, or gives another tree than it says.
    """
    head = _HEAD.match(patch)
    if head is None or head[1].decode() != source.commit:
        other = f"they are of commit {head[1].decode()}" if head else "their first line names no commit"
        raise DriftError(f"the changes are not those of commit {source.commit}", where=where, why=other)
    index = _Index.over(work, mirror, work)
    index.run("read-tree", source.tree)
    (work / "changes.patch").write_bytes(patch)
    try:
        index.run("apply", "--cached", "--whitespace=nowarn", "--", str(work / "changes.patch"))
    except GitFaultError as error:
        raise DriftError("the changes do not apply to their commit", where=where, why=error.said) from error
    tree = index.run("write-tree").decode().strip()
    if tree != head[2].decode():
        raise DriftError(
            "the changes give another tree than they say", where=where, why=f"expected {head[2].decode()}, got {tree}"
        )
    return tree


@dataclass(frozen=True)
class _Index:
    """A repository of penny's own over a mirror's objects, with an index and somebody's files."""

    git_dir: Path
    files: Path

    @classmethod
    def over(cls, git_dir: Path, mirror: Mirror, files: Path) -> "_Index":
        init = ["init", "--quiet", "--bare", "--template=", f"--object-format={mirror.sha}", str(git_dir)]
        run(init, folder=git_dir.parent, what="making an index")
        (git_dir / "objects" / "info").mkdir(exist_ok=True)
        (git_dir / "objects" / "info" / "alternates").write_text(f"{mirror.folder / 'objects'}\n", "utf-8")
        shallow = mirror.folder / "shallow"
        if shallow.is_file():
            shutil.copyfile(shallow, git_dir / "shallow")
        return cls(git_dir, files)

    def run(self, *arguments: str) -> bytes:
        """Run over the files; what they are is no configuration's business."""
        return run(
            [f"--work-tree={self.files}", *arguments],
            folder=self.files,
            git_dir=self.git_dir,
            what="comparing with the commit",
            where=str(self.files),
        )

    def ignore(self, patterns: str) -> None:
        """Add patterns of files that are not looked for."""
        (self.git_dir / "info").mkdir(exist_ok=True)
        with (self.git_dir / "info" / "exclude").open("a", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"{patterns}\n")

    @contextmanager
    def without_submodules(self) -> Iterator[None]:
        """Inside, submodules are no part of the index and are not looked for; afterwards they are what they were.

        git would otherwise run itself in each of them, with the configuration that it finds there.
        """
        listed = self.run("ls-files", "--stage", "-z").decode("utf-8", "surrogateescape").split("\0")
        modules = [match.groups() for each in listed if (match := _GITLINK.match(each))]
        for _, path in modules:
            self.run("update-index", "--force-remove", "--", path)
            self.ignore("/" + re.sub(r"([*?\[\]\\ ])", r"\\\1", path))
        yield
        for oid, path in modules:
            self.run("update-index", "--add", "--cacheinfo", f"160000,{oid},{path}")

    def changed(self, commit: str) -> Iterator[tuple[str, tuple[int, int]]]:
        """Path and kinds (before, after) of everything that differs from a commit."""
        for path, modes, _ in self._raw(commit):
            yield path, (modes[0] & KIND, modes[1] & KIND)

    def _raw(self, commit: str) -> list[tuple[str, tuple[int, int], str]]:
        parts = self.run(*_DIFF, "--raw", "-z", "--no-abbrev", commit).decode("utf-8", "surrogateescape").split("\0")
        found = []
        for meta, path in zip(parts[::2], parts[1::2], strict=False):
            if match := _RAW.match(meta):
                found.append((path, (int(match[1], 8), int(match[2], 8)), match[3]))
        return found

    def settle(self, commit: str, left_out: Callable[[str], bool]) -> None:
        """Take for unchanged what is left out."""
        for path, modes, before in self._raw(commit):
            if left_out(path):
                if modes[0]:
                    self.run("update-index", "--add", "--cacheinfo", f"{modes[0]:o},{before},{path}")
                else:
                    self.run("update-index", "--force-remove", "--", path)

    def settle_pointers(self, commit: str) -> None:
        """Take for unchanged what Git LFS put in the place of a pointer."""
        with objects(self.git_dir) as there:
            for path, modes, before in self._raw(commit):
                if modes[0] & KIND != FILE or not modes[1]:
                    continue
                blob = there.open(before, "blob")
                said = pointer(blob.read()) if blob.size <= _LARGEST_POINTER else None
                blob.finish()
                file = self.files / path
                if said is None or file.is_symlink() or file.stat().st_size != said[1]:
                    continue
                with file.open("rb") as content:
                    same = hashlib.file_digest(content, "sha256").hexdigest() == said[0]
                if same:
                    self.run("update-index", "--cacheinfo", f"{modes[1]:o},{before},{path}")


def _ignored(tree: WorkingTree) -> str:
    """What the repository itself says is not looked for, beside its `.gitignore` files."""
    file = tree.git_dir / "info" / "exclude"
    if not file.is_file() or file.stat().st_size > _LARGEST_IGNORED:
        return ""
    return file.read_text("utf-8", "surrogateescape")


def _not_sparse(tree: WorkingTree, where: str) -> None:
    asked = ["config", "--type=bool", "--get", "core.sparseCheckout"]
    said = ask(asked, folder=tree.path, git_dir=tree.git_dir, what="reading its configuration")
    if said.out.strip() == b"true":
        raise NotCheckedError(
            "a sparse working tree does not say what was changed", where=where, todo="run `git sparse-checkout disable`"
        )

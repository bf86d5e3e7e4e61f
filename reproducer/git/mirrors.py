"""Bare repositories in the store: one for each address, holding exactly the commits that locks name.

A commit is whole where its reference `refs/penny/COMMIT` stands: git writes that last, after every object arrived and
was checked. Beside the whole ones lies an outline: commits with trees and small files only, enough to say what a commit
holds. What has no address lies in one mirror for all, because a commit's name is its content.
"""

import hashlib
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from reproducer.errors import DriftError, PennyError
from reproducer.git.addresses import Address
from reproducer.git.reaching import options
from reproducer.git.references import listed, what_is_there
from reproducer.git.running import GitFaultError, Said, ask, failed, run
from reproducer.store.exclusive import exclusive
from reproducer.store.faults import writing

if TYPE_CHECKING:
    from reproducer.progress import Reporter
    from reproducer.store import Store

Form = Literal["whole", "outline"]
SMALL = 64 << 10
_FOLDER = "git"
# What git says where the server has the commit nowhere.
_NOT_THERE = (
    "not our ref",
    "couldn't find remote ref",
    "no such remote ref",
    "bad object",
    "Could not read from remote ref",
)
# What it says where the server does not hand out commits by name, or knows no shallow fetch: all of it is fetched then.
_BY_NAME_REFUSED = ("unadvertised object", "does not support shallow", "shallow capabilities")


@dataclass(frozen=True)
class Mirror:
    """The repository in the store for one address, in one of its two forms.

    Attributes:
        key: its folder's name.
        form: with every object, or the outline.
    """

    store: "Store"
    key: str
    sha: Literal["sha1", "sha256"]
    form: Form = "whole"

    @classmethod
    def of(cls, store: "Store", url: str | None, commit: str, form: Form = "whole") -> "Mirror":
        """The mirror that has a commit of a repository, or will have it."""
        sha: Literal["sha1", "sha256"] = "sha1" if len(commit) == 40 else "sha256"  # noqa: PLR2004  hex digits
        name = "unnamed" if url is None else hashlib.sha256(url.encode()).hexdigest()[:32]
        return cls(store, f"{name}-{sha}", sha, form)

    @property
    def folder(self) -> Path:
        """The bare repository."""
        return self.store.root / _FOLDER / self.key / f"{self.form}.git"

    def has(self, commit: str) -> bool:
        """Whether the commit was fetched; says nothing about the bytes."""
        try:
            return (self.folder / "refs" / "penny" / commit).read_text("ascii").strip() == commit
        except (OSError, ValueError):
            return False

    def bring(self, address: Address, commit: str, *, reporter: "Reporter", what: str) -> int:
        """Have a commit here, fetched from an address where it is not yet.

        Args:
            address: where from.
            commit: its full name.
            reporter: is told what is waited for.
            what: what it is for, for notes and errors.

        Returns:
            Bytes that came.

        Raises:
            DriftError: the repository has no such commit; says what it has.
            UnsafeInputError: git refuses its objects.
            NotCheckedError: it cannot be reached; the disk is full.
        """
        self.store.prepare()
        lock = self.store.root / "locks" / f"git-{self.key}-{self.form}.lock"
        with exclusive(lock, reporter=reporter, what=f"fetching {what}") as handle:
            if self.has(commit):
                return 0
            reporter.note(f"fetching commit {commit[:12]} of {address}")
            self._make(address)
            self._sweep()
            before = self._size()
            self._fetch(address, commit, handle)
            return max(0, self._size() - before)

    def set_aside(self) -> Path:
        """Move a damaged mirror away; it is fetched anew when it is needed."""
        aside = self.store.root / "damaged" / f"git-{self.key}-{self.form}-{secrets.token_hex(4)}"
        with writing(self.store.root, what="the damaged mirror"):
            self.folder.rename(aside)
        return aside

    def _make(self, address: Address) -> None:
        """The empty repository, whole or not there; no template, so no hook."""
        if self.folder.is_dir():
            return
        with self.store.private_folder() as work, writing(self.store.root, what="a mirror"):
            fresh = work / "mirror.git"
            init = ["init", "--quiet", "--bare", "--template=", f"--object-format={self.sha}"]
            run([*init, "--initial-branch=penny", str(fresh)], folder=work, what="making a mirror", where=str(address))
            (fresh / "description").write_text(f"{address.url or 'commits without an address'}\n", "utf-8")
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            fresh.rename(self.folder)

    def _sweep(self) -> None:
        """Remove what a killed git left: nobody else writes here while the lock is held."""
        with writing(self.store.root, what="a mirror"):
            for left in (*self.folder.rglob("*.lock"), *self.folder.glob("objects/pack/tmp_*")):
                left.unlink(missing_ok=True)

    def _fetch(self, address: Address, commit: str, handle: int) -> None:
        one = ["--depth=1", *([f"--filter=blob:limit={SMALL}"] if self.form == "outline" else [])]
        said = self._ask(address, [*one, "--", address.operand, f"{commit}:refs/penny/{commit}"], handle)
        self._forget(address)
        if said.status == 0:
            return
        what = f"fetching commit {commit[:12]}"
        if any(each in said.complaint for each in _BY_NAME_REFUSED):
            every = ["+refs/heads/*:refs/all/heads/*", "+refs/tags/*:refs/all/tags/*"]
            deeper = ["--unshallow"] if (self.folder / "shallow").is_file() else []
            # A name that is gone there may be in the way of a new one: `a` of `a/b`.
            said = self._ask(address, ["--prune", *deeper, "--", address.operand, *every], handle)
            if said.status == 0 and not self._lacks(commit):
                run(["update-ref", f"refs/penny/{commit}", commit], folder=self.folder, git_dir=self.folder, what=what)
                return
            if said.status == 0:
                raise _gone(address, commit, self.folder)
        if any(each in said.complaint for each in _NOT_THERE):
            raise _gone(address, commit, self.folder)
        raise _full_or(self.folder, failed(said, what=what, where=str(address)))

    def _ask(self, address: Address, arguments: list[str], handle: int) -> Said:
        fixed = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-gc"]
        return ask(
            [*fixed, *options(address), *arguments],
            folder=self.folder,
            git_dir=self.folder,
            what=f"fetching from {address}",
            where=str(address),
            transports=address.transports,
            hold=handle,
        )

    def _forget(self, address: Address) -> None:
        """Take out what git notes of where an outline's files could be had: it would fetch them when one is read."""
        if self.form == "outline":
            for settings in (
                ("--remove-section", f"remote.{address.operand}"),
                ("--unset-all", "extensions.partialClone"),
            ):
                ask(["config", *settings], folder=self.folder, git_dir=self.folder, what="settling an outline")

    def _lacks(self, commit: str) -> bool:
        there = ["cat-file", "-e", f"{commit}^{{commit}}"]
        return ask(there, folder=self.folder, git_dir=self.folder, what="looking for a commit").status != 0

    def _size(self) -> int:
        return sum(pack.stat().st_size for pack in self.folder.glob("objects/pack/*.pack"))


def _gone(address: Address, commit: str, folder: Path) -> PennyError:
    """The error for a commit that a repository does not have, with what it has."""
    try:
        if commit in listed(address, folder=folder).values():
            return GitFaultError(
                f"{address} names commit {commit} and cannot give it: it is damaged", where=str(address)
            )
        there = what_is_there(address, folder=folder)
    except GitFaultError as error:
        there = f"what it has cannot be asked: {error}"
    return DriftError(
        f"{address} has no commit {commit}",
        why=f"its branch was rewritten, its tag moved, or it never was there; {there}",
        todo="say which repository has it with `penny fetch --repository`, or run `penny lock --upgrade`",
    )


def _full_or(folder: Path, error: PennyError) -> PennyError:
    """A full disk said in penny's own words."""
    from reproducer.store.faults import full_for_another

    return full_for_another(error.why, folder, what="a mirror") or error

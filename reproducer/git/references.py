"""What a branch, a tag or a commit of a manifest names now, as the repository itself says."""

import difflib
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reproducer.documents.base import shown
from reproducer.errors import DriftError, InvalidDocumentError
from reproducer.git.addresses import Address
from reproducer.git.reaching import options
from reproducer.git.running import run

Kind = Literal["branch", "tag", "commit", "other"]
_COMMIT = re.compile(r"^([0-9a-f]{40}|[0-9a-f]{64})$")
_SHORT = re.compile(r"^[0-9a-f]{7,63}$")
# As git's own check-ref-format; what a pattern or an expression would be is in none of its names.
_REFUSED = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-/.]|/\.|\.lock(/|$)|[/.]$|^@$")
_PATIENCE_S = 120.0
_SHOWN_NAMES = 6
# A repository may have millions of names, of any length: a nearest one is looked for among a few that a person wrote.
_MOST_NAMES, _LONGEST_NAME, _LONGEST_SHOWN = 20_000, 200, 80


@dataclass(frozen=True)
class Resolved:
    """What a name stands for: the full commit, and what kind of name it is."""

    commit: str
    kind: Kind
    name: str


def is_commit(ref: str) -> bool:
    """Whether it is a full object name, which nothing can move."""
    return _COMMIT.match(ref) is not None


def asked(ref: str) -> str | None:
    """What a manifest asks for, as a lock carries it: a digest, which names no branch and no tag; None for a commit."""
    return None if is_commit(ref) else hashlib.sha256(ref.encode()).hexdigest()


def checked(ref: str, *, where: str) -> str:
    """A name that git can only read as a name.

    Raises:
        InvalidDocumentError: it is none.
    """
    if _REFUSED.search(ref) or not ref.isprintable() or not ref:
        raise InvalidDocumentError(
            f"{shown(ref)} is no name of a branch, tag or commit", where=where, todo="write a name or a full commit"
        )
    return ref


def resolve(address: Address, ref: str, *, folder: Path, where: str) -> Resolved:
    """The commit that a name stands for now; tags are peeled.

    Args:
        address: the repository.
        ref: a branch, a tag, a full reference (`refs/…`), `HEAD` or a full commit.
        folder: any folder, for git to run in.
        where: the key that names it, for errors.

    Raises:
        InvalidDocumentError: no name at all, or it is a branch and a tag at once.
        DriftError: the repository has no such name; says which ones it has.
        GitFaultError: it cannot be reached.
    """
    if is_commit(checked(ref, where=where)):
        return Resolved(ref, "commit", ref)
    wanted = [ref] if ref == "HEAD" or ref.startswith("refs/") else [f"refs/heads/{ref}", f"refs/tags/{ref}"]
    there = listed(address, *wanted, *(f"{each}^{{}}" for each in wanted), folder=folder)
    found = {name: there.get(f"{name}^{{}}", there[name]) for name in wanted if name in there}
    if not found:
        raise missing(address, ref, folder=folder, where=where)
    if len(set(found.values())) > 1:
        raise InvalidDocumentError(
            f"{shown(ref)} is a branch and a tag of {address}, at two commits",
            where=where,
            todo=f"write {' or '.join(sorted(found))}",
        )
    name, commit = max(found.items())  # refs/tags/ comes after refs/heads/
    return Resolved(commit, _kind(name), name)


def listed(address: Address, *patterns: str, folder: Path) -> Mapping[str, str]:
    """References that a repository has, to the objects they name: those that end in a pattern, all without one.

    Raises:
        GitFaultError: it cannot be reached.
    """
    out = run(
        ["ls-remote", "--quiet", *options(address), "--", address.operand, *patterns],
        folder=folder,
        what="asking for its references",
        where=str(address),
        transports=address.transports,
        patience_s=_PATIENCE_S,
    )
    found = {}
    for line in out.decode("utf-8", "replace").splitlines():
        commit, _, name = line.partition("\t")
        if is_commit(commit) and name.isprintable():
            found[name] = commit
    return found


def missing(address: Address, ref: str, *, folder: Path, where: str) -> DriftError:
    """The error for a name that is not there, with the names that are."""
    there = listed(address, folder=folder)
    if not there:
        return DriftError(f"{address} holds nothing: it has no branch and no tag", where=where)
    names = [
        _short(name) for name in there if name.startswith(("refs/heads/", "refs/tags/")) and not name.endswith("^{}")
    ]
    likely = [name for name in names if len(name) <= _LONGEST_NAME][:_MOST_NAMES]
    near = difflib.get_close_matches(_short(ref), likely, n=1) if len(ref) <= _LONGEST_NAME else []
    abbreviated = _SHORT.match(ref) is not None
    if near and not abbreviated:
        todo = f"did you mean {shown(near[0])}?"
    elif abbreviated:
        todo = "write all digits of the commit: an abbreviated one may come to mean another"
    else:
        todo = f"it has {_some([_cut(name) for name in names])}"
    return DriftError(f"{address} has no branch or tag {shown(ref)}", where=where, todo=todo)


def what_is_there(address: Address, *, folder: Path) -> str:
    """The branches and tags of a repository with their commits, a few of them."""
    there = {name: oid for name, oid in listed(address, folder=folder).items() if name.startswith("refs/")}
    tips = [
        f"{_cut(_short(name))} is {there.get(f'{name}^{{}}', oid)[:12]}"
        for name, oid in there.items()
        if not name.endswith("^{}") and name.startswith(("refs/heads/", "refs/tags/"))
    ]
    return f"it has {_some(tips)}" if tips else "it has no branch and no tag"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(names[:_SHOWN_NAMES]) + more


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_SHOWN else f"{name[: _LONGEST_SHOWN - 1]}…"


def _short(name: str) -> str:
    return name.removeprefix("refs/heads/").removeprefix("refs/tags/")


def _kind(name: str) -> Kind:
    if name.startswith("refs/tags/"):
        return "tag"
    return "branch" if name.startswith("refs/heads/") or name == "HEAD" else "other"

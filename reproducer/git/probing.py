"""Is a locked commit still where the lock says? Asked of the repository itself, without fetching its files."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from reproducer.documents.base import shown
from reproducer.documents.sources import GitSource, Submodule
from reproducer.errors import DriftError, InvalidDocumentError, PennyError
from reproducer.git.addresses import Address
from reproducer.git.mirrors import Mirror
from reproducer.git.references import is_commit, listed, resolve, what_is_there
from reproducer.git.running import ask, failed, run

if TYPE_CHECKING:
    from reproducer.store import Store

Status = Literal["there", "moved", "gone", "unreachable", "unnamed"]
_WORST_FIRST: tuple[Status, ...] = ("gone", "moved", "unnamed", "unreachable", "there")
_PATIENCE_S = 120.0
_ABSENT = ("not our ref", "couldn't find remote ref")


@dataclass(frozen=True)
class Finding:
    """What asking gave.

    Attributes:
        status: `there`: the repository has the commit. `moved`: it has, and the tag that the manifest names is another
            commit now. `gone`: the repository answers and does not have it. `unreachable`: it does not answer.
            `unnamed`: the lock names no address, and the store does not have it.
        detail: one sentence about it.
        todo: what can be done; empty where nothing need be.
    """

    status: Status
    detail: str
    todo: str = ""


def probe(source: GitSource | Submodule, *, store: "Store | None" = None, ref: str | None = None) -> Finding:
    """Ask for a commit where the lock says it is; for a source, for its submodules too, and the worst answer counts.

    Touches the network. What has no address is looked for in the store.

    Args:
        source: what the lock pins.
        store: has mirrors; None where there is no store to look into.
        ref: the branch or tag that the manifest names, to see whether a tag was moved.
    """
    own = _probe(source, store, ref)
    if isinstance(source, Submodule) or not source.submodules:
        return own
    found = [own]
    for each in source.submodules:
        inner = _probe(each, store, None)
        found.append(Finding(inner.status, f"submodule {shown(each.path)}: {inner.detail}", inner.todo))
    worst = min(found, key=lambda finding: _WORST_FIRST.index(finding.status))
    if worst.status == "there":
        several = "s" if len(source.submodules) > 1 else ""
        return Finding("there", f"{own.detail}, and its {len(source.submodules)} submodule{several} can be had")
    return worst


def _probe(source: GitSource | Submodule, store: "Store | None", ref: str | None) -> Finding:
    held = store is not None and Mirror.of(store, source.url, source.commit).has(source.commit)
    if source.url is None:
        if held:
            return Finding("there", f"commit {source.commit[:12]} has no address and is in the store")
        return Finding(
            "unnamed",
            f"commit {source.commit[:12]} has no address and is not in the store",
            "say where it lies with `penny fetch --repository NAME=PATH`",
        )
    address = Address(url=source.url)
    kept = "; the store has it" if held else ""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        try:
            tips = listed(address, folder=work)
            if source.commit not in tips.values() and not _fetched(address, source.commit, work):
                return Finding(
                    "gone",
                    f"{source.url} has no commit {source.commit[:12]}: {what_is_there(address, folder=work)}{kept}",
                    "" if held else "find a repository that has it, and name it with `penny fetch --repository`",
                )
            moved = _moved(address, source.commit, ref, work)
        except PennyError as error:
            return Finding("unreachable", f"{error}{kept}", error.todo)
    if moved:
        return Finding("moved", f"{source.url}: {moved}", "lock again with --upgrade if the new commit is meant")
    return Finding("there", f"{source.url} has commit {source.commit[:12]}")


def _fetched(address: Address, commit: str, work: Path) -> bool:
    """Whether the repository gives the commit, asked for without trees and files."""
    sha = "sha1" if len(commit) == 40 else "sha256"  # noqa: PLR2004  hex digits
    git_dir = work / "probe.git"
    init = ["init", "--quiet", "--bare", "--template=", f"--object-format={sha}", str(git_dir)]
    run(init, folder=work, what="making a place to ask from")
    arguments = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--depth=1", "--filter=tree:0"]
    said = ask(
        [*arguments, "--", address.operand, f"{commit}:refs/penny/probe"],
        folder=work,
        git_dir=git_dir,
        what="asking for a commit",
        where=str(address),
        transports=address.transports,
        patience_s=_PATIENCE_S,
    )
    if said.status == 0:
        return True
    if any(each in said.complaint for each in _ABSENT):
        return False
    raise failed(said, what=f"asking for commit {commit[:12]}", where=str(address))


def _moved(address: Address, commit: str, ref: str | None, work: Path) -> str:
    """What a tag names now, where that is another commit; empty where all is well."""
    if ref is None or is_commit(ref):
        return ""
    try:
        found = resolve(address, ref, folder=work, where=str(address))
    except (DriftError, InvalidDocumentError) as error:
        return str(error)
    if found.kind == "tag" and found.commit != commit:
        return f"the tag {shown(ref)} was moved: the lock has {commit}, the tag is {found.commit} now"
    return ""

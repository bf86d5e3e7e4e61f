"""Collecting: namespaces that no known lock uses go, and the oldest pages of others until they fit a budget.

Never one that is in use, never what is no namespace. Without `apply` it only says what would go, by the same walk.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from reproducer.cache.evict import evict
from reproducer.cache.folders import measure, open_kv, open_namespace
from reproducer.cache.known import Locks
from reproducer.cache.listing import listing
from reproducer.cache.model import Collected, Entry, Holder, Removal
from reproducer.cache.remove import finish_removing, half_removed, remove_namespace
from reproducer.cache.use import holder, nobody_else
from reproducer.errors import PennyError, UsageError
from reproducer.progress import Reporter

_RUN = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Budget:
    """Bytes on disk: of all namespaces together, and of each one; None for no limit."""

    together: int | None = None
    each: int | None = None


def collect(kv: Path, locks: Locks, budget: Budget, *, apply: bool, reporter: Reporter) -> Collected:
    """Remove what nobody needs, or say what would go.

    Args:
        kv: the folder in which namespaces lie.
        locks: the locks that are known; a namespace that one of them uses, or may use, stays.
        budget: what may stay of the others' pages.
        apply: do it.
        reporter: where progress goes.

    Raises:
        UsageError: there is no such folder, or it is the folder of one run, which removes its pages itself.
    """
    if kv.absolute().parent.name == "qualification" and _RUN.fullmatch(kv.absolute().name):
        raise UsageError("holds the pages of one run, which removes them itself", where=str(kv))
    work = _Collection(kv, apply)
    with open_kv(kv) as handle:
        work.finish(handle)
        found = listing(kv, locks, reporter=reporter)
        oldest_first = sorted(found.entries, key=lambda entry: (entry.last_use, entry.name))
        for entry in oldest_first:
            if not entry.known:
                work.remove(handle, entry)
            else:
                work.keep(entry, _in_use(entry.holder))
        work.shrink(handle, budget)
    return Collected(
        str(kv.absolute()),
        apply,
        tuple(work.removals),
        tuple(work.finished),
        sum(work.left.values()),
        tuple(work.short),
    )


def _in_use(holder: Holder | None) -> str:
    return holder.told() if holder is not None else ""


class _Collection:
    """One collection so far; `left` is what stays of each namespace, those that were used last at the end."""

    def __init__(self, kv: Path, apply: bool) -> None:  # noqa: FBT001
        self.kv = kv
        self.apply = apply
        self.removals: list[Removal] = []
        self.finished: list[str] = []
        self.short: list[str] = []
        self.left: dict[str, int] = {}
        self.held: set[str] = set()

    def finish(self, handle: int) -> None:
        """Finish what an interrupted collection began."""
        for name in half_removed(handle):
            try:
                if self.apply:
                    finish_removing(handle, name)
                self.finished.append(name)
            except FileNotFoundError:
                continue  # another collection was faster
            except OSError as error:
                self.short.append(f"{name} cannot be removed: {error.strerror or error}")

    def keep(self, entry: Entry, why: str) -> None:
        """It stays; `why` says who is in it, and is empty where its pages may be evicted."""
        self.left[entry.name] = entry.usage.on_disk
        if why:
            self.held.add(entry.name)
        users = [lock.name or lock.path for lock in entry.locks if lock.keeps]
        reason = f"a lock uses it: {', '.join(users)}" if users else ""
        self.removals.append(Removal(entry.name, "kept", "; ".join(part for part in (why, reason) if part)))

    def remove(self, handle: int, entry: Entry) -> None:
        """Remove a namespace that no known lock uses, unless somebody is in it."""
        why = "no known lock uses it" if entry.locks else "no lock was ever noted in it"
        if not self.apply:
            if entry.holder is not None:
                self.keep(entry, entry.holder.told())
            else:
                self._gone(entry, why)
            return
        try:
            with (
                open_namespace(self.kv, handle, entry.name) as root,
                nobody_else(self.kv, handle, entry.name, root.handle) as using,
            ):
                if using is not None:
                    self.keep(entry, using.told())
                    return
                if any(lock.keeps for lock in Locks().of(entry.name, root.handle)):
                    self.keep(entry, "a lock was launched in it meanwhile")
                    return
                remove_namespace(handle, root)
        except (UsageError, FileNotFoundError):
            return  # another collection was faster
        except (PennyError, OSError) as error:
            self.keep(entry, "")
            self.short.append(f"{entry.name} cannot be removed: {error}")
            return
        self._gone(entry, why)

    def _gone(self, entry: Entry, why: str) -> None:
        self.removals.append(Removal(entry.name, "removed", why, entry.usage.files, entry.usage.on_disk))

    def shrink(self, handle: int, budget: Budget) -> None:
        """Evict pages of what stays: of each namespace down to its budget, then the least used first for all."""
        if budget.each is not None:
            for name in list(self.left):
                self._evict(handle, name, self.left[name] - budget.each, f"over the budget of {budget.each} bytes each")
        if budget.together is not None:
            for name in list(self.left):
                over = sum(self.left.values()) - budget.together
                self._evict(handle, name, over, f"all are over the budget of {budget.together} bytes")
        for name, left in self.left.items():
            if budget.each is not None and left > budget.each:
                self.short.append(f"{name} stays over its budget{self._because(name)}")
        if budget.together is not None and (total := sum(self.left.values())) > budget.together:
            self.short.append(f"{total} bytes stay, over the budget of {budget.together}")

    def _because(self, name: str) -> str:
        return ": it is in use" if name in self.held else ""

    def _evict(self, handle: int, name: str, need: int, why: str) -> None:
        if need <= 0 or name in self.held:
            return
        try:
            with open_namespace(self.kv, handle, name) as root:
                if not self.apply:
                    files, size = (0, 0) if holder(handle, name) else evict(root.handle, need, apply=False)
                else:
                    with nobody_else(self.kv, handle, name, root.handle) as using:
                        if using is not None:
                            self.held.add(name)
                            return
                        files, size = evict(root.handle, need, apply=True)
                        left = measure(root.handle).on_disk
                        self.left[name] = left
        except (PennyError, OSError) as error:
            self.short.append(f"pages of {name} cannot be removed: {error}")
            return
        if not self.apply:
            self.left[name] -= size
        if files:
            self.removals.append(Removal(name, "evicted", why, files, size))

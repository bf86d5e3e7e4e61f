"""The locks of two sides: what they differ in, and which of that was declared as the factor."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from reproducer.comparison.conditions import Condition
from reproducer.documents.base import shown
from reproducer.documents.opened import OpenedLock
from reproducer.errors import UsageError

_PARTS = ("arguments", "effective", "environment", "files", "readiness", "program", "module")
_OF_LAUNCH = re.compile(r"launch\.(?:arguments|effective)\.([A-Za-z0-9_-]+)")
_SHORT = re.compile(r"launch\.([A-Za-z0-9_-]+)")


@dataclass(frozen=True)
class Declared:
    """Which facts were declared to differ.

    Attributes:
        names: as `penny diff` names them; one covers everything below it, and `launch.NAME` covers an argument and
            its effective value.
    """

    names: tuple[str, ...]

    def covers(self, path: str) -> bool:
        """Whether a path is declared."""
        return any(_covers(name, path) for name in self.names)


@dataclass(frozen=True)
class LockDifferences:
    """What two locks differ in.

    Attributes:
        conditions: what was not declared and may change a number, and what nobody knows.
        declared: the declared changes, path by path.
        without_effect: changes of which the classification says that no number follows from them.
        compared: whether there were two locks to compare, or one that both sides name.
        rebuilt: whether what the runtime is built from differs.
    """

    conditions: tuple[Condition, ...] = ()
    declared: tuple[str, ...] = ()
    without_effect: tuple[str, ...] = ()
    compared: bool = True
    rebuilt: bool = False

    @property
    def told(self) -> frozenset[str]:
        """Every path that is named."""
        return frozenset({*(each.name for each in self.conditions), *self.declared})


def lock_differences(one: OpenedLock, two: OpenedLock, declared: Declared) -> LockDifferences:
    """What two locks differ in, and what is unknown in either.

    Raises:
        UsageError: a declared factor does not differ.
    """
    from reproducer.difference.diff import diff

    found = diff(one, two)
    open_facts = _open_facts(one, two)
    conditions, factor, idle, paths = [], [], [], []
    for change in found.changes:
        known = repr(change.before) != repr(change.after) and change.path not in open_facts
        paths.append(change.path)
        if known and declared.covers(change.path):
            factor.append(change.path)
        elif known and change.consequence in ("operational", "cosmetic"):
            idle.append(change.path)
        else:
            state = "differs" if known else "unknown"
            conditions.append(Condition(change.path, change.before, change.after, state, change.reason))  # type: ignore[arg-type]
    conditions += [
        Condition(name, None, None, "unknown", "the lock says that nobody knows it")
        for name in open_facts
        if name not in paths
    ]
    conditions += [Condition("lock", None, None, "unknown", f"not compared: {why}") for why in found.not_compared]
    for name in declared.names:
        if not any(_covers(name, path) for path in (*factor, *(each for each in paths if each in open_facts))):
            near = difflib.get_close_matches(name, paths, n=3, cutoff=0.3)
            raise UsageError(
                f"the factor {shown(name)} does not differ between the two locks",
                why=f"what differs: {', '.join(near or paths[:3]) or 'nothing'}",
                todo="name a path as `penny diff` shows it",
            )
    return LockDifferences(tuple(conditions), tuple(factor), tuple(idle), rebuilt=found.rebuild)


def differences(
    locks: Sequence[OpenedLock | None], digests: Sequence[frozenset[str]], declared: Declared
) -> LockDifferences:
    """The same for two sides of which one may have no lock at hand; raises as `lock_differences`.

    Args:
        locks: the lock of each side.
        digests: the lock digests that the receipts of each side name.
        declared: what was declared.
    """
    one, two = locks
    if one is not None and two is not None:
        return lock_differences(one, two, declared)
    if declared.names:
        raise UsageError(
            "a factor cannot be looked for without both locks",
            why="only a lock says in what the two runtimes differ",
            todo="name them with --lock-a and --lock-b, or compare bundles, which carry theirs",
        )
    if len(digests[0] | digests[1]) == 1:
        at_hand = one or two
        if at_hand is not None:
            return lock_differences(at_hand, at_hand, declared)
        why = "one lock, which is not at hand, so nobody can say what it leaves unknown"
        (digest,) = digests[0] | digests[1]
        return LockDifferences((Condition("lock", digest[:12], digest[:12], "unknown", why),))
    before, after = (", ".join(sorted(each[:12] for each in side)) or None for side in digests)
    why = "two locks, of which one at least is not at hand, so nobody can say in what they differ"
    return LockDifferences((Condition("lock", before, after, "unknown", why),), compared=False, rebuilt=True)


def _open_facts(one: OpenedLock, two: OpenedLock) -> dict[str, None]:
    """Facts of which either lock says that nobody knows them."""
    from reproducer.identity.factors import is_unknown, name_of
    from reproducer.identity.namespace import Reading

    sides = Reading(one.lock), Reading(two.lock)
    return {
        name_of(path): None
        for side in sides
        for path, fact in side.facts.items()
        if not side.meanings[path].neutral and is_unknown(path, fact)
    }


def _covers(name: str, path: str) -> bool:
    if path == name or path.startswith(f"{name}."):
        return True
    short, argument = _SHORT.fullmatch(name), _OF_LAUNCH.fullmatch(path)
    if short is None or argument is None or short[1] in _PARTS:
        return False
    return short[1].replace("-", "_") == argument[1].replace("-", "_")

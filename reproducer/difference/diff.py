"""What the difference between two locks costs: every change with its consequence, worst first.

A change is one fact that is there on one side only or has another value. Its consequence is the class of the fact, the
worse one where the two sides disagree, so `cache-identity` appears exactly when the namespaces differ.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reproducer.difference.defaults import default_changes
from reproducer.difference.invalidation import invalidated, must_rebuild
from reproducer.difference.packages import package_changes
from reproducer.difference.patches import patch_changes
from reproducer.difference.texts import text_details
from reproducer.documents.lock import Lock
from reproducer.documents.opened import OpenedLock
from reproducer.identity.factors import Factor, Path, is_unknown, name_of
from reproducer.identity.meaning import WORST_FIRST, Consequence, Meaning, worst
from reproducer.identity.namespace import Namespace, Reading, namespace_of
from reproducer.measures.apart import names


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    Attributes:
        path: the name of the fact.
        before: its value in the first lock; None where it is not there.
        after: its value in the second lock; None where it is not there.
        consequence: what it costs.
        reason: why it costs that.
        detail: what the values alone do not say: how a patch changed, what the other side's engine does; None without.
    """

    path: str
    before: Any
    after: Any
    consequence: Consequence
    reason: str
    detail: str | None = None

    def content(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "path": self.path,
            "before": self.before,
            "after": self.after,
            "consequence": self.consequence,
            "reason": self.reason,
            "detail": self.detail,
        }


@dataclass(frozen=True)
class Diff:
    """Every change between two locks, and what they cost together.

    Attributes:
        before: the namespace of the first lock.
        after: the namespace of the second lock.
        changes: worst first, then by path.
        rebuild: whether the runtime must be built again.
        invalidates: which receipts of the first lock are no evidence for the second: `build`, `launch`, measure ids.
        not_compared: what could not be looked into, and why.
    """

    before: Namespace
    after: Namespace
    changes: tuple[Change, ...]
    rebuild: bool
    invalidates: tuple[str, ...]
    not_compared: tuple[str, ...] = ()

    @property
    def same_namespace(self) -> bool:
        """Whether pages that one of them wrote may be read by the other."""
        return self.before.digest == self.after.digest

    def content(self) -> dict[str, Any]:
        """As plain data with stable keys."""
        return {
            "before": self.before.name,
            "after": self.after.name,
            "changes": [change.content() for change in self.changes],
            "same_namespace": self.same_namespace,
            "rebuild": self.rebuild,
            "invalidates": list(self.invalidates),
            "not_compared": list(self.not_compared),
        }


def diff(a: Lock | OpenedLock, b: Lock | OpenedLock) -> Diff:
    """Compare two locks by meaning; order and layout are no difference.

    With opened locks the files beside them are compared too: packages of a changed environment, lines of a changed
    patch, defaults of a changed engine. Where that cannot be done, `not_compared` says why.

    Raises:
        InvalidDocumentError: one of them has no namespace (see `derive`).
    """
    sides = Reading(_lock(a)), Reading(_lock(b))
    namespaces = namespace_of(sides[0]), namespace_of(sides[1])
    found = dict(_changes(*sides))
    if namespaces[0].digest != namespaces[1].digest:
        found.update(_unknowns(*sides, found))
    rebuild = must_rebuild(found)
    details, unread = text_details(a, b, found)
    defaults = default_changes(a, b, found, same_namespace=namespaces[0].digest == namespaces[1].digest)
    told, unopened = package_changes(a, b)
    found.update({path: (old, new, _of_environment(sides, path)) for path, (old, new) in told.items()})
    found.update(defaults.changes)
    details.update(defaults.details)
    changes = [
        Change(name_of(path), old, new, *meaning, details.get(path)) for path, (old, new, meaning) in found.items()
    ]
    changes.sort(key=lambda change: (WORST_FIRST.index(change.consequence), change.path))
    not_compared = (*unopened, *unread, *defaults.not_compared)
    asked = names((measure.id, measure.parameters) for measure in sides[0].lock.qualification.measures)
    return Diff(*namespaces, tuple(changes), rebuild, invalidated(found, asked, rebuild=rebuild), not_compared)


Found = Mapping[Path, tuple[Any, Any, Meaning]]


def _changes(one: Reading, two: Reading) -> Iterator[tuple[Path, tuple[Any, Any, Meaning]]]:
    differing = [path for path in {**one.facts, **two.facts} if not _same(one.facts.get(path), two.facts.get(path))]
    told = set(differing)
    for path in differing:
        if _is_patch(path) or _follows_digest(path, told):
            continue
        meanings = tuple(each for each in (one.meanings.get(path), two.meanings.get(path)) if each is not None)
        meaning = worst(meanings)
        if path[:2] == ("launch", "arguments") and meaning.neutral:
            meaning = _of_request(one, two, path, told) or meaning
        yield path, (_plain(one.facts.get(path)), _plain(two.facts.get(path)), meaning)
    yield from patch_changes(one.lock, two.lock)


def _same(before: Factor | None, after: Factor | None) -> bool:
    """Equal in type and value; -0.0 is not 0.0, because the encoding tells them apart."""
    if before != after or before is None:
        return before is after
    return before.kind not in ("float", "list") or repr(before) == repr(after)


def _is_patch(path: Path) -> bool:
    return path[0] == "components" and path[2:3] == ("patches",)


def _follows_digest(path: Path, told: set[Path]) -> bool:
    """Whether this is the size of a file whose digest has changed: the digest tells it."""
    last = path[-1]
    return last in ("size", "member_size") and (*path[:-1], last.replace("size", "sha256")) in told


def _of_request(one: Reading, two: Reading, path: Path, told: set[Path]) -> Meaning | None:
    """A request that an effective value stands for means what the change of that value means."""
    for side in (one, two):
        field = side.classes.effective_of(path[2])
        if field is not None and (effective := ("launch", "effective", field)) in told:
            return worst(
                tuple(each for each in (one.meanings.get(effective), two.meanings.get(effective)) if each is not None)
            )
    return None


def _unknowns(one: Reading, two: Reading, found: Found) -> Iterator[tuple[Path, tuple[Any, Any, Meaning]]]:
    """What nobody knows on either side; it is taken for different, because it may be."""
    for path, fact in one.facts.items():
        meaning = one.meanings.get(path)
        shared = path in two.facts and path not in found and meaning is not None and not meaning.neutral
        if shared and is_unknown(path, fact):
            why = "nobody knows the value, so it is not taken for the same in two locks"
            yield path, (fact.plain(), two.facts[path].plain(), Meaning("cache-identity", why))


def _of_environment(sides: tuple[Reading, Reading], path: Path) -> Meaning:
    """What a package's change means: what its environment's means."""
    pylock = ("adopted", "environment", "sha256") if path[0] == "adopted" else (*path[:2], "pylock", "sha256")
    return worst(tuple(each for side in sides if (each := side.meanings.get(pylock)) is not None))


def _plain(factor: Factor | None) -> Any:
    return None if factor is None else factor.plain()


def _lock(given: Lock | OpenedLock) -> Lock:
    return given.lock if isinstance(given, OpenedLock) else given

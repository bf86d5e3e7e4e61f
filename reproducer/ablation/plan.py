"""The plan of an ablation: locks between two locks, valid or not and why, and what each costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproducer.ablation.costs import Layer, layers, run_seconds
from reproducer.ablation.designs import Design, DesignName, Row, aliases, balanced, one_at_a_time, pairs_alike
from reproducer.ablation.groups import Between, between
from reproducer.ablation.locks import Mixed, mixed, write
from reproducer.documents.base import parse_json
from reproducer.documents.opened import OpenedLock
from reproducer.documents.toml import read_text, write_atomically
from reproducer.errors import InvalidDocumentError, UsageError
from reproducer.store import Store

FORMAT = "penny-ablation/1"
_FILE = "plan.json"


@dataclass(frozen=True)
class Planned:
    """One lock of a plan.

    Attributes:
        name: its folder.
        groups: what is as in B.
        opened: the lock on disk; None where there is none.
        faults: why there is none.
        layers: what its build finds and makes.
    """

    name: str
    row: Row
    groups: tuple[str, ...]
    opened: OpenedLock | None
    faults: tuple[str, ...]
    layers: tuple[Layer, ...]

    def content(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "name": self.name,
            "as_in_b": list(self.groups),
            "lock": None if self.opened is None else str(self.opened.path),
            "digest": None if self.opened is None else self.opened.digest,
            "valid": self.opened is not None,
            "faults": list(self.faults),
            "layers": {each.name: each.state for each in self.layers},
            "build_seconds": None,
        }


@dataclass(frozen=True)
class Plan:
    """Everything that `penny ablate` is going to do.

    Attributes:
        locks: in the order of the design; the first is A.
        seconds: how long one qualification of A was, where receipts say so.
        other: how many locks the other design would have.
    """

    folder: Path
    between: Between
    design: Design
    locks: tuple[Planned, ...]
    seconds: float | None
    other: tuple[DesignName, int]

    @property
    def limits(self) -> tuple[str, ...]:
        """What the design cannot separate, in sentences."""
        return tuple(_limits(self.design, [each.name for each in self.between.groups], self.locks))

    @property
    def run_seconds(self) -> float | None:
        """How long a pair takes: each lock is measured in turn with A, and is taken to be as fast as A was."""
        return None if self.seconds is None else 2 * self.seconds

    def content(self) -> dict[str, Any]:
        """As plain data with stable keys."""
        return {
            "design": self.design.name,
            "groups": {each.name: [piece.name for piece in each.pieces] for each in self.between.groups},
            "held": list(self.between.held),
            "locks": [each.content() for each in self.locks],
            "run_seconds_each": self.run_seconds,
            "limits": list(self.limits),
            "other_design": {"name": self.other[0], "locks": self.other[1]},
        }


def make_plan(
    first: OpenedLock,
    second: OpenedLock,
    folder: Path,
    store: Store,
    *,
    design: DesignName = "balanced",
    apart: bool = False,
) -> Plan:
    """Plan an ablation and write its locks.

    Raises:
        UsageError: nothing differs, there are too many groups, or the folder holds another plan.
        NotCheckedError: no lock lies between the two.
    """
    found = between(first.lock, second.lock, apart=apart)
    count = len(found.groups)
    designs: dict[DesignName, Design] = {"one-at-a-time": one_at_a_time(count)}
    if design == "balanced":
        designs["balanced"] = balanced(count)
    chosen = designs[design]
    other: DesignName = "one-at-a-time" if design == "balanced" else "balanced"
    every = [mixed(found, row, first, second) for row in chosen.every]
    _keep(folder, first, second, design=design, apart=apart)
    planned = tuple(
        _planned(found, each, folder / _name(each, place), store, (first, second)) for place, each in enumerate(every)
    )
    size = len((designs.get(other) or balanced(count)).every)
    return Plan(folder, found, chosen, planned, _measured(first, store), (other, size))


def _keep(folder: Path, first: OpenedLock, second: OpenedLock, *, design: DesignName, apart: bool) -> None:
    """Say in the folder which plan it holds: results of another one never stand beside these."""
    from reproducer.canonical import canonical_bytes
    from reproducer.store.faults import writing

    said = {"format": FORMAT, "a": first.digest, "b": second.digest, "design": design, "apart": apart}
    path = folder / _FILE
    if path.exists():
        if parse_json(read_text(path, what="plan"), where=str(path)) != said:
            raise UsageError("another plan lies here", where=str(path), todo="name another folder with --output")
        return
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError("the folder is not empty", where=str(folder), todo="name another folder with --output")
    with writing(folder, what="the folder of the plan"):
        folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, canonical_bytes(said) + b"\n")


def _name(each: Mixed, place: int) -> str:
    """The folder of a lock."""
    return "A" if not any(each.row) else "B" if all(each.row) else f"{place:02d}"


def _planned(found: Between, each: Mixed, folder: Path, store: Store, sides: tuple[OpenedLock, OpenedLock]) -> Planned:
    groups = tuple(group.name for group, moved in zip(found.groups, each.row, strict=True) if moved)
    if each.lock is None:
        return Planned(folder.name, each.row, groups, None, each.faults, ())
    opened = write(each, folder)
    try:
        return Planned(folder.name, each.row, groups, opened, (), layers(opened, store, sides))
    except InvalidDocumentError as error:
        return Planned(folder.name, each.row, groups, None, (str(error),), ())


def _measured(first: OpenedLock, store: Store) -> float | None:
    from reproducer.ledger import Ledger, latest_measures

    receipts = Ledger.of(store.root, first.digest).receipts()
    launches = tuple(each for each in receipts if each.kind == "launch")
    return run_seconds((*launches, *latest_measures(receipts)))


def _limits(design: Design, names: Sequence[str], locks: Sequence[Planned]) -> list[str]:
    told: list[str] = []
    if design.name == "one-at-a-time":
        if len(names) > 1:
            told.append(
                "each group is moved with all others as in A: what two groups do together is one remainder, "
                "and no group's share of it can be told"
            )
    else:
        for each, mixed_with in aliases(design).items():
            pairs = [f"{names[one]} with {names[two]} ({share:.0%})" for one, two, share in mixed_with]
            if pairs:
                told.append(f"the effect of {names[each]} cannot be told from interactions: {', '.join(pairs)}")
        for (one, two), (three, four) in pairs_alike(design):
            told.append(f"{names[one]} with {names[two]} cannot be told from {names[three]} with {names[four]}")
    if missing := [each.name for each in locks if each.opened is None]:
        told.append(f"there is no lock {', '.join(missing)}: the design is not balanced any more")
    return told

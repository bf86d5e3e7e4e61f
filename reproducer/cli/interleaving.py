"""`penny qualify --against LOCK`: two runtimes measured in turn on this machine."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from reproducer.cli.front import Front, finish, ledger_of, runtime_of
from reproducer.errors import Outcome, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import ExitStack

    from rich.console import RenderableType

    from reproducer.build.runtime import Runtime
    from reproducer.documents.opened import OpenedLock
    from reproducer.documents.receipts import FidelityReference, LaunchReceipt, MeasureReceipt
    from reproducer.ledger import Ledger
    from reproducer.qualify.deltas import Delta
    from reproducer.qualify.interleaved import Arm
    from reproducer.store import Store


def qualify_against(
    front: Front,
    opened: "OpenedLock",
    against: Path,
    store: "Store",
    *,
    kv: Path,
    port: int | None,
    yes: bool,
    offline: bool,
) -> None:
    """Measure the runtimes of two locks in turn, write the receipts of both and print what differs.

    Raises:
        UsageError: the two locks have no measure in common.
    """
    from reproducer.documents.opened import open_lock
    from reproducer.qualify.deltas import deltas

    other = open_lock(against)
    other.check_files()
    _check_common(opened, other, where=against)
    place = InTurn(front, store, kv, port, yes, offline)
    ours, theirs, paths, other_paths = place.measured(opened, other)
    found = deltas(ours, theirs, (_reference(opened), _reference(other)))
    passed = all(receipt.status != "failed" for receipt in (*ours, *theirs))
    front.emit(
        {
            "receipts": [str(path) for path in paths],
            "against": [str(path) for path in other_paths],
            "passed": passed,
            "deltas": [delta.content() for delta in found],
        },
        _table(found, ours, theirs),
    )
    finish(Outcome.HOLDS if passed else Outcome.QUALIFICATION_FAILED)


def _check_common(opened: "OpenedLock", other: "OpenedLock", *, where: Path) -> None:
    from reproducer.measures.checks import resolved

    asked, theirs = (
        [(each.id, resolved(each.id, each.parameters)) for each in lock.lock.qualification.measures]
        for lock in (opened, other)
    )
    if not any(each in theirs for each in asked):
        raise UsageError(
            "the two suites have no measure in common",
            where=str(where),
            todo="give both locks a measure with equal parameters",
        )


@dataclass(frozen=True)
class InTurn:
    """Where and how two runtimes are measured in turn."""

    front: Front
    store: "Store"
    kv: Path
    port: int | None
    yes: bool
    offline: bool

    def measured(
        self, first: "OpenedLock", second: "OpenedLock"
    ) -> "tuple[tuple[MeasureReceipt, ...], tuple[MeasureReceipt, ...], list[Path], list[Path]]":
        """The measure receipts of both and where they were written; raises as `qualify_in_turn` and `build` do."""
        from contextlib import ExitStack

        from reproducer.qualify.interleaved import qualify_in_turn

        names: tuple[Literal["A", "B"], Literal["A", "B"]] = ("A", "B")
        with ExitStack() as stack:
            pairs = []
            for name, each in zip(names, (first, second), strict=True):
                accepted = self.front.accepted(self.store, each, yes=self.yes)
                runtime = runtime_of(self.front, each, self.store, accepted, offline=self.offline)
                ledger = ledger_of(self.store, each)
                ledger.add(runtime.receipt)
                arm = _arm(stack, self, name=name, opened=each, runtime=runtime, ledger=ledger, accepted=accepted)
                pairs.append((arm, ledger))
            (one, one_ledger), (two, two_ledger) = pairs
            ours, theirs = qualify_in_turn(one, two, reporter=self.front.reporter)
            paths = [one_ledger.add(receipt) for receipt in ours]
            other_paths = [two_ledger.add(receipt) for receipt in theirs]
        return ours, theirs, paths, other_paths


def _arm(
    stack: "ExitStack",
    place: InTurn,
    *,
    name: Literal["A", "B"],
    opened: "OpenedLock",
    runtime: "Runtime",
    ledger: "Ledger",
    accepted: Literal["asked", "--yes"],
) -> "Arm":
    """One arm, with the folders of its run held until the stack ends."""
    from reproducer.boots import Boots
    from reproducer.identity.namespace import derive
    from reproducer.launch.turn import end_all
    from reproducer.qualify.interleaved import Arm
    from reproducer.runs import run_folder

    reporter = place.front.reporter
    parent = place.store.root / "interleaved" / f"{opened.digest}-{name}"
    run = stack.enter_context(run_folder(parent, place.kv, abandon=partial(end_all, reporter=reporter)))
    boots = Boots(opened, runtime, derive(opened.lock), run, place.port, reporter, accepted, ledger)
    return Arm(opened, runtime.receipt, boots.boot, run.folder / "samples", _launches(ledger), ledger.keep)


def _launches(ledger: "Ledger") -> "Callable[[Iterable[str]], list[LaunchReceipt]]":
    """The launch receipts of a ledger by digest."""
    from reproducer.documents.receipts import LaunchReceipt

    return lambda digests: [each for each in ledger.named(digests) if isinstance(each, LaunchReceipt)]


def _reference(opened: "OpenedLock") -> "FidelityReference | None":
    from reproducer.documents.receipts import FidelityReference

    named = opened.lock.qualification.reference
    return None if named is None else FidelityReference.from_json(opened.read(named), where=named.path)


def _table(
    found: "tuple[Delta, ...]", ours: "tuple[MeasureReceipt, ...]", theirs: "tuple[MeasureReceipt, ...]"
) -> "RenderableType":
    """The differences, and how many receipts of each passed."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from reproducer.report.text import number

    table = Table(box=None, padding=(0, 1))
    for heading in ("measure", "value", "A", "B", "B - A", "noise floor", ""):
        table.add_column(heading, overflow="fold", justify="left" if heading in ("measure", "value", "") else "right")
    for delta in found:
        one = delta.difference
        floor = "unknown" if one.floor is None else number(one.floor)
        shown = one.conclusion if one.conclusion == "no difference shown" else f"B is {one.conclusion}"
        name = f"{delta.value} ({delta.unit})"
        values = (number(one.before), number(one.after), number(one.difference))
        table.add_row(Text(delta.measure), name, *values, floor, shown)
    passed = [
        f"{name}: {sum(each.status == 'passed' for each in receipts)} of {len(receipts)} measures passed"
        for name, receipts in (("A", ours), ("B", theirs))
    ]
    return Group(table, Text("\n" + ", ".join(passed)))

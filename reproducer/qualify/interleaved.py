"""Two runtimes measured in turn on one machine: A, B, B, A, A, B … boot by boot.

A machine drifts: it warms up, its disk fills, its neighbours come and go. What runs first and what runs second are not
alike, so each goes first as often as the other, and neither is measured in one piece.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reproducer.documents.opened import OpenedLock
from reproducer.documents.receipts import BuildReceipt, Interleaved, LaunchReceipt, MeasureReceipt
from reproducer.progress import Reporter
from reproducer.qualify.alone import measuring_alone
from reproducer.qualify.cells import Cells, Owner
from reproducer.qualify.client import DEADLINE_S
from reproducer.qualify.suite import SETTLE_S, Booting, Run

ArmName = Literal["A", "B"]
_ORDER: tuple[tuple[ArmName, ArmName], ...] = (("A", "B"), ("B", "A"))


@dataclass(frozen=True)
class Arm:
    """One of the two.

    Attributes:
        opened: its lock.
        build_receipt: of its runtime.
        boot: starts its server.
        workspace: a folder for its samples.
        launches: the launch receipts with these digests.
        keep: keeps a file beside its receipts.
    """

    opened: OpenedLock
    build_receipt: BuildReceipt
    boot: Booting
    workspace: Path
    launches: Callable[[Iterable[str]], Iterable[LaunchReceipt]]
    keep: Callable[[Path, str], None] | None = None


def turns(slots: Sequence[int]) -> Iterator[tuple[ArmName, int]]:
    """Whose boot comes when: A before B in the first place of the plan, B before A in the second, and so on."""
    for place, slot in enumerate(sorted(slots)):
        yield from ((arm, slot) for arm in _ORDER[place % 2])


def qualify_in_turn(
    first: Arm,
    second: Arm,
    *,
    reporter: Reporter,
    deadline_s: float = DEADLINE_S,
    settle_s: float = SETTLE_S,
) -> tuple[tuple[MeasureReceipt, ...], tuple[MeasureReceipt, ...]]:
    """Run the suites of two locks in turn and give the receipts of both; raises as `qualify` does.

    Args:
        first: the arm A.
        second: the arm B; it may be of the same lock, which shows how far identical runs lie apart.
        reporter: where progress goes.
        deadline_s: how long one request may take.
        settle_s: how long a server stays up at least after the last prompt that a later one restores.
    """
    arms: dict[ArmName, Arm] = {"A": first, "B": second}
    runs = {
        name: Run(arm.opened, arm.build_receipt, arm.boot, reporter, deadline_s, settle_s, arm.keep)
        for name, arm in arms.items()
    }
    with measuring_alone(reporter):
        cells = {
            name: Cells.opened(
                arm.workspace,
                Owner(lock_digest=arm.opened.digest, build_receipt=arm.build_receipt.digest),
                reporter,
            )
            for name, arm in arms.items()
        }
        finished = {name: run.finished(cells[name]) for name, run in runs.items()}
        total = sum(len(run.whole) for run in runs.values())
        with reporter.task("measuring", total, "samples") as task:
            task.advance(sum(step in finished[name] for name, run in runs.items() for step in run.whole))
            for name, slot in turns(sorted({slot for run in runs.values() for slot in run.slots})):
                runs[name].take(slot, cells[name], finished[name], task)
        made = {
            name: tuple(
                run.receipt(position, measure, cells[name], arms[name].workspace)
                for position, measure in enumerate(arms[name].opened.lock.qualification.measures)
            )
            for name, run in runs.items()
        }
    boots = _boots((first, made["A"]), (second, made["B"]))
    return _marked("A", made["A"], second, boots), _marked("B", made["B"], first, boots)


def _boots(*arms: tuple[Arm, tuple[MeasureReceipt, ...]]) -> tuple[str, ...]:
    """The launch receipts of both, in the order in which their servers started."""
    launches = {
        launch.digest: launch
        for arm, receipts in arms
        for launch in arm.launches(dict.fromkeys(digest for each in receipts for digest in each.launch_receipts))
    }
    ordered = sorted(launches.values(), key=lambda each: (each.boot.started, each.boot.start_ticks, each.digest))
    return tuple(each.digest for each in ordered)


def _marked(
    name: ArmName, receipts: tuple[MeasureReceipt, ...], other: Arm, boots: tuple[str, ...]
) -> tuple[MeasureReceipt, ...]:
    said = Interleaved(arm=name, other_lock=other.opened.digest, other_build=other.build_receipt.digest, boots=boots)
    return tuple(each.model_copy(update={"interleaved": said}) for each in receipts)

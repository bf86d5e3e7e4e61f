"""`penny ablate`."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from reproducer.cli.front import (
    Front,
    JsonOption,
    KvOption,
    OfflineOption,
    PortOption,
    QuietOption,
    StoreOption,
    VerboseOption,
    YesOption,
    finish,
    open_store,
)
from reproducer.errors import Outcome

if TYPE_CHECKING:
    from reproducer.ablation.running import MeasurePair, Receipts
    from reproducer.cli.interleaving import InTurn
    from reproducer.documents.opened import OpenedLock


class DesignChoice(StrEnum):
    """Which locks between two are measured."""

    BALANCED = "balanced"
    ONE_AT_A_TIME = "one-at-a-time"


def ablate(
    a: Annotated[Path, typer.Argument(metavar="A", help="The lock before.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The lock after.")],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder of the locks, and of results with --run.")
    ] = Path("ablation"),
    design: Annotated[
        DesignChoice, typer.Option("--design", help="Several groups moved at once, or each of them alone.")
    ] = DesignChoice.BALANCED,
    apart: Annotated[bool, typer.Option("--apart", help="Every launch argument is a group of its own.")] = False,
    run: Annotated[
        bool, typer.Option("--run", help="Build and qualify the locks, each in turn with A, and attribute.")
    ] = False,
    store: StoreOption = None,
    kv: KvOption = None,
    port: PortOption = None,
    offline: OfflineOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Plan locks between A and B that attribute their difference to groups of factors; --run measures them."""
    from reproducer.ablation.plan import make_plan
    from reproducer.ablation.running import run as run_plan
    from reproducer.cli.interleaving import InTurn
    from reproducer.cli.show_ablation import shown_plan, shown_run
    from reproducer.documents.opened import open_lock

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    place = open_store(store)
    first, second = open_lock(a), open_lock(b)
    chosen: Literal["balanced", "one-at-a-time"] = "balanced" if design is DesignChoice.BALANCED else "one-at-a-time"
    plan = make_plan(first, second, output, place, design=chosen, apart=apart)
    if not run:
        front.emit(plan.content(), shown_plan(plan))
        between = [each for each in plan.locks if each.name not in ("A", "B")]
        finish(Outcome.NOT_CHECKED if between and all(each.opened is None for each in between) else Outcome.HOLDS)
        return
    in_turn = InTurn(front, place, kv or place.root / "kv", port, yes, offline)
    ran = run_plan(plan, _measuring(in_turn), front.reporter)
    front.emit({**plan.content(), **ran.content(), "exit_code": ran.outcome.exit_code}, shown_run(ran))
    finish(ran.outcome)


def _measuring(place: "InTurn") -> "MeasurePair":
    """Measures two locks in turn, and gives with the measures the receipts that they name."""

    def measure(first: "OpenedLock", second: "OpenedLock") -> "tuple[Receipts, Receipts]":
        from reproducer.cli.front import ledger_of
        from reproducer.ledger import evidence_of

        ours, theirs, _, _ = place.measured(first, second)
        ledgers = ledger_of(place.store, first), ledger_of(place.store, second)
        return evidence_of(ledgers[0], ours), evidence_of(ledgers[1], theirs)

    return measure

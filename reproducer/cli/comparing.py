"""`penny compare`."""

from pathlib import Path
from typing import Annotated

import typer

from reproducer.cli.front import (
    Front,
    JsonOption,
    QuietOption,
    StoreOption,
    VerboseOption,
    finish,
    open_store,
)
from reproducer.errors import UsageError


def compare(
    a: Annotated[
        Path, typer.Argument(metavar="A", help="A bundle, receipts, a lock, a claim, a trace: the one before.")
    ],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another of the same sort.")],
    *,
    factor: Annotated[
        list[str] | None,
        typer.Option(
            "--factor",
            metavar="PATH",
            help="What was meant to differ, as `penny diff` names it (`launch.page_size`); may be repeated.",
        ),
    ] = None,
    pair: Annotated[
        list[str] | None,
        typer.Option("--pair", metavar="A=B", help="Compare these two numbers alone; may be repeated."),
    ] = None,
    lock_a: Annotated[
        Path | None,
        typer.Option("--lock-a", metavar="LOCK", help="The lock of A, where it is not beside its receipts."),
    ] = None,
    lock_b: Annotated[Path | None, typer.Option("--lock-b", metavar="LOCK", help="The same of B.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Compare two sets of receipts, traces or claims: deltas with their noise, controlled or directional, and why."""
    from reproducer.cli.show_comparison import shown
    from reproducer.comparison.comparing import compare_sides
    from reproducer.comparison.sides import read_side

    front = Front(as_json=as_json, quiet=quiet, verbose=verbose)
    pairs = [_pair(each) for each in pair or []]
    root = open_store(store).root if {a.suffix, b.suffix} & {".toml"} else None
    found = compare_sides(
        read_side(a, lock=lock_a, store=root), read_side(b, lock=lock_b, store=root), factors=factor or [], pairs=pairs
    )
    outcome = found.outcome(asked=bool(factor))
    front.emit({**found.content(), "exit_code": outcome.exit_code}, shown(found, every=verbose))
    finish(outcome)


def _pair(text: str) -> tuple[str, str]:
    one, equals, two = text.partition("=")
    if not (one and equals and two):
        raise UsageError(f"--pair {text} names no two numbers", todo="write --pair MEASURE:VALUE=MEASURE:VALUE")
    return one, two

"""What others state as a side: published claims and results of other harnesses. They have no boots and no lock."""

from collections.abc import Iterator
from typing import Any

from reproducer.comparison.numbers import Number
from reproducer.comparison.sides import Side
from reproducer.documents.claims import Claim, ClaimedQuantity
from reproducer.documents.imported import ImportedResult, ImportedRun
from reproducer.statistics.observations import Observations


def claim_side(claim: Claim, where: str) -> Side:
    """A published claim; what its publisher left open is unknown."""
    skipped = [each.name for each in claim.quantities if each.kind == "difference"]
    conditions: dict[str, Any] = {
        **dict.fromkeys(claim.conditions.unknown),
        **claim.conditions.known,
        "publisher": claim.publisher,
        "runtime": claim.runtime,
        "date": claim.date,
        "lock": None,
        "noise of identical runs": None,
    }
    notes = (f"{', '.join(skipped)}: differences between others are no numbers of this runtime",) if skipped else ()
    numbers = tuple(_claimed(each) for each in claim.quantities if each.kind != "difference")
    return Side(where, "claim", numbers, conditions, notes=notes)


def _claimed(quantity: ClaimedQuantity) -> Number:
    several = quantity.values is not None
    values = [float(each) for each in quantity.values or (quantity.value or 0,)]
    return Number(
        measure="",
        value=quantity.name,
        kind=quantity.kind,
        unit=quantity.unit,
        statistic="median of the published values" if several else "published value",
        parameters=quantity.parameters,
        observations=Observations.of(("published", [each]) for each in values),
        how="median",
        defined=False,
        complete=False,
        count=len(values) if several else None,
    )


def imported_side(result: ImportedResult, where: str) -> Side:
    """What another harness measured; a lock that its importer named is shown by nothing in the file."""
    conditions: dict[str, Any] = {}
    for run in result.runs:
        for name in run.conditions.unknown:
            conditions.setdefault(_of_run(result, run, name), None)
        conditions.update({_of_run(result, run, name): value for name, value in run.conditions.known.items()})
    conditions |= {
        "harness": result.harness,
        "harness version": result.harness_version,
        "lock": None,
        "noise of identical runs": None,
    }
    return Side(where, "imported result", tuple(_every(result)), conditions)


def _of_run(result: ImportedResult, run: ImportedRun, name: str) -> str:
    return name if len(result.runs) == 1 else f"{run.place}: {name}"


def _every(result: ImportedResult) -> Iterator[Number]:
    for run in result.runs:
        measure = result.harness if len(result.runs) == 1 else f"{result.harness} {run.place}"
        for each in run.quantities:
            of_requests = each.values is not None and each.statistic in ("median", "mean")
            values = each.values if of_requests and each.values else (each.value,)
            yield Number(
                measure=measure,
                value=f"{each.name} {each.statistic}",
                kind=each.kind,
                unit=each.unit,
                statistic=each.statistic,
                parameters={},
                observations=Observations.of(("run", [value]) for value in values),
                how="mean" if each.statistic == "mean" else "median",
                complete=False,
                count=len(values) if of_requests else None,
            )

"""One measure with several sets of parameters as a table: a row for each set, a column for each value."""

from collections.abc import Iterator, Sequence

from reproducer.documents.measured import Derived
from reproducer.documents.receipts import MeasureReceipt
from reproducer.measures.apart import differing, identity
from reproducer.measures.definitions import COUNTED
from reproducer.report.text import NOTHING, code, number, plain, table

_SIZES = frozenset(value.name for value in COUNTED)


def ladders(measures: Sequence[MeasureReceipt]) -> Iterator[str]:
    """The lines of a table for each measure that was taken with several sets of parameters; none without one.

    Args:
        measures: the receipts, in the order of their measures and parameters.
    """
    for measure in dict.fromkeys(receipt.measure for receipt in measures):
        rungs = [receipt for receipt in measures if receipt.measure == measure]
        parameters = differing((receipt.measure, receipt.parameters) for receipt in rungs)
        if parameters:
            yield from ("", f"### {code(measure)} by {', '.join(code(each) for each in parameters)}", "")
            yield from _ladder(rungs, parameters)


def _ladder(rungs: list[MeasureReceipt], parameters: Sequence[str]) -> list[str]:
    units = {each.name: each.unit for receipt in rungs for each in receipt.derived if each.name not in _SIZES}
    header = (*(code(each) for each in parameters), *(f"{code(name)} {unit}" for name, unit in units.items()))
    rows = []
    for receipt in rungs:
        every = {name: value for name, _, value in identity(receipt.measure, receipt.parameters)[1]}
        values = {each.name: each for each in receipt.derived}
        told = (plain(str(every.get(each, NOTHING))) for each in parameters)
        rows.append((*told, *(_told(values.get(name)) for name in units)))
    return table(header, rows)


def _told(derived: Derived | None) -> str:
    """The value; behind it how far the samples lie apart."""
    if derived is None:
        return NOTHING
    if derived.minimum == derived.maximum:
        return f"**{number(derived.value)}**"
    return f"**{number(derived.value)}** ({number(derived.minimum)} to {number(derived.maximum)})"

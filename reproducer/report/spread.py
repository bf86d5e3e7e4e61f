"""How sure the values of a report are: their intervals, and the noise within boots and between them."""

from collections.abc import Iterable, Sequence

from reproducer.documents.measured import Derived, GpuConditions
from reproducer.documents.receipts import MeasureReceipt
from reproducer.measures.definitions import COUNTED
from reproducer.report.text import NOTHING, code, number, plain, table

_SIZES = frozenset(value.name for value in COUNTED)
_METHODS = {"bootstrap/1": "bootstrap", "wilson/1": "Wilson"}


def spreads(measures: Iterable[tuple[str, MeasureReceipt]]) -> list[str]:
    """A table of every value that carries its spread; nothing where none does, as in receipts of older pennies."""
    rows = [
        _row(name, derived)
        for name, receipt in measures
        for derived in receipt.derived
        if derived.spread is not None and derived.name not in _SIZES
    ]
    if not rows:
        return []
    header = ("measure", "value", "", "unit", "95 % interval", "by", "within boots", "between boots")
    return [
        "",
        "### Spread",
        "",
        *table(header, rows),
        "",
        "The interval is of the value. Within and between boots are standard deviations: of samples of one boot, and",
        "of what the boots give. Two runs that differ by less than their noise floor show no difference.",
    ]


def _row(name: str, derived: Derived) -> tuple[str, ...]:
    spread = derived.spread
    if spread is None:
        return ()
    ends = f"{number(spread.low)} to {number(spread.high)}" if spread.low != spread.high else number(spread.low)
    return (
        code(name),
        code(derived.name),
        f"**{number(derived.value)}**",
        derived.unit,
        ends,
        _METHODS[spread.method],
        _deviation(spread.within_boots),
        _deviation(spread.between_boots),
    )


def _deviation(value: float | None) -> str:
    return NOTHING if value is None else number(value)


def clocks(measures: Sequence[tuple[str, MeasureReceipt]]) -> list[str]:
    """A table of what the GPUs did while they were measured; nothing where no receipt says it."""
    rows = [
        (
            code(name),
            plain(gpu.name),
            _ends(gpu.clock_sm_mhz, "MHz"),
            _ends(gpu.clock_memory_mhz, "MHz"),
            _ends(gpu.temperature_c, "°C"),
            _ends(gpu.power_w, "W"),
            _ends(gpu.utilisation_percent, "%"),
        )
        for name, receipt in measures
        for gpu in receipt.conditions.gpus or ()
        if _says(gpu)
    ]
    if not rows:
        return []
    return ["", *table(("measure", "GPU", "clock", "memory clock", "temperature", "drawn", "busy"), rows)]


def in_turn(measures: Iterable[tuple[str, MeasureReceipt]]) -> list[str]:
    """Which measures were taken in turn with another runtime; nothing where none was."""
    found = [
        f"- {code(name)}: arm {said.arm} of {len(said.boots)} boots in all, with lock {code(said.other_lock)}"
        for name, receipt in measures
        if (said := receipt.interleaved) is not None
    ]
    return ["", "Measured in turn with another runtime on this machine:", "", *found] if found else []


def _says(gpu: GpuConditions) -> bool:
    said = (gpu.clock_sm_mhz, gpu.clock_memory_mhz, gpu.temperature_c, gpu.power_w, gpu.utilisation_percent)
    return any(each is not None for each in said)


def _ends(ends: tuple[float, float] | None, unit: str) -> str:
    if ends is None:
        return "unknown"
    low, high = ends
    return f"{number(low)} {unit}" if low == high else f"{number(low)} to {number(high)} {unit}"

"""nvidia-smi: asked for a table, and what it says read as a stranger's words."""

import csv
import re
import shutil

from reproducer.documents.base import shown
from reproducer.gpus.card import Card, Cards, reasons_of
from reproducer.programs import ask

# The first ones are as old as the program; those of a list are left out together where it does not know one of them.
_ALWAYS = ("name", "driver_version", "memory.total", "power.limit", "enforced.power.limit")
_NEWER = ("compute_cap", "clocks_throttle_reasons.active")
_STATE = ("clocks.current.sm", "clocks.current.memory", "temperature.gpu", "power.draw", "utilization.gpu")
_MOST_CARDS = 64
_LONGEST_NAME = 128
_MIB = 1 << 20
_NUMBER = re.compile(r"^[0-9]{1,9}(\.[0-9]{1,6})?$")
_MASK = re.compile(r"^0x[0-9a-fA-F]{1,16}$")
_CAPABILITY = re.compile(r"^[0-9]{1,2}\.[0-9]$")
_VERSION = re.compile(r"^[0-9]{1,5}(\.[0-9]{1,5}){0,3}$")


def from_smi(*, state: bool = False) -> Cards | None:
    """What nvidia-smi on `PATH` says; None where there is none.

    Args:
        state: what each card does right now as well.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    fault = ""
    every = (*_ALWAYS, *_NEWER)
    for fields in (*(((*every, *_STATE),) if state else ()), every, _ALWAYS):
        answer = ask([program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"])
        if not answer.fault:
            return _read(answer.text, fields)
        fault = f"nvidia-smi: {answer.fault}: {shown(_first(answer.text))}"
        if "not a valid field" not in answer.text:
            break
    return Cards(fault=fault)


def _read(text: str, fields: tuple[str, ...]) -> Cards:
    """Every row as a card; one that has not as many fields as were asked for makes the whole answer worthless."""
    cards: list[Card] = []
    lines = [line for line in text.splitlines() if line.strip()]
    for line in lines[: _MOST_CARDS + 1]:
        try:
            row = [value.strip() for value in next(csv.reader([line], skipinitialspace=True))]
        except (csv.Error, StopIteration):
            row = []
        if len(row) != len(fields) or not _plain(row[0]):
            return Cards(fault=f"nvidia-smi said what it does not say of a GPU: {shown(line)}")
        cards.append(_card(dict(zip(fields, row, strict=True))))
    if not cards:
        return Cards(fault="nvidia-smi names no GPU")
    if len(cards) > _MOST_CARDS:
        return Cards(fault=f"nvidia-smi names more than {_MOST_CARDS} GPUs")
    return Cards(tuple(cards))


def _card(row: dict[str, str]) -> Card:
    memory = _number(row["memory.total"])
    mask = row.get("clocks_throttle_reasons.active", "")
    capability = row.get("compute_cap", "")
    return Card(
        name=row["name"],
        driver=row["driver_version"] if _VERSION.match(row["driver_version"]) else None,
        memory_bytes=None if memory is None else int(memory * _MIB),
        compute_capability=capability if _CAPABILITY.match(capability) else None,
        power_requested_w=_number(row["power.limit"]),
        power_enforced_w=_number(row["enforced.power.limit"]),
        reasons=reasons_of(int(mask, 16)) if _MASK.match(mask) else None,
        clock_sm_mhz=_number(row.get("clocks.current.sm", "")),
        clock_memory_mhz=_number(row.get("clocks.current.memory", "")),
        temperature_c=_number(row.get("temperature.gpu", "")),
        power_w=_number(row.get("power.draw", "")),
        utilisation_percent=_number(row.get("utilization.gpu", "")),
    )


def _number(text: str) -> float | None:
    """A number; None for `[N/A]`, `[Not Supported]` and whatever else is none."""
    return float(text) if _NUMBER.match(text) else None


def _plain(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and name.isprintable() and not name.startswith("[")


def _first(text: str) -> str:
    return (text.strip().splitlines() or [""])[0]

"""NVML, the driver's own library, through ctypes: cheap enough to be asked often, and there without nvidia-smi."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from reproducer.gpus.card import Card, Cards, reasons_of

_LIBRARY = "libnvidia-ml.so.1"
_TEXT = 96
_MOST_CARDS = 64
_SM, _MEMORY_CLOCK, _CHIP = 1, 2, 0  # NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


def from_nvml() -> Cards | None:
    """What the driver's library says; None where there is none."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
    try:
        with _opened(library) as fault:
            return Cards(fault=f"NVML cannot be opened: error {fault}") if fault else _cards(library)
    except AttributeError as error:
        return Cards(fault=f"NVML is older than what penny asks of it: {str(error)[:120]}")


class _Utilisation(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


@contextmanager
def _opened(library: Any) -> Iterator[int]:
    fault = int(library.nvmlInit_v2())
    try:
        yield fault
    finally:
        if not fault:
            library.nvmlShutdown()


def _cards(library: Any) -> Cards:
    count = ctypes.c_uint()
    if fault := library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
        return Cards(fault=f"NVML does not count GPUs: error {fault}")
    driver = _text(library.nvmlSystemGetDriverVersion)
    found = []
    for index in range(min(count.value, _MOST_CARDS)):
        handle = ctypes.c_void_p()
        if fault := library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle)):
            return Cards(fault=f"NVML does not open GPU {index}: error {fault}")
        found.append(_card(library, handle, driver))
    return Cards(tuple(found)) if found else Cards(fault="NVML names no GPU")


def _card(library: Any, handle: ctypes.c_void_p, driver: str | None) -> Card:
    memory, major, minor = _Memory(), ctypes.c_int(), ctypes.c_int()
    sized = library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0
    capable = library.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor)) == 0
    mask = _number(library.nvmlDeviceGetCurrentClocksThrottleReasons, handle, ctypes.c_ulonglong())
    requested = _number(library.nvmlDeviceGetPowerManagementLimit, handle, ctypes.c_uint())
    enforced = _number(library.nvmlDeviceGetEnforcedPowerLimit, handle, ctypes.c_uint())
    drawn = _number(library.nvmlDeviceGetPowerUsage, handle, ctypes.c_uint())
    busy = _Utilisation()
    told = library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(busy)) == 0
    return Card(
        name=_text(partial(library.nvmlDeviceGetName, handle)) or "unknown",
        driver=driver,
        memory_bytes=int(memory.total) if sized else None,
        memory_used_bytes=int(memory.used) if sized else None,
        compute_capability=f"{major.value}.{minor.value}" if capable else None,
        power_requested_w=None if requested is None else requested / 1000,
        power_enforced_w=None if enforced is None else enforced / 1000,
        reasons=None if mask is None else reasons_of(mask),
        clock_sm_mhz=_kind(library.nvmlDeviceGetClockInfo, handle, _SM),
        clock_memory_mhz=_kind(library.nvmlDeviceGetClockInfo, handle, _MEMORY_CLOCK),
        temperature_c=_kind(library.nvmlDeviceGetTemperature, handle, _CHIP),
        power_w=None if drawn is None else drawn / 1000,
        utilisation_percent=float(busy.gpu) if told else None,
    )


def _text(call: Any) -> str | None:
    buffer = ctypes.create_string_buffer(_TEXT)
    if call(buffer, ctypes.c_uint(_TEXT)) != 0:
        return None
    text = buffer.value.decode("utf-8", "replace")
    return text if text and text.isprintable() else None


def _number(call: Any, handle: ctypes.c_void_p, into: Any) -> int | None:
    return int(into.value) if call(handle, ctypes.byref(into)) == 0 else None


def _kind(call: Any, handle: ctypes.c_void_p, kind: int) -> float | None:
    """A number of which there are several kinds."""
    into = ctypes.c_uint()
    return float(into.value) if call(handle, ctypes.c_int(kind), ctypes.byref(into)) == 0 else None

"""What receipts say of the GPUs against the lock: the power limit that held, and whether anything slowed them down."""

from collections.abc import Iterator

from reproducer.documents.measured import GpuConditions
from reproducer.documents.verdict import Check
from reproducer.gpus.card import THROTTLED
from reproducer.verify.evidence import Evidence, check, unknown

_WATTS = 0.5
_POWER, _THROTTLE = "hardware.power_limit", "hardware.throttle"


def hardware_checks(evidence: Evidence) -> Iterator[Check]:
    """Nothing for a lock that states no power limit and receipts that show no GPU."""
    measured = [(name, receipt.conditions.gpus) for name, receipt in evidence.measures if receipt.samples]
    shown = [(name, gpus) for name, gpus in measured if gpus is not None]
    hardware = evidence.lock.hardware
    wanted = hardware.power_limit_w if hardware is not None else None
    if wanted is not None and measured:
        yield _power(wanted, shown, [name for name, gpus in measured if gpus is None])
    if shown:
        yield _throttle(shown)


def _power(wanted: float, shown: list[tuple[str, tuple[GpuConditions, ...]]], without: list[str]) -> Check:
    """The limit that held, read while each sample was taken, is the lock's."""
    faults, unread = [], [*without]
    for name, gpus in shown:
        for gpu in gpus:
            held = gpu.power_enforced_w
            if held is None:
                unread.append(name)
            elif any(abs(each - wanted) >= _WATTS for each in held):
                asked = "unknown" if gpu.power_requested_w is None else _watts(gpu.power_requested_w)
                faults.append(f"{name}: {asked} was set and {_watts(held)} held on {gpu.name}")
    if not faults and unread:
        names = ", ".join(dict.fromkeys(unread))
        return unknown(_POWER, "configuration", f"the receipt says no power limit that held: {names}")
    held_anywhere = {_watts(gpu.power_enforced_w) for _, gpus in shown for gpu in gpus if gpu.power_enforced_w}
    got = ", ".join(sorted(held_anywhere)) if faults else "it held throughout"
    return check(_POWER, "configuration", faults, expected=f"{wanted:g} W", got=got)


def _throttle(shown: list[tuple[str, tuple[GpuConditions, ...]]]) -> Check:
    """No GPU was too hot or short of power while it was measured; the limit itself may slow it, that is its purpose."""
    faults, unread = [], []
    for name, gpus in shown:
        for gpu in gpus:
            if gpu.reasons is None:
                unread.append(name)
            elif slow := sorted(THROTTLED.intersection(gpu.reasons)):
                faults.append(f"{name}: {gpu.name} was slowed down: {', '.join(slow)}")
    if not faults and unread:
        names = ", ".join(dict.fromkeys(unread))
        return unknown(_THROTTLE, "configuration", f"the receipt says nothing of what slowed the GPU down: {names}")
    slowed = sorted(THROTTLED.intersection(each for _, gpus in shown for gpu in gpus for each in gpu.reasons or ()))
    got = ", ".join(slowed) or "nothing did"
    return check(_THROTTLE, "configuration", faults, expected="nothing slowed the GPUs down", got=got)


def _watts(limits: tuple[float, float]) -> str:
    low, high = limits
    return f"{low:g} W" if low == high else f"{low:g} to {high:g} W"

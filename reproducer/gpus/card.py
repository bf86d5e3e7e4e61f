"""One GPU as its driver shows it; what the driver does not say is None and never a default."""

from dataclasses import dataclass

# What the driver gives as reasons why clocks are below the highest, by bit.
REASONS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
# Those that mean the card could not do what it was set to: too hot, or too little power from outside.
THROTTLED = frozenset({"hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"})


@dataclass(frozen=True)
class Card:
    """One GPU.

    Attributes:
        name: as the driver says it.
        memory_bytes: all of it.
        memory_used_bytes: what of it is in use right now; None where the driver's library was not asked.
        compute_capability: such as `9.0`.
        power_requested_w: the limit that was set.
        power_enforced_w: the limit that holds, after every other one.
        reasons: why its clocks are below the highest right now.
        clock_sm_mhz: what its multiprocessors run at right now.
        clock_memory_mhz: what its memory runs at right now.
        temperature_c: of the chip, right now.
        power_w: what it draws right now.
        utilisation_percent: share of the last moment in which something ran on it.
    """

    name: str
    driver: str | None
    memory_bytes: int | None
    compute_capability: str | None
    power_requested_w: float | None
    power_enforced_w: float | None
    reasons: tuple[str, ...] | None
    clock_sm_mhz: float | None = None
    clock_memory_mhz: float | None = None
    memory_used_bytes: int | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    utilisation_percent: float | None = None


@dataclass(frozen=True)
class Cards:
    """What was found.

    Attributes:
        found: every GPU, in the driver's order.
        fault: why there is nothing to say; empty where the driver answered.
    """

    found: tuple[Card, ...] = ()
    fault: str = ""

    @property
    def alike(self) -> bool:
        """Whether all are of one model."""
        return len({(card.name, card.compute_capability, card.memory_bytes) for card in self.found}) == 1


def reasons_of(mask: int) -> tuple[str, ...]:
    """The reasons that a mask of the driver's names; a bit that nobody knows is named by its value."""
    known = [name for bit, name in REASONS.items() if mask & bit]
    rest = mask & ~sum(REASONS)
    return (*known, *([f"unknown ({rest:#x})"] if rest else ()))

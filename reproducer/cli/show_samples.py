"""One finished sample as a machine reads it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reproducer.qualify.watching import Finished


def sample_line(finished: "Finished") -> dict[str, Any]:
    """What `penny qualify --json` says of each sample, a line each, before the line with the result."""
    step = finished.step
    return {
        "event": "sample",
        "measure": finished.name,
        "index": step.index,
        "boot": step.slot,
        "warmup": step.warmup,
        "part": step.part,
        "seconds": round(finished.seconds, 3),
        "valid": not finished.reason,
        "reason": finished.reason,
        "values": {name: {"unit": unit, "values": list(found)} for name, (found, unit) in finished.values.items()},
    }

"""Which evidence a difference between two locks takes away: must the runtime be rebuilt, which receipts still speak.

This is about meaning. Every receipt names the lock it was made for, and whether a receipt of one lock may be shown for
another is for `verify` to say.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from reproducer.identity.factors import Path
from reproducer.identity.meaning import Consequence, Meaning

_BUILT = frozenset({"platform", "toolchain", "build", "components", "environments", "checkpoints"})
_WITHOUT_COST = frozenset({"operational", "cosmetic"})
# Measures that judge what is said and not how fast.
_OF_OUTPUT = ("fidelity/", "needle.", "chat.")

Found = Mapping[Path, tuple[Any, Any, Meaning]]


def must_rebuild(found: Found) -> bool:
    """Whether a change touches what the runtime is built from."""
    return any(
        path[0] in _BUILT and meaning.consequence not in _WITHOUT_COST and repr(before) != repr(after)  # 1 is not 1.0
        for path, (before, after, meaning) in found.items()
    )


def invalidated(found: Found, measures: Iterable[str], *, rebuild: bool) -> tuple[str, ...]:
    """Which receipts of the first lock are no evidence for the second.

    Args:
        found: the changes by path.
        measures: names of the measures that the first lock asks for, as they stand in paths.
        rebuild: what `must_rebuild` said.

    Returns:
        Of `build`, `launch` and the measures those that no longer speak, in that order.
    """
    served = {
        meaning.consequence
        for path, (_, _, meaning) in found.items()
        if path[0] != "qualification" and meaning.consequence not in _WITHOUT_COST
    }
    asked = [path for path in found if path[0] == "qualification"]
    kept = [measure for measure in measures if not _touched(measure, served, asked)]
    gone = (*(("build",) if rebuild else ()), *(("launch",) if served else ()))
    return (*gone, *(measure for measure in measures if measure not in kept))


def _touched(measure: str, served: set[Consequence], asked: Iterable[Path]) -> bool:
    if served - {"performance"} or (served and not measure.startswith(_OF_OUTPUT)):
        return True
    for path in asked:
        match path[1:]:
            case ("boots",):
                return True
            case ("measures", name, *_) if name == measure:
                return True
            case ("reference",) | ("reference", "sha256") if measure.startswith("fidelity/"):
                return True
    return False

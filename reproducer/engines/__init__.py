"""How penny talks to each kind of engine: one adapter each."""

from reproducer.engines.interface import Engine, Observed
from reproducer.engines.sglang import SGLANG

__all__ = ["Engine", "Observed", "engine_of"]


def engine_of(kind: str) -> Engine:
    """The adapter of an engine by the `kind` of the lock; KeyError where there is none."""
    return {engine.kind: engine for engine in (SGLANG,)}[kind]

"""How penny talks to each kind of engine: one adapter each."""

from reproducer.engines.interface import Engine, Observed
from reproducer.engines.persistent import Stores
from reproducer.engines.sglang import SGLANG
from reproducer.errors import InvalidDocumentError

__all__ = ["Engine", "Observed", "engine_of", "stores_of"]


def engine_of(kind: str) -> Engine:
    """The adapter of an engine by the `kind` of the lock.

    Raises:
        InvalidDocumentError: locks of that engine can be read and compared, and not launched.
    """
    adapters = {engine.kind: engine for engine in (SGLANG,)}
    if kind not in adapters:
        raise InvalidDocumentError(f"penny cannot launch {kind}", why=f"it has adapters for {', '.join(adapters)}")
    return adapters[kind]


def stores_of(kind: str) -> Stores:
    """What tells where an engine keeps pages that outlive it, by the `kind` of the lock.

    Raises:
        InvalidDocumentError: no such engine.
    """
    if kind == "vllm":
        from reproducer.engines.vllm_store import persistent_store

        return persistent_store
    return engine_of(kind).persistent_store

"""How penny talks to each kind of engine: one adapter each."""

from collections.abc import Mapping

from reproducer.engines.interface import Engine, Observed
from reproducer.engines.openai import OPENAI_ENGINE
from reproducer.engines.persistent import Stores
from reproducer.engines.sglang import SGLANG
from reproducer.engines.vllm import VLLM_ENGINE
from reproducer.errors import InvalidDocumentError

__all__ = ["Engine", "Observed", "engine_of", "stores_of"]

_ADAPTERS: Mapping[str, Engine] = {engine.kind: engine for engine in (SGLANG, VLLM_ENGINE, OPENAI_ENGINE)}


def engine_of(kind: str) -> Engine:
    """The adapter of an engine by the `kind` of the lock.

    Raises:
        InvalidDocumentError: locks of that engine can be read and compared, and not launched.
    """
    if kind not in _ADAPTERS:
        raise InvalidDocumentError(f"penny cannot launch {kind}", why=f"it has adapters for {', '.join(_ADAPTERS)}")
    return _ADAPTERS[kind]


def stores_of(kind: str) -> Stores:
    """What tells where an engine keeps pages that outlive it, by the `kind` of the lock; raises as `engine_of`."""
    return engine_of(kind).persistent_store

"""What each lock of a plan costs: which layers the store has already, and how long a run was where one was measured."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from reproducer.documents.opened import OpenedLock
from reproducer.documents.receipts import LaunchReceipt, MeasureReceipt
from reproducer.documents.sources import Artefact
from reproducer.errors import PennyError
from reproducer.progress import Silent
from reproducer.store import Store

State = Literal["in the store", "built anew", "unknown"]
_NS = 1_000_000_000


@dataclass(frozen=True)
class Layer:
    """One thing that a build makes or finds."""

    name: str
    state: State


def layers(opened: OpenedLock, store: Store, beside: Sequence[OpenedLock]) -> tuple[Layer, ...]:
    """Components, the runtime's environment and checkpoints, each by whether the store has it under its key.

    Args:
        opened: the lock.
        store: the store.
        beside: locks that have the same checkpoints; where one of them was built here, they are there.
    """
    from reproducer.build.workshop import Workshop
    from reproducer.documents.consistency import RUNTIME_ENVIRONMENT

    lock = opened.lock
    shop = Workshop(store, lock.platform, lock.toolchain, lock.build, opened.read, Silent(), offline=True)
    found: list[Layer] = []
    built: list[tuple[str, str]] | None = []
    for component in lock.components:
        kind, key = shop.key_of(component, _chosen(opened, component.build_environment))
        there = _has(store, kind, key)
        found.append(Layer(f"component {component.name}", "in the store" if there else "built anew"))
        if component.kind == "wheel" and built is not None:
            wheel = _wheel(store, kind, key) if there else None
            built = None if wheel is None else [*built, wheel]
    found.append(Layer("packages", _packages(opened, store, RUNTIME_ENVIRONMENT, built)))
    there_already = [each for other in (opened, *beside) if _builds(store, other) for each in other.lock.checkpoints]
    found += [
        Layer(f"checkpoint {each.role}", "in the store" if each in there_already else "unknown")
        for each in lock.checkpoints
    ]
    return tuple(found)


def _packages(opened: OpenedLock, store: Store, name: str, built: list[tuple[str, str]] | None) -> State:
    """The runtime's environment holds the wheels that are built: without them nobody knows its key."""
    from reproducer.build.products import environment_inputs, product_key

    if built is None:
        return "built anew"
    wheels = [*((each.filename, each.sha256) for each in _chosen(opened, name)), *built]
    inputs = environment_inputs(opened.lock.toolchain.python, wheels, compiled=True)
    key = product_key("environment", opened.lock.platform, inputs)
    return "in the store" if _has(store, "environment", key) else "built anew"


def _chosen(opened: OpenedLock, environment: str | None) -> tuple[Artefact, ...]:
    """The wheel of every package that a build on this platform takes first."""
    from reproducer.fetch.pylock import read_pylock, select

    if environment is None:
        return ()
    pylock = opened.lock.environment(environment).pylock
    choices = select(
        read_pylock(opened.read(pylock), where=pylock.path), opened.lock.toolchain.python, opened.lock.platform
    )
    return tuple(each[0] for each in choices)


def _has(store: Store, kind: str, key: str) -> bool:
    return (store.root / "entries" / kind / key / "seal.json").is_file()


def _wheel(store: Store, kind: str, key: str) -> tuple[str, str] | None:
    """File name and digest of a built wheel; None where the store's record does not lead to one."""
    folder = store.root / "entries" / kind / key / "content"
    try:
        path = folder / str(json.loads((folder / "record.json").read_bytes())["wheel"])
        return path.name, hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _builds(store: Store, opened: OpenedLock) -> bool:
    from reproducer.ledger import Ledger

    try:
        return any(each.failure is None for each in Ledger.of(store.root, opened.digest).builds())
    except PennyError:
        return False


def run_seconds(receipts: Sequence[object]) -> float | None:
    """How long one qualification of a lock was: starts of its servers and its requests; None where none was measured.

    Time between requests, and the stop of a server, stand in no receipt.
    """
    measures = [each for each in receipts if isinstance(each, MeasureReceipt) and each.samples]
    launches = {each.digest: each for each in receipts if isinstance(each, LaunchReceipt)}
    named = {digest for each in measures for digest in each.launch_receipts}
    if not measures or not named <= launches.keys():
        return None
    asked = sum(
        max((request.finished_ns for request in sample.requests), default=0)
        for each in measures
        for sample in each.samples
    )
    return (asked + sum(launches[digest].ready_ns for digest in named)) / _NS

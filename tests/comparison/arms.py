"""Two folders of receipts that were measured in turn, each with its lock; no engine ran to make them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tomlkit

from reproducer.documents.opened import OpenedLock, open_lock
from reproducer.documents.receipts import (
    Boot,
    BuildReceipt,
    EffectiveValue,
    FidelityReference,
    Interleaved,
    LaunchReceipt,
    MeasureReceipt,
)
from reproducer.ledger import AnyReceipt, Ledger
from reproducer.qualify.booted import booted
from reproducer.qualify.derive import derive
from tests.verify.factory import build_receipt, launch_receipt, measure_receipt, sha256, small_lock

Edit = Callable[[dict[str, Any]], object]


@dataclass(frozen=True)
class Arm:
    """One side before it is written."""

    opened: OpenedLock
    build: BuildReceipt
    launches: tuple[LaunchReceipt, ...]
    measures: tuple[MeasureReceipt, ...]

    def changed(self, **update: Any) -> "Arm":
        """With some fields of every measure receipt changed."""
        return Arm(
            self.opened, self.build, self.launches, tuple(each.model_copy(update=update) for each in self.measures)
        )

    def under(self, **update: Any) -> "Arm":
        """With some conditions of every measure receipt changed."""
        return Arm(
            self.opened,
            self.build,
            self.launches,
            tuple(
                each.model_copy(update={"conditions": each.conditions.model_copy(update=update)})
                for each in self.measures
            ),
        )


def relocked(folder: Path, edit: Edit) -> OpenedLock:
    """The small lock with its plain data changed."""
    opened = small_lock(folder)
    data = opened.lock.content()
    edit(data)
    opened.path.write_text(tomlkit.dumps(data))
    return open_lock(opened.path)


def arm(opened: OpenedLock, name: Literal["A", "B"], *, slower: int = 1, more: dict[str, Any] | None = None) -> Arm:
    """A side whose tokens come `slower` times later; `more` is what its live server showed beside the lock's values."""
    build = build_receipt(opened)
    launches = tuple(_launch(opened, build, number, name, more or {}) for number in (1, 2))
    assert opened.lock.qualification.reference is not None
    reference = FidelityReference.from_json(opened.read(opened.lock.qualification.reference), where="reference")
    receipts = (
        measure_receipt(opened, each, build, launches, reference) for each in opened.lock.qualification.measures
    )
    measures = tuple(_paced(each, launches, reference, slower) for each in receipts)
    told = {"sampling": {"temperature": 0.0}}
    return Arm(opened, build, launches, measures).under(**told)


def _launch(opened: OpenedLock, build: BuildReceipt, number: int, name: str, more: dict[str, Any]) -> LaunchReceipt:
    receipt = launch_receipt(opened, build, number)
    boot = Boot(id=sha256(f"{name} {number}"), pid=number, started=receipt.boot.started, start_ticks=number)
    shown = tuple(
        EffectiveValue(name=key, expected=value, got=value, source="server_info", agrees=True)
        for key, value in more.items()
    )
    return receipt.model_copy(update={"boot": boot, "effective": (*receipt.effective, *shown)})


def _paced(
    receipt: MeasureReceipt, launches: tuple[LaunchReceipt, ...], reference: FidelityReference, slower: int
) -> MeasureReceipt:
    def later(request: Any) -> Any:
        events = tuple((time * slower, count) for time, count in request.events)
        return request.model_copy(update={"events": events, "finished_ns": request.finished_ns * slower})

    samples = tuple(
        each.model_copy(update={"requests": tuple(later(request) for request in each.requests)})
        for each in receipt.samples
    )
    derived = derive(receipt.measure, receipt.parameters, samples, reference, statistics="penny-statistics/1")
    boots = tuple(booted(launch) for launch in launches)
    return receipt.model_copy(update={"samples": samples, "derived": derived, "boots": boots})


def in_turn(first: Arm, second: Arm) -> tuple[Arm, Arm]:
    """Both marked as arms of one run."""
    boots = tuple(each.digest for each in (*first.launches, *second.launches))

    def said(name: Literal["A", "B"], other: Arm) -> Interleaved:
        return Interleaved(arm=name, other_lock=other.opened.digest, other_build=other.build.digest, boots=boots)

    return first.changed(interleaved=said("A", second)), second.changed(interleaved=said("B", first))


def written(side: Arm, folder: Path, *, without: Iterable[str] = ()) -> Path:
    """A folder with the lock, its files and the receipts but those of some kinds."""
    ledger = Ledger(side.opened.folder / "receipts")
    receipts: tuple[AnyReceipt, ...] = (side.build, *side.launches, *side.measures)
    for receipt in receipts:
        if receipt.kind not in tuple(without):
            ledger.add(receipt)
    return side.opened.folder.rename(folder) if folder != side.opened.folder else folder

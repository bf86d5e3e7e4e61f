"""The GPUs of this machine against what a lock's hardware, toolchain and launch ask of them."""

import re
from collections.abc import Iterator

from reproducer.doctor.checks import Checked
from reproducer.documents.lock import Hardware, Lock
from reproducer.errors import ConfigurationError
from reproducer.gpus import look
from reproducer.gpus.card import THROTTLED, Card, Cards

_NO_LOCK = "there is no lock to compare with"
_NO_GPU = "no GPU was found"
_UNKNOWN = "unknown"
_WATTS = 0.5
_ROUNDED = 0.01  # locks state memory in rounded gigabytes


def check_gpu(lock: Lock | None, cards: Cards) -> Iterator[Checked]:
    """Every check of the GPUs.

    Args:
        lock: None compares with nothing.
        cards: what the driver shows.
    """
    needed = lock is not None and needs_gpu(lock)
    yield _there(lock, cards, needed=needed)
    yield _model(lock, cards)
    yield _capability(lock, cards)
    yield _memory(lock, cards)
    yield _driver(lock, cards, needed=needed)
    yield _power(lock, cards)
    yield _throttle(cards)


def needs_gpu(lock: Lock) -> bool:
    """Whether the launch is for an NVIDIA GPU: by its device, or by what built it where no device is named."""
    device = lock.launch.arguments.get("device")
    if isinstance(device, str):
        return device.startswith("cuda")
    built = any(each.architectures for each in lock.components)
    return lock.hardware is not None or lock.toolchain.driver is not None or built


def refuse_gpu(lock: Lock, *, where: str) -> None:
    """Refuse, before anything is fetched or built, a machine whose GPUs cannot run what the lock launches.

    Raises:
        ConfigurationError: names every need that fails, an older driver than the lock's floor first.
    """
    if not needs_gpu(lock):
        return
    failed = [check for check in check_gpu(lock, look()) if check.needed and check.status == "failed"]
    if failed:
        failed.sort(key=lambda check: check.id != "host.driver")
        told = [
            f"{check.id}: {check.reason}" + (f", expected {check.expected}, got {check.got}" if check.got else "")
            for check in failed
        ]
        raise ConfigurationError(
            "this machine cannot run what the lock launches", where=where, why="; ".join(told), todo=failed[0].todo
        )


def _there(lock: Lock | None, cards: Cards, *, needed: bool) -> Checked:
    """As many as the lock counts."""
    count = lock.hardware.count if lock is not None and lock.hardware is not None else 1
    expected = f"{count} GPU{'s' if count > 1 else ''}" if needed else ""
    got = "; ".join(_shown(card) for card in cards.found)
    enough = len(cards.found) >= count
    if lock is not None and lock.launch.arguments.get("device") == "cpu":
        return Checked(id="host.gpu", status="skipped", got=got, reason="the lock's launch runs on the CPU")
    if not needed:
        reason = _NO_LOCK if lock is None else "the lock names no NVIDIA GPU"
        reason = reason if cards.found else f"{reason}; {cards.fault}"
        return Checked(id="host.gpu", status="skipped", got=got, reason=reason)
    reason = cards.fault or f"{len(cards.found)} of {count} GPUs are here"
    return Checked(
        id="host.gpu",
        status="passed" if enough else "failed",
        needed=True,
        expected=expected,
        got=got,
        reason="" if enough else reason,
        todo="" if enough else "install the NVIDIA driver, give the container its GPUs, or use a machine that has them",
    )


def _shown(card: Card) -> str:
    known = [card.name]
    if card.memory_bytes is not None:
        known.append(f"{card.memory_bytes} bytes")
    if card.compute_capability is not None:
        known.append(f"compute capability {card.compute_capability}")
    if card.driver is not None:
        known.append(f"driver {card.driver}")
    return ", ".join(known)


def _without(ident: str, lock: Lock | None, cards: Cards, *, stated: object) -> Checked | None:
    """Why a check cannot be made; None where it can."""
    if lock is None:
        return Checked(id=ident, status="skipped", reason=_NO_LOCK)
    if stated is None:
        return Checked(id=ident, status="skipped", reason="the lock does not state it")
    if stated == _UNKNOWN:
        return Checked(id=ident, status="unknown", reason="the lock says that it is unknown")
    if not cards.found:
        return Checked(id=ident, status="skipped", expected=str(stated), reason=_NO_GPU)
    return None


def _hardware(lock: Lock | None) -> Hardware | None:
    return lock.hardware if lock is not None else None


def _model(lock: Lock | None, cards: Cards) -> Checked:
    """The numbers of a lock were taken on one model; another one may serve, and its numbers are other ones."""
    ident, hardware = "host.gpu.model", _hardware(lock)
    wanted = hardware.gpu if hardware is not None else None
    if (without := _without(ident, lock, cards, stated=wanted)) is not None or wanted is None:
        return without or Checked(id=ident, status="skipped")
    names = sorted({card.name for card in cards.found})
    same = names == [wanted]
    return Checked(
        id=ident,
        status="passed" if same else "failed",
        expected=wanted,
        got=", ".join(names),
        reason="" if same else "another model: numbers that are measured here are not those of the lock",
        todo="" if same else "set no numbers of this machine against the lock's",
    )


def _capability(lock: Lock | None, cards: Cards) -> Checked:
    ident, hardware = "host.gpu.compute_capability", _hardware(lock)
    wanted = hardware.compute_capability if hardware is not None else None
    if (without := _without(ident, lock, cards, stated=wanted)) is not None or wanted is None:
        return without or Checked(id=ident, status="skipped")
    there = sorted({card.compute_capability or _UNKNOWN for card in cards.found})
    if _UNKNOWN in there:
        return Checked(id=ident, status="unknown", needed=True, expected=wanted, reason="the driver does not say it")
    same = there == [wanted]
    return Checked(
        id=ident,
        status="passed" if same else "failed",
        needed=True,
        expected=wanted,
        got=", ".join(there),
        reason="" if same else "kernels that were built for one compute capability do not run on another",
        todo="" if same else f"use a GPU of compute capability {wanted}, or lock and build for this one",
    )


def _memory(lock: Lock | None, cards: Cards) -> Checked:
    """Each GPU has what the lock says, and all together more than the weights take."""
    ident, hardware = "host.gpu.memory", _hardware(lock)
    stated = hardware.memory_gb if hardware is not None else None
    if (without := _without(ident, lock, cards, stated=stated)) is not None or lock is None or stated is None:
        return without or Checked(id=ident, status="skipped")
    wanted = int(stated * 10**9)
    sizes = [card.memory_bytes for card in cards.found if card.memory_bytes is not None]
    if len(sizes) < len(cards.found):
        return Checked(id=ident, status="unknown", needed=True, reason="the driver does not say how much there is")
    weights = sum(file.size for checkpoint in lock.checkpoints for file in checkpoint.listed)
    enough = min(sizes) >= wanted * (1 - _ROUNDED)
    fits = enough and sum(sizes) > weights
    less = "the weights alone do not fit" if enough else "less than the lock's GPU has"
    return Checked(
        id=ident,
        status="passed" if fits else "failed",
        needed=True,
        expected=f"{wanted} bytes each, and more than the {weights} bytes of the checkpoints",
        got=", ".join(f"{size} bytes" for size in sizes),
        reason="" if fits else less,
        todo="" if fits else "use a GPU with as much memory",
    )


def _driver(lock: Lock | None, cards: Cards, *, needed: bool) -> Checked:
    """The driver is not older than the lock's floor: what newer toolchains compile does not load on older drivers."""
    ident = "host.driver"
    floor = lock.toolchain.driver if lock is not None else None
    if (without := _without(ident, lock, cards, stated=floor)) is not None or floor is None:
        return without or Checked(id=ident, status="skipped")
    there = sorted({card.driver or _UNKNOWN for card in cards.found})
    wanted = version_of(floor)
    have = [version_of(each) for each in there]
    if wanted is None or None in have:
        why = "the driver does not say its version" if wanted is not None else f"{floor!r} is no version of a driver"
        return Checked(id=ident, status="unknown", needed=needed, expected=f"{floor} or later", reason=why)
    fits = all(each is not None and each >= wanted for each in have)
    return Checked(
        id=ident,
        status="passed" if fits else "failed",
        needed=needed,
        expected=f"{floor} or later",
        got=", ".join(there),
        reason="" if fits else "the driver is older than what the toolchain's code needs",
        todo="" if fits else f"install driver {floor} or a later one",
    )


def version_of(text: str) -> tuple[int, ...] | None:
    """The numbers of a version, without zeros at its end; None where it is none."""
    if not re.match(r"^[0-9]{1,9}(\.[0-9]{1,9}){0,5}$", text):
        return None
    numbers = [int(part) for part in text.split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _power(lock: Lock | None, cards: Cards) -> Checked:
    """The limit that holds, read back: one that was asked for and not taken changes every number."""
    ident, hardware = "host.gpu.power_limit", _hardware(lock)
    wanted = hardware.power_limit_w if hardware is not None else None
    limits = [(card.power_requested_w, card.power_enforced_w) for card in cards.found]
    got = ", ".join(f"{_watts(asked)} set, {_watts(holds)} holds" for asked, holds in limits)
    if (without := _without(ident, lock, cards, stated=wanted)) is not None or wanted is None:
        found = without or Checked(id=ident, status="skipped")
        return found.model_copy(update={"got": got})
    if any(holds is None for _, holds in limits):
        why = "the driver does not say which limit holds"
        return Checked(id=ident, status="unknown", expected=_watts(wanted), got=got, reason=why)
    same = all(holds is not None and abs(holds - wanted) < _WATTS for _, holds in limits)
    taken = all(asked is None or abs(asked - wanted) < _WATTS for asked, _ in limits)
    why = "it was set, and another limit holds" if taken else "another limit is set"
    return Checked(
        id=ident,
        status="passed" if same else "failed",
        expected=_watts(wanted),
        got=got,
        reason="" if same else f"{why}: numbers that are measured here are not those of the lock",
        todo="" if same else f"`nvidia-smi -pl {wanted:g}` sets it, as root",
    )


def _watts(value: float | None) -> str:
    return "unknown" if value is None else f"{value:g} W"


def _throttle(cards: Cards) -> Checked:
    """Nothing slows the cards down now: too hot, or too little power from outside."""
    ident = "host.gpu.throttle"
    if not cards.found:
        return Checked(id=ident, status="skipped", reason=_NO_GPU)
    known = [card.reasons for card in cards.found if card.reasons is not None]
    if len(known) < len(cards.found):
        return Checked(id=ident, status="unknown", reason="the driver does not say why clocks are low")
    seen = sorted({reason for reasons in known for reason in reasons})
    slow = [reason for reason in seen if reason in THROTTLED]
    return Checked(
        id=ident,
        status="failed" if slow else "passed",
        expected="nothing slows the GPU down",
        got=", ".join(seen) or "no reason",
        reason=f"the GPU is slowed down now: {', '.join(slow)}" if slow else "",
        todo="cool it, or give it the power it needs, before anything is measured" if slow else "",
    )

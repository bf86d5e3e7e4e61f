"""What ends the way to a lock, fact by fact, and the error that carries them all."""

from dataclasses import dataclass
from typing import Literal

from reproducer.errors import InvalidDocumentError, NotCheckedError, PennyError

Kind = Literal["unknown", "reference", "repository", "hub", "index", "file", "refused"]
_NOT_MISSING = ("file", "refused")


@dataclass(frozen=True)
class Missing:
    """One fact that a lock lacks.

    Attributes:
        key: in the manifest.
        line: in the manifest; None where the key does not stand in it.
        kind: nobody wrote it down, or who alone could say it; a file that is not there; or what is refused whoever says
            what.
        why: for a person.
        needed: whether there is no lock without it; the others go into the lock as `unknown`.
    """

    key: str
    line: int | None
    kind: Kind
    why: str
    needed: bool = True

    def __str__(self) -> str:
        place = f"line {self.line}, key {self.key}" if self.line else f"key {self.key}"
        return f"{place}: {self.why}"


class FactsError(PennyError):
    """A manifest that there is no lock of.

    Attributes:
        missing: everything that ends the way to a lock, and what a lock may carry as `unknown`.
    """

    def __init__(self, missing: tuple[Missing, ...], *, where: str) -> None:
        needed = [each for each in missing if each.needed]
        super().__init__(_count(needed), where=where, why="; ".join(map(str, needed)), todo=_todo(needed))
        self.missing = missing

    @property
    def reasons(self) -> tuple[str, ...]:
        """One sentence for each."""
        return tuple(map(str, self.missing))


class MissingFactsError(FactsError, NotCheckedError):
    """Facts are missing without which there is no lock; what is refused besides stands among them."""


class RefusedFactsError(FactsError, InvalidDocumentError):
    """Nothing is missing, and several things are asked for that no lock or launch can give."""


def _count(needed: list[Missing]) -> str:
    """What ends the way to a lock, in one clause."""
    missing = sum(each.kind not in _NOT_MISSING for each in needed)
    refused = len(needed) - missing
    said = []
    if missing:
        said.append(f"{'1 fact is' if missing == 1 else f'{missing} facts are'} missing without which there is no lock")
    if refused:
        said.append(
            f"{'1 thing is' if refused == 1 else f'{refused} things are'} asked for that no lock or launch gives"
        )
    return ", and ".join(said)


def _todo(needed: list[Missing]) -> str:
    steps = []
    if any(each.kind == "unknown" for each in needed):
        steps.append("write into the manifest what you learn of them")
    if any(each.kind not in ("unknown", *_NOT_MISSING) for each in needed):
        steps.append("run without --offline where a network would tell")
    if any(each.kind in _NOT_MISSING for each in needed):
        steps.append("correct what is refused")
    return ", and ".join(steps)

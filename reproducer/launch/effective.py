"""The effective values of the live server against those of the lock."""

from collections.abc import Mapping

from reproducer.documents.base import shown
from reproducer.documents.lock import Scalar
from reproducer.documents.receipts import EffectiveValue
from reproducer.engines.interface import Observed, same
from reproducer.errors import ConfigurationError


class EffectiveDifferenceError(ConfigurationError):
    """The server runs with other effective values than the lock says.

    Attributes:
        differences: every value that differs.
    """

    def __init__(self, differences: tuple[EffectiveValue, ...], *, where: str) -> None:
        listed = "; ".join(
            f"{each.name}: expected {shown(each.expected)}, got "
            + ("nothing" if each.got is None else f"{shown(each.got)} ({each.source})")
            for each in differences
        )
        number = "1 effective value differs" if len(differences) == 1 else f"{len(differences)} effective values differ"
        super().__init__(
            f"{number} from the lock",
            where=where,
            why=listed,
            todo="the server was stopped before any traffic; run `penny lock` if the change is meant",
        )
        self.differences = differences


def compared(expected: Mapping[str, Scalar], observed: Mapping[str, Observed]) -> tuple[EffectiveValue, ...]:
    """Every effective value of the lock beside what the server shows; one that is not shown does not agree."""
    values = []
    for name, value in sorted(expected.items()):
        seen = observed.get(name)
        got = seen.value if seen is not None else None
        source = seen.source if seen is not None else "server_info"
        values.append(EffectiveValue(name=name, expected=value, got=got, source=source, agrees=same(value, got)))
    return tuple(values)


def check(values: tuple[EffectiveValue, ...], *, where: str) -> None:
    """Refuse a server whose effective values are not the lock's.

    Raises:
        EffectiveDifferenceError: at least one differs; names them all.
    """
    differences = tuple(value for value in values if not value.agrees)
    if differences:
        raise EffectiveDifferenceError(differences, where=where)

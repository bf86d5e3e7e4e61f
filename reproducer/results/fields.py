"""Which fields of a file were taken: whatever nobody took is named, so that nothing is dropped silently."""

import math
import re
from collections.abc import Iterator
from typing import Any

from reproducer.documents.base import shown
from reproducer.documents.imported import MOST_QUANTITIES, MOST_RUNS, MOST_UNMAPPED, Unmapped
from reproducer.errors import InvalidDocumentError
from reproducer.results.reading import NotFinite

Place = tuple[str | int, ...]
_PLAIN = re.compile(r"[A-Za-z0-9_./%,@-]{1,80}")
_LARGEST = 2**53 - 1
_LATEST_NS = 2**63 - 1
_LONGEST = 900  # a label holds 1024, with room for indexes


class Fields:
    """Plain data of one file, and what of it was taken."""

    def __init__(self, data: Any, *, where: str) -> None:
        self._data = data
        self._where = where
        self._taken: set[Place] = set()
        self._why: dict[Place, str] = {}
        self._runs = 0
        self._quantities = 0

    def begin(self) -> None:
        """Say that a run begins.

        Raises:
            InvalidDocumentError: one more than a document holds.
        """
        self._runs += 1
        if self._runs > MOST_RUNS:
            raise InvalidDocumentError(f"holds more than {MOST_RUNS} runs", where=self._where)

    def mapped(self) -> None:
        """Say that a number was mapped.

        Raises:
            InvalidDocumentError: one more than a document holds.
        """
        self._quantities += 1
        if self._quantities > MOST_QUANTITIES:
            raise InvalidDocumentError(f"holds more than {MOST_QUANTITIES} numbers", where=self._where)

    def at(self, *place: str | int) -> Any:
        """What stands at a place, without taking it; None where nothing does."""
        found = self._data
        for part in place:
            if isinstance(found, dict) and isinstance(part, str):
                found = found.get(part)
            elif isinstance(found, list) and isinstance(part, int) and 0 <= part < len(found):
                found = found[part]
            else:
                return None
        return found

    def take(self, *place: str | int) -> Any:
        """What stands at a place, with everything in it; from now on it is mapped."""
        found = self.at(*place)
        if found is not None:
            self._taken.add(place)
            self._why.pop(place, None)
        return found

    def leave(self, *place: str | int, why: str) -> None:
        """Say why what stands at a place is not mapped."""
        if self.at(*place) is not None:
            self._taken.discard(place)
            self._why[place] = why

    def rows(self, *place: str | int) -> list[Any]:
        """A list without taking it; empty where there is none."""
        found = self.at(*place)
        return found if isinstance(found, list) else []

    def table(self, *place: str | int) -> dict[str, Any]:
        """An object without taking it; empty where there is none."""
        found = self.at(*place)
        return found if isinstance(found, dict) else {}

    def text(self, *place: str | int) -> str | None:
        """Text that is taken; None where there is none."""
        found = self.at(*place)
        if not isinstance(found, str) or isinstance(found, NotFinite):
            return None
        return str(self.take(*place))

    def number(self, *place: str | int, signed: bool = False) -> float | None:
        """A finite number that is taken; None where there is none, and then it is said why.

        Raises:
            InvalidDocumentError: a negative one where only a time or a number of things can stand, or one that no
                clock or counter reaches.
        """
        found = self.at(*place)
        if found is None:
            return None
        if isinstance(found, NotFinite):
            self.leave(*place, why=f"is {found}")
            return None
        if isinstance(found, bool) or not isinstance(found, int | float):
            self.leave(*place, why="is no number")
            return None
        if isinstance(found, float) and not math.isfinite(found):
            self.leave(*place, why="is too large for a number")
            return None
        if not signed and (found < 0 or found > _LARGEST):
            fault = "is negative" if found < 0 else "is larger than any clock or counter"
            raise InvalidDocumentError(f"{written(place)} {fault}", where=self._where)
        if abs(found) > _LARGEST:
            self.leave(*place, why="is too large for a number")
            return None
        self.take(*place)
        return float(found)

    def whole(self, *place: str | int) -> int | None:
        """A number of things that is taken; None where there is none. Raises as `number` does."""
        found = self.number(*place)
        if found is None:
            return None
        if not found.is_integer():
            self.leave(*place, why="is no whole number")
            return None
        return int(found)

    def clock(self, *place: str | int) -> int | None:
        """Nanoseconds since 1970 to the last digit, taken; None where there is no whole number.

        Raises:
            InvalidDocumentError: a number that no clock shows.
        """
        found = self.at(*place)
        if isinstance(found, bool) or not isinstance(found, int):
            return None
        if not 0 <= found <= _LATEST_NS:
            fault = "is negative" if found < 0 else "is larger than any clock or counter"
            raise InvalidDocumentError(f"{written(place)} {fault}", where=self._where)
        self.take(*place)
        return found

    def unmapped(self) -> tuple[Unmapped, ...]:
        """Every field that nobody took, by path.

        Raises:
            InvalidDocumentError: more of them than a document holds.
        """
        found: dict[tuple[str, str], int] = {}
        for pattern, why, count in self._left():
            found[pattern, why] = found.get((pattern, why), 0) + count
            if len(found) > MOST_UNMAPPED:
                raise InvalidDocumentError(
                    f"has more than {MOST_UNMAPPED} different fields without a place", where=self._where
                )
        return tuple(Unmapped(field=field, count=count, why=why) for (field, why), count in sorted(found.items()))

    def _left(self) -> Iterator[tuple[str, str, int]]:
        above = {place[:length] for place in (*self._taken, *self._why) for length in range(len(place))}
        waiting: list[tuple[Place, str, str, Any]] = [((), "", "", self._data)]
        while waiting:
            place, pattern, why, value = waiting.pop()
            if place in self._taken:
                continue
            why = self._why.get(place, why)
            if place in self._why and place not in above and isinstance(value, dict | list):
                yield pattern, why, _leaves(value)  # one reason for all of it
            elif isinstance(value, dict) and value:
                waiting += [((*place, key), _joined(pattern, key), why, inner) for key, inner in value.items()]
            elif isinstance(value, list) and value:
                judged = place in above
                plain = 0
                for at, inner in enumerate(value):
                    if judged or isinstance(inner, dict | list):
                        waiting.append(((*place, at), f"{pattern}[]", why, inner))
                    else:
                        plain += 1
                if plain:
                    yield f"{pattern}[]", why, plain
            else:
                yield pattern or "(all of it)", why, 1


def _leaves(data: Any) -> int:
    """How many values stand in nested data; what is empty counts as one."""
    found, waiting = 0, [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list) and value:
            waiting += value.values() if isinstance(value, dict) else value
        else:
            found += 1
    return found


def written(place: Place) -> str:
    """A place as documents and errors name it: `benchmarks[0].duration`."""
    text = ""
    for part in place:
        text = f"{text}[{part}]" if isinstance(part, int) else _joined(text, part)
    return text


def _joined(before: str, key: str) -> str:
    name = key if _PLAIN.fullmatch(key) else shown(key)
    text = f"{before}.{name}" if before else name
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

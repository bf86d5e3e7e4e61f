"""Making one run of an imported result: each number with the field it comes from, or the reason why it has no place."""

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from reproducer.documents.imported import (
    MOST_REQUESTS,
    ImportedAnswer,
    ImportedConditions,
    ImportedQuantity,
    ImportedRequest,
    ImportedRun,
    ImportedUnit,
)
from reproducer.errors import InvalidDocumentError
from reproducer.measures.quantities import CompletedRequestRate
from reproducer.results.fields import Fields, Place, written

if TYPE_CHECKING:
    from reproducer.documents.lock import Scalar

UNKNOWN_OF_SPEED = (
    "the lock, the build and the arguments of the server",
    "host, GPUs, power limits, clocks and other load on the machine",
    "how many boots of the server, and whether they agree",
    "what was in the prefix cache",
    "whether the output is right",
)
UNKNOWN_OF_SCORES = (
    "the lock, the build and the arguments of the server",
    "whether all answers came from one boot of the server",
    "the chat template that the server applied",
)
_MS = 1000
_NS = 1_000_000_000
_LONGEST = 512
_LONGEST_TIME_S = 2**53 // _NS


class Making:
    """One run while it is read."""

    def __init__(self, fields: Fields, place: Place, *, name: str, unknown: Sequence[str], where: str) -> None:
        self.fields = fields
        self.place = place
        self.name = name
        self._unknown = tuple(unknown)
        self._where = where
        self._quantities: list[ImportedQuantity] = []
        self._known: dict[str, Scalar] = {}
        self._notes: list[str] = []
        self.requests: list[ImportedRequest] = []
        self.answers: list[ImportedAnswer] = []
        fields.begin()

    def at(self, *below: str | int) -> Any:
        """What stands below this run's place, without taking it."""
        return self.fields.at(*self.place, *below)

    def leave(self, *below: str | int, why: str) -> None:
        """Say why a field of this run is not mapped."""
        self.fields.leave(*self.place, *below, why=why)

    def note(self, text: str) -> None:
        """What could not be computed."""
        self._notes.append(text)

    def duration(self, *below: str | int, name: str, statistic: str, how: str, ms: bool = False) -> None:
        """A time as the file states it; raises as `Fields.number` does."""
        if (value := self.fields.number(*self.place, *below)) is not None:
            self._stated(
                below,
                value / _MS if ms else value,
                name=name,
                kind="duration",
                unit="s",
                statistic=statistic,
                how=how,
            )

    def count(self, *below: str | int, name: str, unit: ImportedUnit, how: str, statistic: str = "total") -> None:
        """A number of things as the file states it; raises as `Fields.number` does."""
        if (value := self.fields.number(*self.place, *below)) is not None:
            self._stated(below, value, name=name, kind="count", unit=unit, statistic=statistic, how=how)

    def makespan_rate(self, *below: str | int, name: str, how: str, together: str | None) -> None:
        """A rate over all requests; `together` says why they are not known to have been released together."""
        if together is not None:
            self.leave(*below, why=f"no aggregate makespan rate: {together}")
        elif (value := self.fields.number(*self.place, *below)) is not None:
            self._stated(
                below, value, name=name, kind="aggregate makespan rate", unit="tok/s", statistic="total", how=how
            )

    def score(self, *below: str | int, name: str, statistic: str, how: str) -> None:
        """What a scorer gave, in its own scale."""
        if (value := self.fields.number(*self.place, *below, signed=True)) is not None:
            self._stated(below, value, name=name, kind="score", unit="points", statistic=statistic, how=how)

    def computed(self, quantity: ImportedQuantity) -> None:
        """A number that was computed from requests."""
        self._quantities.append(quantity)

    def condition(self, *below: str | int) -> None:
        """A condition as the file states it; what must not be copied or is no plain value has no place."""
        value = self.fields.at(*self.place, *below)
        if value is None or isinstance(value, dict | list):
            return
        if why := _unfit(value):
            self.leave(*below, why=why)
            return
        self.fields.take(*self.place, *below)
        self._known[written(below)] = str(value) if isinstance(value, str) else value

    def seconds(self, *below: str | int, ms: bool = False) -> int | None:
        """A time of one request in nanoseconds, taken; raises as `Fields.number` does, and for one without end."""
        value = self.fields.number(*self.place, *below)
        if value is None:
            return None
        return self.nanoseconds(value / _MS if ms else value, *below)

    def nanoseconds(self, seconds: float, *below: str | int) -> int:
        """Seconds as nanoseconds.

        Raises:
            InvalidDocumentError: negative, or longer than a document holds.
        """
        if not 0 <= seconds < _LONGEST_TIME_S:
            field = written((*self.place, *below))
            raise InvalidDocumentError(f"{field} is no time of a request", where=self._where, why=f"{seconds} s")
        return round(seconds * _NS)

    def done(self) -> ImportedRun:
        """The run, with what follows from its requests."""
        self._completed_rate()
        requests, answers = tuple(self.requests), tuple(self.answers)
        for what, found in (("requests", requests), ("answers", answers)):
            if len(found) > MOST_REQUESTS:
                self._notes.append(f"its {len(found)} {what} are more than {MOST_REQUESTS}; they stand in the original")
        requests = () if len(requests) > MOST_REQUESTS else requests
        answers = () if len(answers) > MOST_REQUESTS else answers
        return ImportedRun(
            place=self.name,
            quantities=tuple(self._quantities),
            requests=requests,
            answers=answers,
            conditions=ImportedConditions(known=self._known, unknown=self._unknown),
            notes=tuple(self._notes),
        )

    def _stated(self, below: Place, value: float, **of: Any) -> None:
        if any((each.name, each.statistic) == (of["name"], of["statistic"]) for each in self._quantities):
            self.leave(*below, why="another number of this name stands before it")
            return
        self.fields.mapped()
        field = written((*self.place, *below))
        self._quantities.append(ImportedQuantity(value=value, origin="stated", fields=(field,), **of))

    def _completed_rate(self) -> None:
        """Rates of completed requests, where for each it is established what came after its first chunk."""
        done = [each for each in self.requests if not each.failed and not each.warmup and (each.output_tokens or 0) > 1]
        if not done:
            return
        rates = [_rate(each) for each in done]
        values = tuple(rate.value for rate in rates if rate is not None)
        if len(values) != len(done):
            missing = len(done) - len(values)
            self._notes.append(
                f"no completed-request rate: for {missing} of {len(done)} requests the file does not establish how "
                "many tokens came after the first chunk, or when"
            )
            return
        self._quantities.append(
            ImportedQuantity(
                name="completed_request_rate",
                kind="completed-request rate",
                unit="tok/s",
                statistic="median",
                value=median(values),
                origin="computed",
                fields=(f"{self.name}: requests",),
                how="tokens of each completed request after its first chunk over the time from that chunk to its last",
                values=values,
            )
        )


def _rate(request: ImportedRequest) -> CompletedRequestRate | None:
    if request.tokens_after_first is None or request.first_ns is None or request.last_ns is None:
        return None
    return CompletedRequestRate.over(request.tokens_after_first, request.last_ns - request.first_ns)


def _unfit(value: object) -> str:
    """Why a value cannot stand among known conditions; empty where it can."""
    from reproducer.sanitize.text import Machine, leaks

    if isinstance(value, str):
        if len(value) > _LONGEST or not value.isprintable():
            return "is long or no plain text"
        if found := leaks({"value": value}, where="", machine=Machine.here()):
            return f"holds {found[0].what}"
    elif isinstance(value, int | float) and not abs(value) < 2**53:
        return "is too large for a number"
    return ""

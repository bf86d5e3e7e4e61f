"""The numbers of a file, read by themselves before and after: equal, or nothing is written.

The reading knows nothing of what was taken out. Of a log it takes the lines in which engines report what they measured,
of a document every number under its field, of a table every numeric cell under its column.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from reproducer.sanitize.jsontext import Spelt, hides_number, is_own, parsed
from reproducer.sanitize.tables import Columns

_STAMPS = (
    r"^(?:\x1b\[[0-9;]{0,20}m)?(?:\([^)\n]{0,80}\) ?)?"
    r"(?:\[[^\]\n]{0,80}\] ?|[A-Z]{4,8} [0-9: .-]{8,30} (?:\[[^\]\n]{0,80}\] )?){0,3}"
)
_REPORTS = re.compile(
    rf"{_STAMPS}(?P<what>Decode batch|Prefill batch|Req ?Time ?Stats|Engine [0-9]{{1,4}}: Avg|Avg prompt throughput"
    r"|Load weight|KV Cache is allocated|Memory pool end|max_total_num_tokens|Capture |SpecDecoding metrics"
    r"|GPU KV cache|Maximum concurrency|Engine startup|Mamba Cache|init engine|Loading weights took|Model loading took)"
)
_NUMBER = re.compile(r"(?<![\w.])[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_IDENTIFIER = re.compile(r"rids?=[^,)\n]*")
_CELL = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


@dataclass
class Numbers:
    """How many numbers a file holds, and a digest over them in their order, each with its name."""

    count: int = 0
    _hash: Any = field(default_factory=hashlib.sha256)

    @property
    def digest(self) -> str:
        """Hex sha256 over the numbers so far."""
        found: str = self._hash.hexdigest()
        return found

    def add(self, name: str, number: str) -> None:
        """Count one number."""
        self.count += 1
        self._hash.update(f"{name}\0{number}\n".encode("utf-8", "surrogatepass"))

    def same_as(self, other: "Numbers") -> bool:
        """Whether both hold the same numbers in the same order."""
        return (self.count, self.digest) == (other.count, other.digest)

    def lines(self, text: str) -> None:
        """The numbers that engines report in lines of a log."""
        for line in text.splitlines():
            report = _REPORTS.match(line)
            if report is not None:
                for number in _NUMBER.finditer(_IDENTIFIER.sub("", line[report.end() :])):
                    self.add(report["what"], number[0])

    def line(self, text: str) -> None:
        """The numbers of a line that is a document, or one of a log."""
        if parsed(text) is None:
            self.lines(text)
        else:
            self.document(text)

    def document(self, text: str) -> None:
        """The numbers of a JSON document."""
        data = parsed(text)
        own = is_own(data)
        pending: list[tuple[str, Any]] = [("", data)]
        while pending:
            name, value = pending.pop()
            if isinstance(value, Spelt):
                if not hides_number(name, own=own):
                    self.add(name, value)
            elif isinstance(value, dict):
                pending += reversed([(key, inner) for key, inner in value.items()])
            elif isinstance(value, list):
                pending += reversed([(name, inner) for inner in value])

    def records(self, found: Iterable[str], columns: Columns) -> None:
        """The numbers of a table's records."""
        for record in found:
            for index, cell in enumerate(columns.cells(record)):
                if _CELL.fullmatch(cell.strip()) and not columns.hides_number(index):
                    self.add(str(index), cell.strip())

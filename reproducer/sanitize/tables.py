"""Tables of separated values: rows that need no change keep their bytes."""

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from reproducer.errors import NotCheckedError
from reproducer.sanitize.identifiers import is_identifier_name, pseudonym
from reproducer.sanitize.jsontext import hides_number, holds_text
from reproducer.sanitize.kinds import Tally, is_placeholder
from reproducer.sanitize.named import is_secret_name, is_secret_value
from reproducer.sanitize.names import is_name, is_name_field
from reproducer.sanitize.scrubbing import Run, Scrubber

Role = Literal["secret", "text", "request", "name", "other"]
LONGEST_RECORD = 16 << 20


@dataclass(frozen=True)
class Columns:
    """What the columns of a table hold, by its header."""

    delimiter: str
    names: tuple[str, ...]

    @classmethod
    def of(cls, header: str, suffix: str) -> "Columns":
        """The columns of a table whose first record this is."""
        delimiter = "\t" if suffix == ".tsv" else max(",;\t|", key=lambda each: (header.count(each), each == ","))
        return cls(delimiter, tuple(name.strip() for name in _cells(header, delimiter)))

    def cells(self, record: str) -> list[str]:
        """The cells of one record."""
        return _cells(record, self.delimiter)

    def name(self, index: int) -> str:
        """The name of a column; empty where the header has none."""
        return self.names[index] if index < len(self.names) else ""

    def role(self, index: int) -> Role:
        """What a column holds."""
        name = self.name(index)
        if is_secret_name(name):
            return "secret"
        if is_identifier_name(name):
            return "request"
        if holds_text(name):
            return "text"
        return "name" if is_name_field(name) else "other"

    def hides_number(self, index: int) -> bool:
        """Whether numbers of a column are secrets or parts of texts."""
        return self.role(index) in {"text", "request"} or hides_number(self.name(index), own=False)


def records(lines: Iterable[str], *, where: str) -> Iterator[str]:
    """The records of a table with their line ends; one may go over several lines.

    Raises:
        NotCheckedError: a record is too long, as where a quote is never closed.
    """
    held: list[str] = []
    size = quotes = 0
    for line in lines:
        held.append(line)
        size += len(line)
        quotes += line.count('"')
        if quotes % 2 == 0:
            yield "".join(held)
            held, size, quotes = [], 0, 0
        elif size > LONGEST_RECORD:
            raise NotCheckedError(
                f"a record is longer than {LONGEST_RECORD} characters", where=where, why="a quote is never closed"
            )
    if held:
        yield "".join(held)


def _cells(record: str, delimiter: str) -> list[str]:
    """The cells of one record."""
    csv.field_size_limit(LONGEST_RECORD * 2)
    rows = list(csv.reader(io.StringIO(record, newline=""), delimiter=delimiter))
    return [cell for row in rows for cell in row]


class Table:
    """Sanitises one table, record by record."""

    def __init__(self, run: Run, tally: Tally, columns: Columns) -> None:
        self._run = run
        self._tally = tally
        self._columns = columns
        self._scrubber = Scrubber(run, tally)

    def header(self, record: str) -> str:
        """The first record: what a column is called may name somebody too."""
        return self._record(record, [self._scrubber.clean(cell) for cell in self._columns.cells(record)])

    def clean(self, record: str) -> str:
        """A record without what must stay."""
        return self._record(record, [self._cell(*each) for each in enumerate(self._columns.cells(record))])

    def _record(self, record: str, cells: list[str]) -> str:
        if cells == self._columns.cells(record):
            return record
        written = io.StringIO(newline="")
        ending = record[len(record.rstrip("\r\n")) :]
        csv.writer(written, delimiter=self._columns.delimiter, lineterminator=ending).writerow(cells)
        return written.getvalue()

    def _cell(self, index: int, cell: str) -> str:
        if not cell or is_placeholder(cell):
            return cell
        role = self._columns.role(index)
        if role == "secret" and is_secret_value(self._columns.name(index), cell):
            return self._tally.take("secret")
        if role == "request":
            return pseudonym(cell, self._run.pseudonyms, self._tally)
        if role == "text":
            return self._tally.take("text")
        if role == "name" and is_name(cell):
            return self._tally.take("name")
        return self._scrubber.clean(cell)

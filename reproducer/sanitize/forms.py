"""What forms of files there are, and how each is read, sanitised and measured piece by piece."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from reproducer.errors import NotCheckedError
from reproducer.sanitize.jsontext import JsonText, is_own, parsed, strings
from reproducer.sanitize.kinds import Tally
from reproducer.sanitize.measured import Numbers
from reproducer.sanitize.names import is_name_field
from reproducer.sanitize.scrubbing import Run, Scrubber
from reproducer.sanitize.sources import Source, blocks, lines, opened
from reproducer.sanitize.tables import Columns, Table, records

Form = Literal["log", "document", "documents", "table"]
_LARGEST_DOCUMENT = 64 << 20
_TABLES = frozenset({".csv", ".tsv"})
_MARK = "\ufeff"


def form_of(source: Source) -> Form:
    """As what a file is read; one that is called a document and is none is read as a log."""
    suffix = source.path.suffix.lower()
    if suffix in _TABLES:
        return "table"
    with opened(source.path) as file:
        first = next((line for line in lines(file, where=str(source.path)) if line.strip()), "")
    if not first.lstrip(_MARK).lstrip().startswith(("{", "[")):
        return "log"
    if source.path.stat().st_size <= _LARGEST_DOCUMENT and parsed(_whole(source)) is not None:
        return "document"
    if parsed(first) is not None:
        return "documents"
    if suffix == ".json" and source.path.stat().st_size > _LARGEST_DOCUMENT:
        raise NotCheckedError(f"is a document of more than {_LARGEST_DOCUMENT} bytes", where=str(source.path))
    return "log"


def learn(source: Source, run: Run) -> None:
    """Learn the names that a file gives away."""

    def found(field: str, value: str) -> None:
        if is_name_field(field):
            run.learned.learn(f"{field}={value}")
        run.learned.learn(value)

    form = form_of(source)
    if form == "document":
        strings(parsed(_whole(source)), found)
        return
    with opened(source.path) as file:
        if form != "table":
            for block in blocks(lines(file, where=str(source.path))):
                run.learned.learn(block)
            return
        columns: Columns | None = None
        for record in records(lines(file, where=str(source.path)), where=str(source.path)):
            if columns is None:
                columns = Columns.of(record, source.path.suffix.lower())
                named = [index for index in range(len(columns.names)) if columns.role(index) == "name"]
            elif named:
                cells = columns.cells(record)
                for index in named:
                    found(columns.name(index), cells[index] if index < len(cells) else "")
            run.learned.learn(record)


def cleaned(source: Source, form: Form, run: Run, tally: Tally, numbers: Numbers) -> Iterator[tuple[str, str]]:
    """Each piece of a file with the sanitised one; the numbers of the original are read on the way."""
    if form == "document":
        text = _whole(source)
        numbers.document(text)
        yield text, JsonText(run, tally).clean(text, own=is_own(parsed(text)))
        return
    with opened(source.path) as file:
        found = lines(file, where=str(source.path))
        if form == "documents":
            yield from _documents(found, run, tally, numbers)
        elif form == "table":
            yield from _table(found, source, run, tally, numbers)
        else:
            scrubber = Scrubber(run, tally)
            for block in blocks(found):
                numbers.lines(block)
                yield block, scrubber.clean(block)


def numbers_of(path: Path, form: Form, suffix: str) -> Numbers:
    """The numbers of a file that was sanitised, read as the original was."""
    numbers = Numbers()
    source = Source(path, path.name)
    if form == "document":
        numbers.document(_whole(source))
        return numbers
    with opened(path) as file:
        found = lines(file, where=str(path))
        if form == "table":
            each = records(found, where=str(path))
            if (header := next(each, None)) is not None:
                numbers.records(each, Columns.of(header, suffix))
        elif form == "documents":
            for line in found:
                numbers.line(line)
        else:
            for block in blocks(found):
                numbers.lines(block)
    return numbers


def _documents(found: Iterable[str], run: Run, tally: Tally, numbers: Numbers) -> Iterator[tuple[str, str]]:
    """A document a line; a line that is none is one of a log."""
    documents, scrubber = JsonText(run, tally), Scrubber(run, tally)
    for line in found:
        numbers.line(line)
        data = parsed(line)
        yield line, scrubber.clean(line) if data is None else documents.clean(line, own=is_own(data))


def _table(found: Iterable[str], source: Source, run: Run, tally: Tally, numbers: Numbers) -> Iterator[tuple[str, str]]:
    each = records(found, where=str(source.path))
    header = next(each, None)
    if header is None:
        return
    columns = Columns.of(header, source.path.suffix.lower())
    table = Table(run, tally, columns)
    yield header, table.header(header)
    for record in each:
        numbers.records([record], columns)
        yield record, table.clean(record)


def _whole(source: Source) -> str:
    with opened(source.path) as file:
        return file.read(_LARGEST_DOCUMENT + 1)

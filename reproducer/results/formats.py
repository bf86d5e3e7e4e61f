"""Which harness wrote a file: known by its content alone, never by its name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from reproducer.documents.base import shown
from reproducer.documents.imported import Harness, ImportedRun, is_imported
from reproducer.errors import InvalidDocumentError, UsageError
from reproducer.results import aiperf, guidellm, inspect_log, lm_eval, sglang, vllm
from reproducer.results.fields import Fields, Place
from reproducer.results.log_archive import HEADER, SUMMARIES, is_archive, read_log
from reproducer.results.reading import parse_documents

Format = Literal["sglang", "vllm", "guidellm", "aiperf", "lm-eval", "inspect"]
FORMATS: tuple[Format, ...] = get_args(Format)


@dataclass(frozen=True)
class Known:
    """One format.

    Attributes:
        is_it: whether objects look like it.
        version: where the file says which version of the harness wrote it; None where none does.
        file_version: where it says the version of its format, and which of them are known.
    """

    harness: Harness
    read_in: str
    is_it: Callable[[list[dict[str, Any]]], bool]
    read: Callable[..., tuple[ImportedRun, ...]]
    version: Place | None = None
    file_version: Place | None = None
    file_versions: frozenset[int] | frozenset[str] = frozenset()


KNOWN: dict[Format, Known] = {
    "sglang": Known("sglang.bench_serving", sglang.READ_IN, sglang.is_sglang, sglang.read_sglang),
    "vllm": Known("vllm bench serve", vllm.READ_IN, vllm.is_vllm, vllm.read_vllm),
    "guidellm": Known(
        "guidellm",
        guidellm.READ_IN,
        guidellm.is_guidellm,
        guidellm.read_guidellm,
        ("metadata", "guidellm_version"),
        ("metadata", "version"),
        guidellm.FILE_VERSIONS,
    ),
    "aiperf": Known(
        "aiperf",
        aiperf.READ_IN,
        aiperf.is_aiperf,
        aiperf.read_aiperf,
        ("aiperf_version",),
        ("schema_version",),
        aiperf.FILE_VERSIONS,
    ),
    "lm-eval": Known(
        "lm-evaluation-harness", lm_eval.READ_IN, lm_eval.is_lm_eval, lm_eval.read_lm_eval, ("lm_eval_version",)
    ),
    "inspect": Known(
        "inspect_ai",
        inspect_log.READ_IN,
        inspect_log.is_inspect,
        inspect_log.read_inspect,
        ("eval", "packages", "inspect_ai"),
        ("version",),
        inspect_log.FILE_VERSIONS,
    ),
}


@dataclass(frozen=True)
class Mapped:
    """What a file gave, and what of it has no place.

    Attributes:
        suffix: what the name of such a file ends in.
    """

    known: Known
    suffix: Literal[".json", ".jsonl", ".eval"]
    harness_version: str
    file_version: str
    runs: tuple[ImportedRun, ...]
    fields: Fields


def map_result(data: bytes, chosen: Format | None, *, where: str) -> Mapped:
    """The runs in a file.

    Args:
        data: the file.
        chosen: which format it is of; None to know it by its content.
        where: the file, for errors.

    Raises:
        InvalidDocumentError: of no known format, of a version of it that is not known, or malformed.
        UsageError: it looks like several formats, and nobody chose.
        UnsafeInputError: an archive that tries to leave its folder.
    """
    if is_archive(data):
        if chosen not in (None, "inspect"):
            raise InvalidDocumentError(f"is no result of {chosen}", where=where, why="it is a zip archive")
        return _archive(data, where=where)
    documents = parse_documents(data, where=where)
    name = _detected(documents, chosen, where=where)
    known = KNOWN[name]
    single = len(documents) == 1
    fields = Fields(documents[0] if single else documents, where=where)
    harness_version, file_version = _versions(fields, known, (), where=where)
    if name == "inspect":
        runs = inspect_log.read_inspect(fields, (), ("samples",), where=where)
    else:
        runs = known.read(fields, len(documents), where=where)
    return _checked(
        Mapped(known, ".json" if single else ".jsonl", harness_version, file_version, runs, fields), where=where
    )


def _archive(data: bytes, *, where: str) -> Mapped:
    known = KNOWN["inspect"]
    fields = Fields(read_log(data, where=where), where=where)
    if not known.is_it([fields.table(HEADER)]):
        raise InvalidDocumentError(f"is no log of inspect_ai: {HEADER} has none of its fields", where=where)
    for name in fields.table():
        if name not in (HEADER, SUMMARIES):
            fields.leave(name, why="a member of the archive that is not read; it stands in the original")
    harness_version, file_version = _versions(fields, known, (HEADER,), where=where)
    runs = inspect_log.read_inspect(fields, (HEADER,), (SUMMARIES,), where=where)
    return _checked(Mapped(known, ".eval", harness_version, file_version, runs, fields), where=where)


def _detected(documents: list[dict[str, Any]], chosen: Format | None, *, where: str) -> Format:
    if any(is_imported(each) for each in documents):
        raise InvalidDocumentError("is imported already", where=where, todo="import the harness's own file")
    found = [name for name in FORMATS if KNOWN[name].is_it(documents)]
    if chosen is not None:
        if chosen not in found:
            raise InvalidDocumentError(f"is no result of {chosen}", where=where, why="it has not the fields of one")
        return chosen
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"looks like {' and '.join(found)}", where=where, todo="choose with --format")
    first = ", ".join(shown(key) for key in list(documents[0])[:5]) or "none"
    raise InvalidDocumentError(
        "is of no known format",
        where=where,
        why=f"its first keys: {first}",
        todo=f"known are {', '.join(FORMATS)}",
    )


def _versions(fields: Fields, known: Known, below: Place, *, where: str) -> tuple[str, str]:
    """The version of the harness and of its format, as the file says them.

    Raises:
        InvalidDocumentError: a version of the format whose fields nobody read the meaning of.
    """
    harness = None if known.version is None else fields.at(*below, *known.version)
    if not isinstance(harness, str) or not harness.isprintable() or not 0 < len(harness) <= len("0" * 64):
        harness = "unknown"
    elif known.version is not None:
        fields.take(*below, *known.version)
    form = None if known.file_version is None else fields.at(*below, *known.file_version)
    if form is None or known.file_version is None:
        return harness, "unknown"
    if isinstance(form, bool | list | dict) or form not in known.file_versions:
        raise InvalidDocumentError(
            f"is of version {shown(form)} of its format, which penny does not know",
            where=where,
            why=f"known: {', '.join(sorted(map(str, known.file_versions)))}; fields may mean something else there",
            todo="use a penny that knows it",
        )
    fields.take(*below, *known.file_version)
    return harness, str(form)


def _checked(mapped: Mapped, *, where: str) -> Mapped:
    if not any(run.quantities or run.requests or run.answers for run in mapped.runs):
        raise InvalidDocumentError(
            "holds nothing that has a place", where=where, why="no number, request or answer could be mapped"
        )
    return mapped

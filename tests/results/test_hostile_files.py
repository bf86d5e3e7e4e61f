"""A result from a stranger: bounded, never followed anywhere, and refused in one clear line."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.bounds import DEEPEST
from reproducer.documents.imported import ImportedResult
from reproducer.errors import InvalidDocumentError, PennyError, UnsafeInputError, UsageError
from reproducer.results import fields, making, reading
from reproducer.results.keeping import import_result, keep
from reproducer.results.log_archive import MOST_MEMBERS
from tests.results.files import DATA, archive, changed, imported, loaded, why, written

HEADER = json.dumps({"version": 2, "status": "success", "eval": {}, "plan": {}}).encode()


def refused(path: Path, said: str, kind: type[PennyError] = InvalidDocumentError) -> None:
    """A file that ends in one error, soon."""
    begin = time.monotonic()
    with pytest.raises(kind, match=said):
        import_result(path)
    assert time.monotonic() - begin < 60


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is not JSON"),
        (b"\xff\xfe{\x00}\x00", "not UTF-8"),
        (b'{"a": "\xff"}', "line 1: the result is not UTF-8"),
        (b"[1, 2]", "is no object"),
        (b"{}", "no known format"),
        (b'{"a": 1, "a": 2}', "stands twice"),
        (b'{"a": 1}\n{"a": \n', "line 2: is not JSON"),
        (b'{"a": ' + b"[" * 100_000, "is not JSON|nested"),
        (b'{"a": ' + b"[" * (DEEPEST + 2) + b"]" * (DEEPEST + 2) + b"}", "nested more than"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "is not JSON"),
        (b'{"format": "penny-imported/1"}', "imported already"),
        (b"PK\x03\x04" + b"\0" * 40, "no zip archive"),
    ],
)
def test_what_is_no_result(data: bytes, said: str, tmp_path: Path) -> None:
    """Bytes that are no result of any harness."""
    path = tmp_path / "result.json"
    path.write_bytes(data)
    refused(path, said)


def test_size_and_number_of_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many bytes, values or lines are refused before they are parsed."""
    path = tmp_path / "result.json"
    path.touch()
    os.truncate(path, reading.LARGEST + 1)
    refused(path, "larger than")
    monkeypatch.setattr(reading, "MOST_VALUES", 100)
    path.write_text(json.dumps({"a": list(range(200))}))
    refused(path, "more than 100 values")
    monkeypatch.setattr(reading, "MOST_LINES", 3)
    path.write_text('{"a":1}\n' * 4)
    refused(path, "more than 3 lines")


def test_what_is_no_file(tmp_path: Path) -> None:
    """A pipe, a folder and nothing at all; a pipe is not waited for."""
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "not a regular file", UnsafeInputError)
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    refused(tmp_path / "link", "not a regular file", UnsafeInputError)
    refused(tmp_path, "not a regular file|is a folder", UnsafeInputError)
    refused(tmp_path / "nothing", "no result here", UsageError)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("sglang.jsonl", (0, "duration"), -1),
        ("sglang.jsonl", (0, "mean_ttft_ms"), -0.5),
        ("sglang.jsonl", (0, "ttfts", 1), -0.1),
        ("sglang.jsonl", (0, "itls", 1, 2), -0.1),
        ("sglang.jsonl", (0, "itls", 1, 2), 1e300),
        ("sglang.jsonl", (0, "completed"), 10**30),
        ("vllm-detailed.json", (0, "latencies", 0), -1),
        ("vllm-detailed.json", (0, "start_times", 0), -1),
        ("vllm-detailed.json", (0, "start_times", 0), 1e15),
        ("guidellm.json", (0, "benchmarks", 0, "requests", "successful", 0, "info", "timings", "request_end"), 5),
        ("aiperf.jsonl", (0, "metrics", "request_latency", "value"), -3),
        ("aiperf.jsonl", (0, "metadata", "request_start_ns"), 10**400),
        ("aiperf.jsonl", (0, "metadata", "request_start_ns"), -(10**400)),
        ("aiperf.json", (0, "time_to_first_token", "avg"), -3),
        ("lm-eval.json", (0, "n-samples", "boats", "effective"), -3),
    ],
)
def test_times_that_cannot_be(name: str, place: tuple[str | int, ...], value: Any, tmp_path: Path) -> None:
    """Negative times and counts, and times longer than any clock, are refused with the field."""
    refused(changed(tmp_path, name, *place, value=value), "is negative|is no time|larger than any clock")


def test_numbers_without_end_are_no_numbers(tmp_path: Path) -> None:
    """`1e999` is read by a parser as infinite; it is no number here."""
    text = (DATA / "vllm.json").read_text("utf-8")
    (found,) = (each for each in text.split(", ") if each.startswith('"duration"'))
    path = tmp_path / "result.json"
    path.write_text(text.replace(found, '"duration": 1e999'))
    result = imported(path)
    assert why(result, "duration") == "is too large for a number"
    assert b"Infinity" not in result.canonical()


def test_names_and_texts_that_steer_a_terminal(tmp_path: Path) -> None:
    """Keys and values with control characters come out escaped or not at all."""
    documents = loaded("vllm.json")
    documents[0]["\x1b[2J\u202e"] = 1
    documents[0]["label"] = "\x1b[2J"
    result = imported(written(tmp_path, documents))
    assert why(result, "label") == "is long or no plain text"
    text = result.canonical().decode()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\u001b" not in text
    assert any("x1b[2J" in each.field for each in result.unmapped)
    documents = loaded("lm-eval.json")
    documents[0]["results"]["\x1b[2J\ud800"] = {"acc\x07,none": 0.5}
    result = imported(written(tmp_path, documents))
    assert "\x07" not in result.canonical().decode()
    assert any("acc" in each.name for run in result.runs for each in run.quantities)


def test_an_unknown_version_of_the_format_is_refused(tmp_path: Path) -> None:
    """Fields may mean something else in a version of the format that nobody read."""
    refused(changed(tmp_path, "guidellm.json", 0, "metadata", "version", value=3), "is of version 3 of its format")
    refused(changed(tmp_path, "aiperf.json", 0, "schema_version", value="2.0"), "is of version '2.0'")
    refused(changed(tmp_path, "inspect.json", 0, "version", value=3), "is of version 3")
    refused(changed(tmp_path, "inspect.json", 0, "version", value=[2]), "is of version")


def test_a_file_that_looks_like_two(tmp_path: Path) -> None:
    """Which of two formats it is must be said; a choice that does not fit is refused."""
    path = written(tmp_path, [loaded("sglang.jsonl")[0] | loaded("vllm.json")[0]])
    refused(path, "looks like sglang and vllm", UsageError)
    assert import_result(path, chosen="vllm").result.harness == "vllm bench serve"
    with pytest.raises(InvalidDocumentError, match="no result of guidellm"):
        import_result(path, chosen="guidellm")
    with pytest.raises(InvalidDocumentError, match="it is a zip archive"):
        import_result(DATA / "inspect.eval", chosen="vllm")


def test_a_file_with_nothing_in_it(tmp_path: Path) -> None:
    """A file of a known form without one number is no result."""
    refused(
        written(tmp_path, [{"results": {}, "configs": {}, "versions": {}, "n-shot": {}}]), "nothing that has a place"
    )


@pytest.mark.parametrize("name", ["sglang-paced.jsonl", "vllm-detailed.json", "lm-eval.json", "inspect.json"])
@pytest.mark.parametrize("value", [[1], {"a": {}}, "x\ud800", float("inf"), True])
def test_a_field_of_another_type(name: str, value: Any, tmp_path: Path) -> None:
    """Whatever stands in a field, the file is imported without it or refused in one line; nothing breaks."""
    for key in loaded(name)[0]:
        try:
            result = imported(changed(tmp_path, name, 0, key, value=value))
        except PennyError:
            continue
        assert ImportedResult.from_json(result.canonical(), where=key) == result


def test_two_numbers_of_one_name(tmp_path: Path) -> None:
    """A log whose scores were reduced in two ways has one of each; what nothing tells apart is named."""
    scores = loaded("inspect.json")[0]["results"]["scores"]
    twice = [scores[0] | {"reducer": "mean"}, scores[0] | {"reducer": "max"}, scores[0] | {"reducer": "max"}]
    result = imported(changed(tmp_path, "inspect.json", 0, "results", "scores", value=twice))
    names = {each.name for each in result.runs[0].quantities}
    assert {"match, mean/accuracy", "match, max/accuracy"} < names
    assert why(result, "results.scores[].metrics.accuracy.value") == "another number of this name stands before it"


def test_a_document_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More runs, numbers or fields than a document holds refuse the file; many requests stay in the original alone."""
    path = written(tmp_path, loaded("sglang.jsonl") * 2)
    monkeypatch.setattr(fields, "MOST_RUNS", 3)
    refused(path, "more than 3 runs")
    monkeypatch.setattr(fields, "MOST_QUANTITIES", 30)
    refused(path, "more than 30 numbers")
    monkeypatch.undo()
    monkeypatch.setattr(fields, "MOST_UNMAPPED", 5)
    refused(path, "more than 5 different fields")
    monkeypatch.undo()
    monkeypatch.setattr(making, "MOST_REQUESTS", 3)
    run = imported(DATA / "vllm-detailed.json").runs[0]
    assert run.requests == ()
    assert any("its 4 requests are more than 3" in note for note in run.notes)
    assert any(each.kind == "completed-request rate" for each in run.quantities)


@pytest.mark.parametrize("name", ["../header.json", "/etc/x", "a/../../x", "a\\b", "a\nb", "a//b", "."])
def test_names_that_leave_the_archive(name: str, tmp_path: Path) -> None:
    """A member whose name leads out of its folder is refused, read or not; nothing is ever unpacked."""
    path = tmp_path / "log.eval"
    path.write_bytes(archive([("header.json", HEADER), (name, b"x")]))
    refused(path, "leaves its folder", UnsafeInputError)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["log.eval"]


@pytest.mark.parametrize(
    ("data", "kind", "said"),
    [
        (archive([("header.json", HEADER)], mode=0o120777), UnsafeInputError, "is a link"),
        (archive([("header.json", HEADER)], flags=1), UnsafeInputError, "encrypted"),
        (archive([("header.json", HEADER)] * 2), UnsafeInputError, "stands twice"),
        (archive([("header.json", b"0" * (4 << 20))], size=10), InvalidDocumentError, "is damaged"),
        (archive([("header.json", HEADER)], size=1 << 31), InvalidDocumentError, "is larger than"),
        (archive([("header.json", HEADER)], crc=1), InvalidDocumentError, "is damaged"),
        (archive([("header.json", HEADER)], method=12), InvalidDocumentError, "method 12"),
        (archive([("header.json", HEADER)], method=93), InvalidDocumentError, "cannot be unpacked"),
        (archive([("header.json", HEADER)], local="headers.json"), InvalidDocumentError, "directory says"),
        (archive([("other.json", HEADER)]), InvalidDocumentError, "has no header.json"),
        (archive([("header.json", b"{}")]), InvalidDocumentError, "none of its fields"),
        (archive([("header.json", b"\xff")]), InvalidDocumentError, "not UTF-8"),
        (archive([("header.json", HEADER)])[:-1], InvalidDocumentError, "no zip archive"),
        (
            archive([("header.json", HEADER)])[:40] + archive([("header.json", HEADER)])[-40:],
            InvalidDocumentError,
            "zip",
        ),
        (archive([(f"{at}", b"") for at in range(MOST_MEMBERS + 1)]), InvalidDocumentError, "more than 20000 members"),
    ],
)
def test_archives_that_lie(data: bytes, kind: type[PennyError], said: str, tmp_path: Path) -> None:
    """Bombs, links, wrong checksums, sizes and names: each is refused before anything is made of it."""
    path = tmp_path / "log.eval"
    path.write_bytes(data)
    refused(path, said, kind)


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    """Where a link or another file lies under the document's name, nothing is written."""
    made = import_result(DATA / "vllm.json")
    (tmp_path / made.name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="something else lies here"):
        keep(made, tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == [made.name]

"""Files of real harnesses: each is known by its content, every field is mapped or named, and no text is copied."""

import hashlib
import json
import shutil
from pathlib import Path
from statistics import mean, median

import pytest

from reproducer.documents.imported import UNITS, ImportedResult
from reproducer.results.keeping import import_result, keep
from tests.results.files import DATA, FILES, HARNESSES, PLAIN, imported, loaded, named, objects, run_of, why, written


@pytest.mark.parametrize("name", FILES)
def test_known_by_content(name: str, tmp_path: Path) -> None:
    """Whatever a file is called, its harness is known, and the versions are those that the file itself says."""
    shutil.copy(DATA / name, tmp_path / "anything")
    result = imported(tmp_path / "anything")
    assert (result.harness, result.harness_version, result.file_version) == HARNESSES[name]
    assert result.version_seen is (None if result.harness_version == "unknown" else True)
    assert result.status == "imported"
    assert result.lock is None


@pytest.mark.parametrize("name", FILES)
def test_original_by_digest(name: str) -> None:
    """The document names the original by the digest and size of its bytes, and reads back as what it was."""
    result, data = imported(DATA / name), (DATA / name).read_bytes()
    assert result.original.sha256 == hashlib.sha256(data).hexdigest()
    assert result.original.size == len(data)
    again = ImportedResult.from_json(result.canonical(), where=name)
    assert again == result
    assert imported(DATA / name).digest == result.digest


@pytest.mark.parametrize("name", PLAIN)
def test_every_new_field_is_named(name: str, tmp_path: Path) -> None:
    """A field that nobody knows, put into any object of a file, is named with its path."""
    documents = loaded(name)
    places = [each for each in objects(documents) if each]  # an empty one is a field itself
    sample = places if len(places) < 60 else places[:: len(places) // 60]
    for place in sample:
        place["zz_new"] = 1
    before = {each.field: each.count for each in imported(DATA / name).unmapped}
    result = imported(written(tmp_path, documents))
    found = sum(each.count - before.get(each.field, 0) for each in result.unmapped)
    assert found == len(sample)


@pytest.mark.parametrize("name", PLAIN)
def test_numbers_name_their_field(name: str) -> None:
    """Every number that is stated stands in the file at the field it names, but for its unit."""
    documents = loaded(name)
    root = documents[0] if len(documents) == 1 else documents
    for run in imported(DATA / name).runs:
        assert run.quantities
        for each in run.quantities:
            assert each.unit in UNITS[each.kind]
            if each.origin == "stated":
                value = _at(root, each.fields[0])
                scale = 1000 if each.kind == "duration" and _in_milliseconds(each.name, root) else 1
                assert each.value == value / scale, each.name


def _in_milliseconds(name: str, root: object) -> bool:
    aiperf = isinstance(root, dict) and "aiperf_version" in root and name != "benchmark_duration"
    return aiperf or name.endswith("_ms")


def _at(root: object, field: str) -> float:
    """The number at a written path; keys of these files hold no dot but in `p99.9`."""
    found = root
    for part in field.replace("[", ".[").split("."):
        if part.startswith("["):
            assert isinstance(found, list)
            found = found[int(part[1:-1])]
        elif part:
            assert isinstance(found, dict)
            found = found[part]
    assert isinstance(found, int | float)
    return found


@pytest.mark.parametrize("name", FILES)
def test_no_text_is_copied(name: str) -> None:
    """Prompts and answers stay in the original; the document holds none of their words, and no address."""
    text = imported(DATA / name).canonical().decode()
    for word in ("river", "boats followed", "six times", "heron?", "127.0.0.1", "/srv/boats/boats"):
        assert word not in text


def test_sglang_numbers_follow_from_its_requests() -> None:
    """The requests of bench_serving give its own statistics again, and the rate after the first chunk."""
    (data, _), run = loaded("sglang.jsonl"), run_of(DATA / "sglang.jsonl")
    first = [each.first_ns or 0 for each in run.requests]
    last = [each.last_ns or 0 for each in run.requests]
    assert mean(first) / 1e6 == pytest.approx(data["mean_ttft_ms"], rel=1e-6)
    tpot = [(b - a) / 1e6 / (n - 1) for a, b, n in zip(first, last, data["output_lens"], strict=True)]
    assert median(tpot) == pytest.approx(data["median_tpot_ms"], rel=1e-3)
    rate = named(run, "completed_request_rate", "median")
    assert rate is not None
    assert rate.kind == "completed-request rate"
    assert rate.values == pytest.approx([1000 / each for each in tpot])
    makespan = named(run, "output_throughput")
    assert makespan is not None
    assert makespan.value == pytest.approx(sum(data["output_lens"]) / data["duration"])
    assert makespan.kind == "aggregate makespan rate"


def test_vllm_requests_begin_when_they_were_sent() -> None:
    """The requests of a detailed file have their start after the first one, and end where their latency says."""
    (data,), run = loaded("vllm-detailed.json"), run_of(DATA / "vllm-detailed.json")
    starts = [each - min(data["start_times"]) for each in data["start_times"]]
    assert [(each.sent_ns or 0) / 1e9 for each in run.requests] == pytest.approx(starts, abs=1e-9)
    assert [(each.finished_ns or 0) / 1e9 for each in run.requests] == pytest.approx(data["latencies"], abs=1e-9)
    assert [each.tokens_after_first for each in run.requests] == [n - 1 for n in data["output_lens"]]


def test_guidellm_rates_are_computed_from_requests() -> None:
    """GuideLLM's own rates are of no kind; requests that were all released together give the makespan's."""
    result = imported(DATA / "guidellm.json")
    (run,) = result.runs
    done = loaded("guidellm.json")[0]["benchmarks"][0]["requests"]["successful"]
    tokens = sum(each["output_tokens"] for each in done)
    times = [each["info"]["timings"] for each in done]
    makespan = max(t["last_token_iteration"] for t in times) - min(t["request_start"] for t in times)
    rate = named(run, "aggregate_makespan_rate")
    assert rate is not None
    assert rate.value == pytest.approx(tokens / makespan, rel=1e-6)
    assert rate.origin == "computed"
    assert "no kind" in (why(result, "benchmarks[].metrics.output_tokens_per_second") or "")
    assert {each.kind for each in run.quantities if each.origin == "stated"} == {"duration", "count"}


def test_aiperf_tokens_are_the_servers() -> None:
    """Of a request, tokens are those that the server says, never those that the client's tokenizer counted."""
    run = run_of(DATA / "aiperf.jsonl")
    records = loaded("aiperf.jsonl")
    assert {each["metrics"]["output_sequence_length"]["value"] for each in records} == {9}
    assert [each.output_tokens for each in run.requests] == [8] * 4
    rate = named(run, "completed_request_rate", "median")
    assert rate is not None
    spans = [sum(each["metrics"]["inter_chunk_latency"]["value"]) for each in records]
    assert rate.value == pytest.approx(median(7000 / span for span in spans), rel=1e-6)


def test_scores_keep_task_metric_and_answers() -> None:
    """Scores are scores, with their standard error beside them; answers of each epoch keep what each scorer gave."""
    run = run_of(DATA / "lm-eval.json")
    score = named(run, "exact_match,none", "value")
    assert score is not None
    assert (score.kind, score.unit, score.value) == ("score", "points", 2 / 3)
    assert named(run, "exact_match,none", "standard error") is not None
    assert {each.kind for each in run.quantities} == {"score", "count"}
    log = run_of(DATA / "inspect.eval")
    assert sorted((each.case, each.epoch, each.scores["match"]) for each in log.answers) == [
        *[("again", 1, "C"), ("again", 2, "C"), ("heron", 1, "I"), ("heron", 2, "I"), ("six", 1, "C"), ("six", 2, "C")]
    ]
    twin = run_of(DATA / "inspect.json")
    assert twin.quantities
    assert [each.value for each in twin.quantities] == [each.value for each in log.quantities]
    assert sorted(map(str, twin.answers)) == sorted(map(str, log.answers))


def test_document_and_original_lie_beside_each_other(tmp_path: Path) -> None:
    """Both are named by their digest; a second import changes nothing, and nothing else is written over."""
    made = import_result(DATA / "inspect.eval")
    document, original = keep(made, tmp_path / "new")
    assert document.name == f"inspect_ai-{made.result.digest[:12]}.json"
    assert original.read_bytes() == (DATA / "inspect.eval").read_bytes()
    assert json.loads(document.read_bytes())["original"]["path"] == original.name
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "new").iterdir()}
    keep(made, tmp_path / "new")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "new").iterdir()} == before

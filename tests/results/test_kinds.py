"""A number is mapped only onto a kind that the harness's own definition establishes; otherwise it is said why not."""

from pathlib import Path
from typing import Any

import pytest

from tests.results.files import DATA, changed, imported, loaded, named, run_of, why, written


def test_requests_that_were_held_back_have_no_makespan() -> None:
    """The rate over a run is a makespan's only where all requests were released together."""
    result = imported(DATA / "sglang.jsonl")
    assert named(result.runs[0], "output_throughput") is not None
    assert named(result.runs[1], "output_throughput") is None
    assert why(result, "[].output_throughput") == "no aggregate makespan rate: max_concurrency held requests back"
    paced = imported(DATA / "sglang-paced.jsonl")
    assert named(paced.runs[0], "output_throughput") is None
    assert "request_rate" in (why(paced, "output_throughput") or "")


@pytest.mark.parametrize(
    ("name", "place", "value", "field"),
    [
        ("sglang.jsonl", (0, "max_concurrency"), 3, "output_throughput"),
        ("sglang.jsonl", (0, "dataset_name"), "mooncake", "output_throughput"),
        ("sglang.jsonl", (0, "request_rate"), 8.0, "output_throughput"),
        ("sglang.jsonl", (0, "total_input_tokens"), 0, "output_throughput"),
        ("vllm-detailed.json", (0, "max_concurrency"), 3, "output_throughput"),
        ("vllm-detailed.json", (0, "request_rate"), 5.0, "output_throughput"),
        ("vllm-detailed.json", (0, "ramp_up_strategy"), "linear", "output_throughput"),
        ("aiperf.json", (0, "input_config", "phases", 0, "concurrency"), 3, "output_token_throughput"),
        ("aiperf.json", (0, "input_config", "phases", 0, "type"), "poisson", "output_token_throughput"),
        ("aiperf.json", (0, "was_cancelled"), True, "output_token_throughput"),
        ("guidellm.json", (0, "benchmarks", 0, "config", "strategy", "max_concurrency"), 1, "aggregate_makespan_rate"),
        ("guidellm.json", (0, "benchmarks", 0, "config", "strategy", "type_"), "poisson", "aggregate_makespan_rate"),
        ("guidellm.json", (0, "benchmarks", 0, "config", "strategy", "rampup_duration"), 1, "aggregate_makespan_rate"),
    ],
)
def test_each_way_of_holding_back(
    name: str, place: tuple[str | int, ...], value: Any, field: str, tmp_path: Path
) -> None:
    """Each setting that spreads requests over time takes the makespan's rate away, and nothing else."""
    before = {(each.name, each.statistic) for each in run_of(DATA / name).quantities}
    after = {(each.name, each.statistic) for each in run_of(changed(tmp_path, name, *place, value=value)).quantities}
    assert before - after == {(field, "total")}
    assert after <= before


def test_concurrency_as_wide_as_the_run_holds_nothing_back(tmp_path: Path) -> None:
    """A limit that no request ever met leaves the rate what it is."""
    assert named(run_of(changed(tmp_path, "vllm-detailed.json", 0, "max_concurrency", value=4)), "output_throughput")
    assert named(run_of(changed(tmp_path, "sglang.jsonl", 0, "max_concurrency", value=4)), "output_throughput")


@pytest.mark.parametrize("name", ["vllm-detailed.json", "sglang-paced.jsonl"])
def test_chunks_of_several_tokens_give_no_request_rate(name: str, tmp_path: Path) -> None:
    """Where one chunk brought two tokens nobody knows what the first one brought, and it is said."""
    gaps = loaded(name)[0]["itls"][2]
    run = run_of(changed(tmp_path, name, 0, "itls", 2, value=[gaps[0] + gaps[1], *gaps[2:]]))
    assert named(run, "completed_request_rate", "median") is None
    assert any("1 of 4 requests" in note for note in run.notes)


def test_sglangs_own_protocol_counts_tokens_after_the_first_chunk(tmp_path: Path) -> None:
    """Through /generate each later token has an entry of its own, so a first chunk of two leaves one entry less."""
    gaps = loaded("sglang.jsonl")[0]["itls"][2]
    run = run_of(changed(tmp_path, "sglang.jsonl", 0, "itls", 2, value=gaps[1:]))
    rate = named(run, "completed_request_rate", "median")
    assert rate is not None
    assert rate.values is not None
    assert rate.values[2] == pytest.approx(6 / sum(gaps[1:]))


def test_aiperf_chunks_of_several_tokens(tmp_path: Path) -> None:
    """The same for records of AIPerf."""
    gaps = loaded("aiperf.jsonl")[1]["metrics"]["inter_chunk_latency"]["value"]
    path = changed(tmp_path, "aiperf.jsonl", 1, "metrics", "inter_chunk_latency", "value", value=gaps[:-1])
    assert named(run_of(path), "completed_request_rate", "median") is None


def test_failed_and_warmup_requests_are_kept_and_count_nowhere(tmp_path: Path) -> None:
    """A failed request stays in the document as failed, and no rate is made of it."""
    run = run_of(changed(tmp_path, "sglang.jsonl", 0, "errors", 1, value="Internal Server Error"))
    assert [each.failed for each in run.requests] == [False, True, False, False]
    rate = named(run, "completed_request_rate", "median")
    assert rate is not None
    assert len(rate.values or ()) == 3
    path = changed(tmp_path, "aiperf.jsonl", 0, "metadata", "benchmark_phase", value="warmup")
    run = run_of(path)
    assert [each.warmup for each in run.requests] == [True, False, False, False]
    rate = named(run, "completed_request_rate", "median")
    assert rate is not None
    assert len(rate.values or ()) == 3


def test_percentiles_with_failures_in_them(tmp_path: Path) -> None:
    """AIPerf's percentiles count failed requests: where there were some, they are no times of requests."""
    result = imported(changed(tmp_path, "aiperf.json", 0, "error_summary", value=[{"count": 1}]))
    assert named(result.runs[0], "time_to_first_token", "avg") is not None
    assert named(result.runs[0], "time_to_first_token", "p99") is None
    assert why(result, "time_to_first_token.p99") == "counts failed requests, and there were some"


def test_another_unit_is_not_converted_by_guess(tmp_path: Path) -> None:
    """A metric in a unit that was never seen is not mapped."""
    result = imported(changed(tmp_path, "aiperf.json", 0, "time_to_first_token", "unit", value="us"))
    assert named(result.runs[0], "time_to_first_token", "avg") is None
    assert why(result, "time_to_first_token") == "is in another unit than ms"


def test_what_is_no_number_is_named(tmp_path: Path) -> None:
    """`NaN` of a run without answers, and lm-eval's "N/A", are no numbers, and the field says what it is."""
    result = imported(changed(tmp_path, "sglang.jsonl", 0, "mean_e2e_latency_ms", value=float("nan")))
    assert named(result.runs[0], "e2e_latency_ms", "mean") is None
    assert why(result, "[].mean_e2e_latency_ms") == "is NaN"
    result = imported(changed(tmp_path, "lm-eval.json", 0, "results", "boats", "exact_match_stderr,none", value="N/A"))
    assert why(result, "results.boats.exact_match_stderr,none") == "is no number"
    assert named(result.runs[0], "exact_match,none", "value") is not None


def test_conditions_are_known_or_named_unknown() -> None:
    """A document says what a receipt of penny's would have said and this file does not."""
    for name in ("sglang.jsonl", "aiperf.json", "guidellm.json", "vllm.json"):
        conditions = run_of(DATA / name).conditions
        assert any("GPUs" in each for each in conditions.unknown)
        assert any("cache" in each for each in conditions.unknown)
    assert run_of(DATA / "sglang.jsonl").conditions.known["request_rate"] == "Infinity"
    assert run_of(DATA / "lm-eval.json").conditions.known["model_name"] == "smollm2-135m-instruct"


def test_conditions_leave_out_what_must_not_leave_a_machine(tmp_path: Path) -> None:
    """A home folder or a token among the conditions is not copied, and named without itself."""
    secret = "/home/somebody/model"  # noqa: S105  a path
    result = imported(changed(tmp_path, "vllm.json", 0, "model_id", value=secret))
    assert why(result, "model_id") == "holds a home path"
    assert secret not in result.canonical().decode()


def test_another_version_of_the_harness_is_imported_with_a_mark(tmp_path: Path) -> None:
    """A version of the harness that was never seen is marked; a version of the format that was not is refused."""
    result = imported(changed(tmp_path, "lm-eval.json", 0, "lm_eval_version", value="9.9.9"))
    assert (result.harness_version, result.version_seen, result.read_in) == ("9.9.9", False, "0.4.13")


def test_details_of_several_lengths_are_no_requests(tmp_path: Path) -> None:
    """Lists that do not fit each other say nothing of one request; they are named and not guessed at."""
    documents = loaded("sglang.jsonl")[:1]
    documents[0]["ttfts"].pop()
    result = imported(written(tmp_path, documents))
    assert result.runs[0].requests == ()
    assert why(result, "ttfts[]") is not None

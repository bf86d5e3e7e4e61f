"""Small logs as each release writes them: what is read of every kind of line, number by number."""

from pathlib import Path

import pytest

from reproducer.documents.traces import Trace
from tests.trace.written import STAMP, damage, listed, traced

# release: decode, prefill, report of a request; what comes of them: (tokens cached, post-prefill, clock)
RELEASES = {
    "0.5.7": (
        (
            "Decode batch, #running-req: 2, #token: 341, token usage: 0.01, cuda graph: True, "
            "gen throughput (token/s): 61.48, #queue-req: 3, "
        ),
        (
            "Prefill batch, #new-seq: 1, #new-token: 64, #cached-token: 32, token usage: 0.00, #running-req: 0, "
            "#queue-req: 0, "
        ),
        (
            "Req Time Stats(rid=a1, input len=472, output len=364, type=unified): queue_duration=1.64ms, "
            "forward_duration=2355.41ms, start_time=5176.345"
        ),
        "process clock",
    ),
    "0.5.10.post1": (
        (
            "Decode batch, #running-req: 2, #token: 341, token usage: 0.01, cpu graph: False, "
            "gen throughput (token/s): 61.48, #queue-req: 3"
        ),
        (
            "Prefill batch, #new-seq: 1, #new-token: 64, #cached-token: 32, token usage: 0.00, #running-req: 0, "
            "#queue-req: 0, cpu graph: False, input throughput (token/s): 27.56"
        ),
        (
            "Req Time Stats(rid=a1, input len=472, output len=364, type=unified): queue_duration=1.64ms, "
            "forward_duration=2355.41ms, start_time=5176.345"
        ),
        "process clock",
    ),
    "0.5.17": (
        (
            "Decode batch, #running-req: 2, #token: 341, token usage: 0.00, accept len: 3.25, accept rate: 0.45, "
            "block accept len: 2.00, cuda graph: True, gen throughput (token/s): 61.48, #queue-req: 3"
        ),
        (
            "Prefill batch, #new-seq: 1, #new-token: 64, #cached-token: 32, token usage: 0.00, #running-req: 0, "
            "#queue-req: 0, #pending-token: 0, cuda graph: False, input throughput (token/s): 27.56"
        ),
        (
            "ReqTimeStats(rid=a1, input_len=472, cached_input_len=192, output_len=364, attempts=0, type=unified): "
            "queue_duration=1.64ms, forward_duration=2355.41ms, entry_time=1787601371.304"
        ),
        "wall clock",
    ),
    "0.5.23": (
        (
            "Decode batch [812], #running-req: 2, #full token: 341, full token usage: 0.01, mamba num: 2, "
            "mamba usage: 0.10, accept len: 3.25, accept rate: 0.45, cap len: 4.00, block accept len: 2.00, "
            "cuda graph: True, gen throughput (token/s): 61.48, #queue-req: 3, est. decode TFLOPS/s (per GPU): 1.20"
        ),
        (
            "Prefill batch [811], #new-seq: 1, #new-token: 64, #cached-token: 32, full token usage: 0.00, "
            "#running-req: 0, #queue-req: 0, #pending-token: 0, #replay-token: 2, cuda graph: False, "
            "input throughput (token/s): 27.56"
        ),
        (
            "ReqTimeStats(rid=a1, input_len=472, cached_input_len=192, output_len=364, attempts=1, type=unified): "
            "queue_duration=1.64ms, forward_duration=2355.41ms, entry_time=1787601371.304"
        ),
        "wall clock",
    ),
    "a build that says when the prefill ended": (
        (
            "Decode batch [812], #running-req: 2, #full token: 341, full token usage: 0.01, mamba num: 2, "
            "mamba usage: 0.10, accept len: 3.25, accept rate: 0.45, cap len: 4.00, block accept len: 2.00, "
            "cuda graph: True, gen throughput (token/s): 61.48, #queue-req: 3, est. decode TFLOPS/s (per GPU): 1.20"
        ),
        (
            "Prefill batch [811], #new-seq: 1, #new-token: 64, #cached-token: 32, full token usage: 0.00, "
            "#running-req: 0, #queue-req: 0, #pending-token: 0, #replay-token: 2, cuda graph: False, "
            "input throughput (token/s): 27.56"
        ),
        (
            "ReqTimeStats(rid=a1, input_len=472, cached_input_len=192, output_len=364, attempts=1, type=unified): "
            "queue_duration=1.64ms, initial_prefill_elapsed=85.09ms, post_prefill_elapsed=2270.33ms, "
            "forward_duration=2355.41ms, entry_time=1787601371.304"
        ),
        "wall clock",
    ),
}


@pytest.mark.parametrize("release", RELEASES)
def test_a_release(release: str, tmp_path: Path) -> None:
    """Each line of each release is read, and nothing that a release does not say is a number."""
    decode, prefill, report, clock = RELEASES[release]
    found = traced(tmp_path, *(f"{STAMP} {line}" for line in (prefill, decode, report)))
    assert found.sources[0].kind == "SGLang log"
    assert damage(found) == {}
    assert (found.lines.windows, found.lines.prefills, found.lines.requests) == (1, 1, 1)
    (window,) = found.strongest
    assert (window.tok_s, window.running, window.queued, window.tokens) == (61.48, 2, 3, 341)
    accepted = (3.25, 0.45) if "accept" in decode else (None, None)
    assert (window.accept_length, window.accept_rate) == accepted
    assert found.prefills is not None
    assert (found.prefills.computed_tokens, found.prefills.cached_tokens) == (64, 32)
    assert (found.prefills.tok_s.median if found.prefills.tok_s else None) == (27.56 if "input " in prefill else None)
    request = listed(found)
    assert (request.input_tokens, request.output_tokens) == ((472,), (364,))
    assert (request.queue_us, request.forward_us) == ((1_640,), (2_355_410,))
    assert request.cached_tokens == ((192,) if "cached" in report else (None,))
    assert request.post_prefill_us == ((2_270_330,) if "post_prefill" in report else (None,))
    assert found.requests.clocks[0].kind == clock
    assert _decode_rate(found) == (round(364 / 2.27033, 6) if "post_prefill" in report else None)


def _decode_rate(found: Trace) -> float | None:
    rate = found.requests.completed.decode
    return None if rate is None else round(rate.median, 6)


SPLIT = {
    "0.5.7": (
        (
            "Req Time Stats(rid=p, bootstrap_room=7, input len=50, output len=1, type=prefill): "
            "bootstrap_queue_duration(5.00ms) = alloc_wait(1.00ms) + bootstrap(2.00ms) + other(2.00ms); "
            "queue_duration=1.00ms, forward_duration=9.00ms, start=12.500, transfer_speed=1.25GB/s, "
            "transfer_total=3.00MB"
        ),
        (
            "Req Time Stats(rid=p, bootstrap_room=7, input len=50, output len=30, type=decode): "
            "prealloc_queue_duration(4.00ms) = alloc_wait(1.00ms) + bootstrap(2.00ms) + other(1.00ms); "
            "transfer_duration=6.00ms; queue_duration=1.00ms, forward_duration=300.00ms, start=12.510"
        ),
    ),
    "0.5.23": (
        (
            "ReqTimeStats(rid=p, bootstrap_room=7, input_len=50, cached_input_len=0, output_len=1, attempts=1, "
            "type=prefill): bootstrap_queue_duration=5.00ms, queue_duration=1.00ms, forward_duration=9.00ms, "
            "entry_time=1787601371.304, transfer_speed=1.25 GB/s, transfer_total=3.00 MB"
        ),
        (
            "ReqTimeStats(rid=p, bootstrap_room=7, input_len=50, cached_input_len=0, output_len=30, attempts=1, "
            "type=decode): prealloc_queue_duration=4.00ms, transfer_duration=6.00ms, queue_duration=1.00ms, "
            "forward_duration=300.00ms, entry_time=1787601371.304"
        ),
    ),
}


@pytest.mark.parametrize("release", SPLIT)
def test_a_split_pair(release: str, tmp_path: Path) -> None:
    """The decode server of a pair reports the request: its forward time is decoding, what came before is waiting."""
    found = traced(tmp_path, *(f"{STAMP} {line}" for line in SPLIT[release]))
    assert damage(found) == {}
    assert (found.lines.requests, found.requests.prefill_halves) == (2, 1)
    request = listed(found)
    assert (request.output_tokens, request.queue_us, request.post_prefill_us) == ((30,), (11_000,), (300_000,))
    assert _decode_rate(found) == 100


def test_the_request_logger(tmp_path: Path) -> None:
    """What SGLang's request logger says completes the report of the same request, as text and as JSON."""
    report = (
        f"{STAMP} ReqTimeStats(rid=%s, input_len=40, cached_input_len=8, output_len=30, attempts=1, type=unified): "
        "queue_duration=1.00ms, forward_duration=400.00ms, entry_time=1787601371.000"
    )
    text = (
        f"{STAMP} Finish: obj=GenerateReqInput(text=\"'meta_info': {{'id': 'evil', 'prompt_tokens': 9, "
        "'completion_tokens': 9}\"), out={'text': 'b', 'meta_info': {'id': 'one', "
        "'finish_reason': {'type': 'length', 'length': 30}, 'prompt_tokens': 40, 'completion_tokens': 30, "
        "'cached_tokens': 8, 'forward_entry_time': 1787601371.001, 'prefill_finished_time': 1787601371.101, "
        "'queue_time': 0.001, 'request_finished_ts': 1787601371.401}}"
    )
    event = (
        '{"timestamp": "x", "event": "request.finished", "rid": "two", "out": {"text": "b", "meta_info": {"id": "two", '
        '"prompt_tokens": 40, "completion_tokens": 30, "cached_tokens": 8, "forward_entry_time": 1787601371.001, '
        '"prefill_finished_time": 1787601371.201, "request_finished_ts": 1787601371.401}}}'
    )
    found = traced(tmp_path, report % "one", text, event, report % "two")
    assert damage(found) == {}
    assert found.lines.requests == 4
    assert listed(found).prefill_us == (100_000, 200_000)
    assert listed(found).post_prefill_us == (300_000, 200_000)


VLLM = "(APIServer pid=13618) INFO 12-03 00:11:13 [loggers.py:335] Engine 000: "
STATS = (
    f"{VLLM}Avg prompt throughput: 16.5 tokens/s, Avg generation throughput: 41.8 tokens/s, Running: 3 reqs, "
    "Waiting: 1 reqs, GPU KV cache usage: 0.2%, Prefix cache hit rate: 27.9%"
)
ACCEPTED = (
    "(APIServer pid=13618) INFO 12-03 00:11:13 [metrics.py:101] SpecDecoding metrics: Mean acceptance length: 2.50, "
    "Accepted throughput: 20.00 tokens/s, Drafted throughput: 40.00 tokens/s, Accepted: 200 tokens, Drafted: 400 "
    "tokens, Per-position acceptance rate: 0.700, 0.300, Avg Draft acceptance rate: 50.0%"
)


def test_vllm(tmp_path: Path) -> None:
    """Lines of vLLM are windows, acceptance joins the window before it, and no request is made of them."""
    found = traced(tmp_path, STATS, ACCEPTED, STATS.replace("Engine 000: ", "").replace("41.8", "0.0"))
    assert (found.sources[0].kind, found.lines.windows, damage(found)) == ("vLLM log", 3, {})
    assert found.requests.completed.requests == 0
    window = found.strongest[0]
    assert (window.tok_s, window.running, window.queued, window.tokens) == (41.8, 3, 1, None)
    assert (window.accept_length, window.accept_rate) == (2.5, 0.5)
    assert found.prompts is not None
    assert (found.prompts.windows, found.prompts.median) == (2, 16.5)


def test_a_metrics_page(tmp_path: Path) -> None:
    """Counters and histograms are summed over their labels; gauges and other programs' metrics are not."""
    found = traced(
        tmp_path,
        "# HELP sglang:prompt_tokens_total Number of prefill tokens processed.",
        "# TYPE sglang:prompt_tokens_total counter",
        'sglang:prompt_tokens_total{model_name="m",tp_rank="0"} 40.0',
        'sglang:prompt_tokens_total{model_name="m",tp_rank="1"} 2.0',
        "# TYPE sglang:e2e histogram",
        'sglang:e2e_bucket{le="1"} 1.0',
        "sglang:e2e_sum 1.5",
        "sglang:e2e_count 2.0",
        "# TYPE sglang:num_running_reqs gauge",
        "sglang:num_running_reqs 7.0",
        "# TYPE python_gc counter",
        "python_gc 3.0",
    )
    assert [(each.name, each.total, each.count) for each in found.counters] == [
        ("sglang:e2e", 1.5, 2),
        ("sglang:prompt_tokens_total", 42.0, None),
    ]
    assert (found.sources[0].kind, found.lines.metrics) == ("metrics", 12)

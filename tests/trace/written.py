"""Lines as servers write them, and files of them."""

from pathlib import Path

from reproducer.documents.traces import Columns, Trace
from reproducer.trace.tracing import trace

STAMP = "[2026-12-01 02:05:14]"
DECODE = (
    f"{STAMP} Decode batch, #running-req: 1, #token: 341, token usage: 0.00, "
    "cuda graph: True, gen throughput (token/s): 61.48, #queue-req: 0"
)
PREFILL = (
    f"{STAMP} Prefill batch, #new-seq: 1, #new-token: 64, #cached-token: 32, token usage: 0.00, #running-req: 0, "
    "#queue-req: 0, #pending-token: 0, cuda graph: False, input throughput (token/s): 27.56"
)
REQUEST = (
    f"{STAMP} ReqTimeStats(rid=a1, input_len=472, cached_input_len=192, output_len=364, attempts=0, type=unified): "
    "queue_duration=1.64ms, initial_prefill_elapsed=85.09ms, post_prefill_elapsed=2270.33ms, "
    "forward_duration=2355.41ms, entry_time=1787601371.304"
)
OTHER = f'{STAMP} INFO:     127.0.0.1:52260 - "GET /health HTTP/1.1" 503 Service Unavailable'


def request(rid: str, entered: float, forward: float, *, queue: float = 0.0, output: int = 10) -> str:
    """The report of a request; times in seconds."""
    return (
        f"{STAMP} ReqTimeStats(rid={rid}, input_len=10, cached_input_len=0, output_len={output}, type=unified): "
        f"queue_duration={queue * 1000:.2f}ms, forward_duration={forward * 1000:.2f}ms, entry_time={entered:.3f}"
    )


def traced(folder: Path, *lines: str | bytes, end: bytes = b"\n") -> Trace:
    """The trace of a log of these lines."""
    path = folder / "server.log"
    path.write_bytes(b"\n".join(line.encode() if isinstance(line, str) else line for line in lines) + end)
    return trace([path]).trace


def listed(found: Trace) -> Columns:
    """The requests of a trace, one by one."""
    assert found.requests.listed is not None
    return found.requests.listed


def damage(found: Trace) -> dict[str, int]:
    """How many lines are damaged, by kind."""
    return {each.kind: each.lines for each in found.damage}

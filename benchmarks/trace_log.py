"""How fast `penny trace` reads a log, and what it keeps of it, beside tools that only count in it.

A log of an SGLang server is generated: telemetry, requests and access lines of 0.5.23 in turn, at 1, 2 and 4 times the
size. Every arm is a process of its own, one after the other, several times over; processor seconds, wall seconds and
peak memory are what the kernel counted for it. `wc` counts the lines, `grep` the reports of requests, and `python`
splits the file into lines and does nothing with them.

Exits 1 where 5 million lines take more than 60 processor seconds or more than 1 GB, or where four times the lines take
more than five times as long.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

LINES = 5_000_000
MOST_SECONDS, MOST_BYTES, MOST_GROWTH = 60.0, 1_000_000_000, 5.0
_BATCH = 20_000
_SPLIT = "import sys\nfor _ in open(sys.argv[1], 'rb'): pass"


@dataclass(frozen=True)
class Run:
    """What one process took."""

    processor: float
    wall: float
    peak: int


def main() -> int:
    """Generate, measure and judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--lines", type=int, default=LINES, help="lines of the largest log")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the log is generated; a temporary folder by default")
    asked = parser.parse_args()
    found: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        for share in (4, 2, 1):
            count = asked.lines // share
            log = Path(folder) / f"{count}.log"
            generate(log, count)
            for name, command in _arms(log).items():
                if share != 1 and name != "penny trace":
                    continue
                runs = [_run(command) for _ in range(asked.rounds)]
                found[f"{name}, {count} lines"] = _told(runs, count, log.stat().st_size)
                sys.stderr.write(f"{name}, {count} lines: {found[f'{name}, {count} lines']}\n")
            log.unlink()
    print(json.dumps(found, indent=2))
    return _judged(found, asked.lines)


def generate(log: Path, count: int, *, seed: int = 1) -> None:
    """Write a log of so many lines: of ten, six are telemetry of decoding, one of prefill, one a request."""
    chance = random.Random(seed)  # noqa: S311  lines of a benchmark
    with log.open("wb") as file:
        written = 0
        for lines in _batches(chance):
            chosen = lines[: count - written]
            file.write(("\n".join(chosen) + "\n").encode())
            written += len(chosen)
            if written == count:
                return


def _batches(chance: random.Random) -> Iterator[list[str]]:
    at = datetime(2026, 12, 1, tzinfo=UTC)
    number = 0
    while True:
        lines = []
        while len(lines) < _BATCH:
            at += timedelta(milliseconds=chance.randint(100, 900))
            stamp = f"[{at:%Y-%m-%d %H:%M:%S}]"
            running, tokens = chance.randint(1, 8), chance.randint(100, 350_000)
            lines += [
                f"{stamp} Decode batch, #running-req: {running}, #token: {tokens}, token usage: 0.42, "
                f"accept len: {chance.uniform(1, 8):.2f}, accept rate: {chance.random():.2f}, cuda graph: True, "
                f"gen throughput (token/s): {chance.uniform(20, 500):.2f}, #queue-req: {chance.randint(0, 3)}"
                for _ in range(6)
            ]
            lines.append(
                f"{stamp} Prefill batch, #new-seq: 1, #new-token: {chance.randint(1, 2048)}, #cached-token: "
                f"{chance.randint(0, 300_000)}, token usage: 0.42, #running-req: {running}, #queue-req: 0, "
                f"#pending-token: 0, cuda graph: False, input throughput (token/s): {chance.uniform(100, 9000):.2f}"
            )
            forward = chance.uniform(100, 60_000)
            lines.append(
                f"{stamp} ReqTimeStats(rid={number:032x}, input_len={tokens}, cached_input_len={tokens // 2}, "
                f"output_len={chance.randint(1, 4000)}, attempts=1, type=unified): "
                f"queue_duration={chance.uniform(0, 50):.2f}ms, initial_prefill_elapsed={forward * 0.2:.2f}ms, "
                f"post_prefill_elapsed={forward * 0.8:.2f}ms, forward_duration={forward:.2f}ms, "
                f"entry_time={at.timestamp() - forward / 1000:.3f}"
            )
            number += 1
            for asked in ("POST /v1/chat/completions", "GET /health"):
                client = f"127.0.0.1:{chance.randint(30_000, 60_000)}"
                lines.append(f'{stamp} INFO:     {client} - "{asked} HTTP/1.1" 200 OK')
        yield lines


def _arms(log: Path) -> dict[str, list[str]]:
    penny = [sys.executable, "-m", "reproducer", "trace", str(log), "--json", "--output", os.devnull]
    return {
        "penny trace": penny[:-2],
        "wc": ["wc", "-l", str(log)],
        "grep": ["grep", "-c", "ReqTimeStats", str(log)],
        "python": [sys.executable, "-c", _SPLIT, str(log)],
    }


def _run(command: list[str]) -> Run:
    since = time.monotonic()
    with tempfile.TemporaryFile() as told:  # GNU grep stops at the first match where its output is /dev/null
        process = subprocess.Popen(command, stdout=told, stderr=subprocess.PIPE)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    said = process.stderr.read() if process.stderr is not None else b""
    if process.stderr is not None:
        process.stderr.close()
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with {process.returncode}: {said.decode()}")
    return Run(used.ru_utime + used.ru_stime, time.monotonic() - since, used.ru_maxrss * 1024)


def _told(runs: list[Run], lines: int, size: int) -> dict[str, object]:
    processor = sorted(run.processor for run in runs)
    return {
        "processor_s": round(median(processor), 2),
        "processor_s_all": [round(each, 2) for each in processor],
        "wall_s": round(median(run.wall for run in runs), 2),
        "peak_MB": round(max(run.peak for run in runs) / 1e6, 1),
        "us_a_line": round(median(processor) / lines * 1e6, 2),
        "log_MB": round(size / 1e6, 1),
    }


def _judged(found: dict[str, dict[str, object]], lines: int) -> int:
    whole, quarter = found[f"penny trace, {lines} lines"], found[f"penny trace, {lines // 4} lines"]
    seconds, peak = float(str(whole["processor_s"])), float(str(whole["peak_MB"])) * 1e6
    growth = seconds / float(str(quarter["processor_s"]))
    scale = lines / LINES
    sys.stderr.write(f"{growth:.2f} times the processor seconds for 4 times the lines\n")
    held = seconds <= MOST_SECONDS * scale and peak <= MOST_BYTES and growth <= MOST_GROWTH
    return 0 if held else 1


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.exit(main())

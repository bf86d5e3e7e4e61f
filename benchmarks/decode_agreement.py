"""Whether penny's `decode.single`, SGLang's `bench_serving` and the engine's own log agree, on a live server.

`python -m benchmarks.decode_agreement URL LOG --store DIR`, with what `penny launch --detach --json` says. Both clients
ask in turn for one stream. The engine logs its rate every 40 tokens; of a request's lines the first is left out, since
the time before the request is in it. Each client is compared with the lines of its own request, so that a machine whose
speed changes between two requests does not matter; the clients are compared by these ratios.

Exits 1 where penny differs from the log or from `bench_serving` by more than 3 % in the median.
"""

import argparse
import re
import secrets
import sys
import time
from pathlib import Path
from statistics import harmonic_mean, median

from benchmarks.bench_serving import BenchServing
from reproducer.documents.measured import Sample
from reproducer.qualify.methods.registry import METHODS
from reproducer.qualify.target import Target

TOLERANCE = 0.03
PROMPT, OUTPUT = 64, 320
_LINE = re.compile(r"Decode batch.*#running-req: 1,.*gen throughput \(token/s\): ([\d.]+)")
_MEASURE = "decode.single/1"


def main() -> int:
    """Measure and judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("url")
    parser.add_argument("log", type=Path)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    other = BenchServing.of(options.store)
    penny(options.url)
    ratios: dict[str, list[float]] = {"penny": [], "bench_serving": []}
    for number in range(options.rounds):
        for client, told in ratios.items():
            before = options.log.stat().st_size
            if client == "penny":
                rate = penny(options.url)
            else:
                (rate,) = other.run(options.url, streams=1, prompt=PROMPT, output=OUTPUT).rates
            time.sleep(1)  # the log is written by another process
            engine = logged(options.log, before)
            told.append(rate / engine)
            print(
                f"round {number + 1}: {client:13} {rate:6.2f} tok/s, engine's log {engine:6.2f}, ratio {told[-1]:.4f}",
                flush=True,
            )
    log_ratio = median(ratios["penny"])
    other_ratio = median(ratios["bench_serving"])
    both = log_ratio / other_ratio
    print(f"penny ÷ log {log_ratio:.4f}, bench_serving ÷ log {other_ratio:.4f}, penny ÷ bench_serving {both:.4f}")
    return int(abs(log_ratio - 1) > TOLERANCE or abs(both - 1) > TOLERANCE)


def penny(url: str) -> float:
    """The rate of one sample of `decode.single`."""
    parameters = {"prompt_tokens": PROMPT, "output_tokens": OUTPUT}
    nonce = secrets.token_hex(8)
    observed = METHODS[_MEASURE].observe(Target(url), parameters, nonce, None)
    sample = Sample(index=0, boot="0" * 64, warmup=False, requests=observed.requests, facts={"nonce": nonce})
    faults = list(METHODS[_MEASURE].faults(parameters, sample, None))
    if faults:
        raise SystemExit(f"invalid: {faults}")
    return next(
        found.value
        for name, found in METHODS[_MEASURE].values(parameters, sample, None)
        if name == "decode_rate" and found
    )


def logged(log: Path, start: int) -> float:
    """The engine's own rate, over the lines that it has written since the log was so long."""
    with log.open("rb") as file:
        file.seek(start)
        rates = [float(found[1]) for line in file if (found := _LINE.search(line.decode(errors="replace")))]
    if len(rates) < 3:  # noqa: PLR2004  one is left out, and one is no rate
        raise SystemExit(f"{log} has {len(rates)} lines of decoding for this request")
    return harmonic_mean(rates[-(OUTPUT // 40 - 1) :])


if __name__ == "__main__":
    sys.exit(main())

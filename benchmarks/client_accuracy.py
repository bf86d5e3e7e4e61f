"""How exact the measuring client is, beside SGLang's `bench_serving`, against a server with a known schedule.

With `--store DIR`, a store with a built SGLang runtime, `bench_serving` is run beside it. Streams of 200 tokens a
second, 1, 4 and 64 at once; every arm in a process of its own, one after the other, several times over. Rate and time
to the first token are compared with what the server did: it tells when it read each request and when each token left.
`penny, view` is the client while its live view is drawn in a terminal. `--first` gives the server and all clients
first call on the processors (SCHED_RR, needs root): on a machine where others work, that is what an idle one looks
like.

Exits 1 where penny's median rate is off by more than 0.2 %, its median first token by more than 2 ms, or either by more
than `bench_serving`'s.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.bench_serving import BenchServing, Reported
from reproducer.cli.console import PlainConsole
from reproducer.cli.live import LiveView
from reproducer.qualify.answers import generated
from reproducer.qualify.client import ask, together
from reproducer.qualify.flight import Flight
from reproducer.qualify.methods.rules import decoding, to_first
from tests.qualify.paced import native, paced

FIRST_MS, RATE, TOKENS = 50, 200, 600
STREAMS = (1, 4, 64)
RATE_TOLERANCE, FIRST_TOLERANCE_MS = 0.002, 2.0
FLOOR_RATE, FLOOR_FIRST_MS = 0.0001, 0.1  # below this, closer is luck
ARMS = ("penny", "penny, view", "bench_serving")


@dataclass(frozen=True)
class Error:
    """How far one release was off: in the median over its streams, and at the worst stream."""

    rate: float
    rate_worst: float
    first_ms: float
    first_worst_ms: float


def main() -> int:
    """Measure and judge, or be one arm."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--store", type=Path, help="a store with a built SGLang runtime")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--streams", type=int, nargs="+", default=STREAMS)
    parser.add_argument("--first", action="store_true", help="first call on the processors for server and clients")
    parser.add_argument("--arm", nargs=2, metavar=("URL", "STREAMS"), help=argparse.SUPPRESS)
    parser.add_argument("--view", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.arm:
        return be_an_arm(options.arm[0], int(options.arm[1]), view=options.view)
    other = BenchServing.of(options.store) if options.store else None
    prefix = ("chrt", "--rr", "10") if options.first else ()
    worse = False
    print(f"{'streams':>7} {'client':14} {'rate off by, %':>24} {'first token off by, ms':>26}")
    with tempfile.TemporaryDirectory() as folder:
        schedule = ("--first-ms", str(FIRST_MS), "--gap-ms", str(1000 / RATE))
        with paced(Path(folder), *schedule, prefix=prefix) as url:
            together(url, [native(tokens=TOKENS)])  # the server encodes its answers once
            for streams in options.streams:
                worse |= compared(url, streams, options.rounds, other, prefix)
    return int(worse)


def compared(url: str, streams: int, rounds: int, other: BenchServing | None, prefix: tuple[str, ...]) -> bool:
    """Whether penny's client is off by too much, or by more than the other one, at so many streams."""
    errors: dict[str, list[Error]] = {}
    for _ in range(rounds):
        for arm in ARMS if other else ARMS[:2]:
            ask(url, "/sent")
            if arm == "bench_serving" and other:
                reported = other.run(url, streams=streams, prompt=64, output=TOKENS, prefix=prefix)
            else:
                reported = penny(url, streams, prefix, view=arm == "penny, view")
            errors.setdefault(arm, []).append(off(reported, url, streams))
    middle = {
        arm: {key: median(getattr(each, key) for each in found) for key in vars(found[0])}
        for arm, found in errors.items()
    }
    for arm, found in middle.items():
        rate = f"{100 * found['rate']:.4f}, worst {100 * found['rate_worst']:.4f}"
        first = f"{found['first_ms']:.2f}, worst {found['first_worst_ms']:.2f}"
        print(f"{streams:7} {arm:14} {rate:>24} {first:>26}", flush=True)
    ours, theirs = middle["penny"], middle.get("bench_serving")
    if theirs:
        ratios = [max(theirs[key], 1e-9) / max(ours[key], 1e-9) for key in ("rate", "first_ms")]
        print(
            f"{streams:7} errors of bench_serving ÷ errors of penny: rate {ratios[0]:.1f}, first token {ratios[1]:.1f}"
        )
    return (
        ours["rate"] > RATE_TOLERANCE
        or ours["first_ms"] > FIRST_TOLERANCE_MS
        or (theirs is not None and ours["rate"] > max(theirs["rate"], FLOOR_RATE))
        or (theirs is not None and ours["first_ms"] > max(theirs["first_ms"], FLOOR_FIRST_MS))
    )


def off(reported: Reported, url: str, streams: int) -> Error:
    """What a client reported against what the server did.

    The streams have no names that both sides know, so the slowest is compared with the slowest, and so on.
    """
    told = [
        each["sent_ns"] + [each["begun_ns"]] for each in ask(url, "/sent")["streams"] if len(each["sent_ns"]) == TOKENS
    ]
    told = told[-streams:]
    if not len(told) == len(reported.rates) == streams:
        raise SystemExit(f"{len(reported.rates)} streams were reported, the server saw {len(told)}")
    rates = sorted((TOKENS - 1) * 1e9 / (each[TOKENS - 1] - each[0]) for each in told)
    firsts = sorted((each[0] - each[-1]) / 1e6 for each in told)
    rate = [abs(got / true - 1) for got, true in zip(sorted(reported.rates), rates, strict=True)]
    first = [abs(got * 1000 - true) for got, true in zip(sorted(reported.firsts), firsts, strict=True)]
    return Error(median(rate), max(rate), median(first), max(first))


def penny(url: str, streams: int, prefix: tuple[str, ...], *, view: bool) -> Reported:
    """What penny's client reports, from a process of its own."""
    words = [*prefix, sys.executable, "-m", "benchmarks.client_accuracy", "--arm", url, str(streams)]
    if view:
        words = [*words, "--view"]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    rates, firsts = json.loads(done.stdout)
    return Reported(tuple(rates), tuple(firsts))


def be_an_arm(url: str, streams: int, *, view: bool) -> int:
    """One release of streams; says each one's rate and time to the first token."""
    asked, flight = [native(tokens=TOKENS)] * streams, Flight()
    with viewed(flight) if view else nullcontext():
        exchanges = together(url, asked, flight=flight)
    records = [generated(each, got, 0) for each, got in zip(asked, exchanges, strict=True)]
    if faults := [record.error for record in records if record.error]:
        raise SystemExit(f"faults: {faults}")
    rates = [rate.value for record in records if (rate := decoding(record))]
    print(json.dumps([rates, [to_first(record) / 1e9 for record in records]]))
    return 0


@contextmanager
def viewed(flight: Flight) -> Iterator[None]:
    """Draw the live view in a terminal that another process reads."""
    reader, writer = os.openpty()
    with (
        subprocess.Popen(["/bin/cat"], stdin=reader, stdout=subprocess.DEVNULL) as screen,
        os.fdopen(writer, "w") as terminal,
    ):
        view = LiveView(PlainConsole(file=terminal, force_terminal=True, width=80))
        view.show("decode.concurrent/1  sample 3 of 10, boot 1", 12, 60, flight, 100.0)
        try:
            yield
        finally:
            view.close()
            screen.kill()


if __name__ == "__main__":
    sys.exit(main())

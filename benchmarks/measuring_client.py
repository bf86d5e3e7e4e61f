"""How exact the measuring client is: a local server with a known token schedule, rate and time to first token.

Run it on an idle machine: `python -m benchmarks.measuring_client`. The server sends a token every 10 ms after 30 ms. It
prints how far the measured rate lies from the schedule and how late the first token is seen, over 10 requests, and
exits 1 where the rate is off by more than 0.2 % or the median first token is more than 2 ms late.
"""

import statistics
import sys
import tempfile
from pathlib import Path

from reproducer.qualify.answers import generated
from reproducer.qualify.client import call, together
from reproducer.qualify.prompts import ids_sha256
from reproducer.qualify.quantities import CompletedRequestRate
from tests.qualify.servers import Boots

FIRST_MS, GAP_MS, TOKENS, REQUESTS = 30, 10, 101, 10
RATE_TOLERANCE, FIRST_TOLERANCE_MS = 0.002, 2.0


def main() -> int:
    """Measure and judge."""
    rates, firsts = [], []
    with tempfile.TemporaryDirectory() as folder:
        boots = Boots(Path(folder), ["--first-ms", str(FIRST_MS), "--gap-ms", str(GAP_MS)])
        with boots.boot() as server:
            for number in range(REQUESTS):
                ids = [number] * 64
                payload = {"input_ids": ids, "sampling_params": {"max_new_tokens": TOKENS}, "stream": True}
                each = call("/generate", payload, ids_sha256(ids))
                (exchange,) = together(server.url, [each])
                record = generated(each, exchange, exchange.sent_ns)
                (begun, first), (ended, last) = record.events[0], record.events[-1]
                rate = CompletedRequestRate.over(last - first, ended - begun)
                rates.append(rate.value if rate is not None else 0.0)
                firsts.append(begun / 1e6 - FIRST_MS)
    off = [abs(rate * GAP_MS / 1000 - 1) for rate in rates]
    print(f"rate: off by {100 * statistics.median(off):.3f} % in the median, {100 * max(off):.3f} % at most")
    print(f"first token: {statistics.median(firsts):.2f} ms late in the median, {max(firsts):.2f} ms at most")
    return int(statistics.median(off) > RATE_TOLERANCE or statistics.median(firsts) > FIRST_TOLERANCE_MS)


if __name__ == "__main__":
    sys.exit(main())

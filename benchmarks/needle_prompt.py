"""How fast a needle prompt of exactly 490,000 tokens is generated and counted, and in how much memory.

`python -m benchmarks.needle_prompt TOKENIZER_JSON` with the `tokenizers` package; every run is a process of its own, so
that its peak memory is the run's. The text is counted as `needle/1` counts it, one round of sentences and the rest.
Then, outside the time, the whole text is encoded once: it must have exactly as many tokens, and that time is the first
peer: a generator that counts its finished text even once cannot be faster. The second peer is the generator of
lm-evaluation-harness's RULER (`pip install lm-eval[ruler]`), with three needles and its own sentences that repeat. It
encodes its text after every 25 of them, so it is asked for 16,384 tokens only, and comes near them from below.

Prints medians of five runs and exits 1 where 490,000 tokens take 5 s or 500 MB, are not exact, or where either peer is
faster.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reproducer.qualify.haystack import fitted, haystack

TOKENS, PEER_TOKENS, RUNS = 490_000, 16_384, 5
MOST_S, MOST_MB = 5.0, 500.0
TEMPLATE = (
    "Some special magic {type_needle_v} are hidden within the following text. I will quiz you about them afterwards.\n"
    "{context}\nWhat are all the special magic {type_needle_v} for {query} mentioned in the provided text?"
)


def main() -> int:
    """Measure and judge."""
    if len(sys.argv) > 2:  # noqa: PLR2004  a run of one contestant in a process of its own
        print(json.dumps(CONTESTANTS[sys.argv[1]](sys.argv[2])))
        return 0
    tokenizer = sys.argv[1] if sys.argv[1:] else ""
    if not Path(tokenizer).is_file():
        print("name a tokenizer.json, such as the one of a checkpoint in the store")
        return 1
    found = {name: [run(name, tokenizer) for _ in range(RUNS)] for name in CONTESTANTS}
    for name, runs in found.items():
        seconds = [each["seconds"] for each in runs if each]
        if not seconds:
            print(f"{name}: it is not installed, so there is nothing to compare with")
            continue
        spread = f"{min(seconds):.2f} to {max(seconds):.2f}"
        most = max(each["megabytes"] for each in runs)
        print(f"{name}: {statistics.median(seconds):.2f} s ({spread}), {most:.0f} MB, {runs[0]['tokens']} tokens")
    return judge(found)


def judge(found: dict[str, list[dict[str, Any]]]) -> int:
    """Whether all that was asked for holds."""

    def median(name: str, value: str = "seconds") -> float:
        return float(statistics.median(each[value] for each in found[name] if each))

    long = found["needle/1"]
    exact = all(each["tokens"] == TOKENS for each in long)
    holds = exact and median("needle/1") < MOST_S and max(each["megabytes"] for each in long) < MOST_MB
    whole = median("needle/1", "whole_s") / median("needle/1")
    print(f"exact: {exact}; one whole encoding by `tokenizers` takes {whole:.1f} times as long")
    if not all(found["lm-eval RULER, 16K"]):
        return 1
    ruler = median("lm-eval RULER, 16K") / median("needle/1, 16K")
    print(f"lm-evaluation-harness's RULER takes {ruler:.1f} times as long at {PEER_TOKENS} tokens")
    return int(not holds or min(whole, ruler) < 1)


def run(name: str, tokenizer: str) -> dict[str, Any]:
    """One contestant once, in a process of its own; empty where it is not installed."""
    command = [sys.executable, "-m", "benchmarks.needle_prompt", name, tokenizer]
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        if "ModuleNotFoundError: No module named 'lm_eval" in done.stderr:
            return {}
        sys.exit(done.stderr)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def ours(tokenizer: str, tokens: int) -> dict[str, Any]:
    """The time from nothing but a loaded tokenizer to the finished text, and afterwards its whole encoding."""
    encode = encoder(tokenizer)
    begun = time.perf_counter()
    fit = fitted("benchmark", tokens, lambda text: len(encode(text)))
    text = haystack("benchmark", sentences=fit.sentences, padding=fit.padding) if fit is not None else ""
    seconds, megabytes = time.perf_counter() - begun, peak()
    begun = time.perf_counter()
    whole = len(encode(text))
    return {
        "seconds": seconds,
        "megabytes": megabytes,
        "tokens": whole,
        "whole_s": time.perf_counter() - begun,
    }


def ruler(tokenizer: str) -> dict[str, Any]:
    """The generator of RULER in lm-evaluation-harness."""
    from lm_eval.tasks.ruler.prepare_niah import generate_samples, get_haystack

    encode = encoder(tokenizer)

    class Tokenizer:
        def __call__(self, text: str) -> Any:
            self.input_ids = encode(text)
            return self

    sentences = get_haystack("repeat")
    begun = time.perf_counter()
    (sample,) = generate_samples(
        sentences,
        TOKENIZER=Tokenizer(),
        max_seq_length=PEER_TOKENS,
        type_haystack="repeat",
        type_needle_k="words",
        type_needle_v="numbers",
        template=TEMPLATE,
        num_samples=1,
        tokens_to_generate=0,
        num_needle_k=3,
        num_needle_q=3,
    )
    return {"seconds": time.perf_counter() - begun, "megabytes": peak(), "tokens": sample["length"]}


def encoder(tokenizer: str) -> Callable[[str], list[int]]:
    """The ids of a text, as the checkpoint's tokenizer gives them."""
    from tokenizers import Tokenizer

    loaded = Tokenizer.from_file(tokenizer)
    return lambda text: list(loaded.encode(text, add_special_tokens=False).ids)


def peak() -> float:
    """The most memory that this process ever had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


CONTESTANTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "needle/1": lambda tokenizer: ours(tokenizer, TOKENS),
    "needle/1, 16K": lambda tokenizer: ours(tokenizer, PEER_TOKENS),
    "lm-eval RULER, 16K": ruler,
}

if __name__ == "__main__":
    sys.exit(main())

"""SGLang's own `bench_serving`, run beside penny's client: it comes with the engine's package in a built runtime."""

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Reported:
    """What a client says of each stream of one release: tokens a second after the first one, seconds to that one."""

    rates: tuple[float, ...]
    firsts: tuple[float, ...]


@dataclass(frozen=True)
class BenchServing:
    """The program in the runtime of a store.

    Attributes:
        python: the runtime's interpreter.
        checkpoint: where its tokenizer is read from.
    """

    python: Path
    checkpoint: Path

    @classmethod
    def of(cls, store: Path) -> "BenchServing":
        """The one of the first SGLang runtime in a store."""
        packages = next(store.glob("entries/environment/*/content/venv/lib/python3*/site-packages/sglang"))
        checkpoint = next(store.glob("entries/checkpoint/*/content/checkpoint"))
        return cls(packages.parents[3] / "bin" / "python", checkpoint)

    def run(self, url: str, *, streams: int, prompt: int, output: int, prefix: Sequence[str] = ()) -> Reported:
        """Release so many streams at once; `prefix` is a command that runs another one, such as `chrt`."""
        with tempfile.TemporaryDirectory() as folder:
            result = Path(folder, "result.jsonl")
            # It imports this for one of its data sets; a runtime that serves does not have it.
            Path(folder, "datasets.py").write_text("load_dataset = None\n", encoding="utf-8")
            settings = {
                "--backend": "sglang",
                "--base-url": url,
                "--model": self.checkpoint,
                "--dataset-name": "random-ids",
                "--num-prompts": streams,
                "--random-input-len": prompt,
                "--random-output-len": output,
                "--random-range-ratio": 1,
                "--warmup-requests": 1,
                "--output-file": result,
            }
            words = [str(word) for pair in settings.items() for word in pair]
            command = [*prefix, str(self.python), "-m", "sglang.bench_serving", *words]
            environment = os.environ | {
                "PYTHONPATH": folder,
                "PYTHONDONTWRITEBYTECODE": "1",
                "SGLANG_USE_CPU_ENGINE": "1",  # the patched package imports without triton then
            }
            done = subprocess.run(
                [*command, "--disable-tqdm", "--output-details"],
                env=environment,
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode or not result.exists():
                raise SystemExit(f"bench_serving failed:\n{done.stderr[-2000:]}")
            told = json.loads(result.read_text(encoding="utf-8").splitlines()[-1])
        if any(told["errors"]):
            raise SystemExit(f"bench_serving: {told['errors']}")
        rates = tuple(len(gaps) / sum(gaps) for gaps in told["itls"])
        return Reported(rates, tuple(told["ttfts"]))

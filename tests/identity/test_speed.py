"""Quick enough to run on every commit, and light enough to run anywhere."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from reproducer.identity.diff import diff
from reproducer.identity.namespace import derive
from tests.identity.factory import Edit, make_lock, sha256

ROOT = Path(__file__).parents[2]
HEAVY = ("httpx", "huggingface_hub", "numpy", "rich", "sglang", "torch", "transformers", "typer", "uv")


def _with_files(salt: str) -> Edit:
    def edit(data: dict[str, Any]) -> None:
        data["checkpoints"][0]["files"].extend(
            {"path": f"shard-{index:05}.safetensors", "sha256": sha256(f"{salt}{index}"), "size": index}
            for index in range(500)
        )

    return edit


def test_five_hundred_files_take_no_time() -> None:
    """Deriving and comparing in well under the time of starting an interpreter, measured by the processor's clock."""
    one, two = make_lock(_with_files("a")), make_lock(_with_files("b"))
    best = min(_seconds(one, two) for _ in range(3))

    assert len(diff(one, two).changes) == 500
    assert best < 0.2  # 0.03 on an idle machine


def _seconds(one: Any, two: Any) -> float:
    since = time.process_time()
    derive(one)
    diff(one, two)
    return time.process_time() - since


def test_nothing_heavy_is_imported() -> None:
    """A namespace and a difference need no engine, no network client and nothing that draws."""
    script = (
        "import sys; import reproducer.identity.diff; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    loaded = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True).stdout

    assert not set(loaded.split()) & set(HEAVY)

"""Light enough to run anywhere."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAVY = ("httpx", "huggingface_hub", "numpy", "rich", "sglang", "torch", "transformers", "typer", "uv")


def test_nothing_heavy_is_imported() -> None:
    """A namespace and a difference need no engine, no network client and nothing that draws."""
    listed = "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    script = f"import sys; import reproducer.difference.diff; {listed}"
    loaded = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True).stdout

    assert not set(loaded.split()) & set(HEAVY)

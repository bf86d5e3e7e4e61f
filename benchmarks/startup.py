"""How long `penny --help` and other light commands take, in units of a bare `import typer` in the same run.

Run: python benchmarks/startup.py
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

REPEATS = 15
LOCK = Path(__file__).parents[1] / "penny.lock.toml"


def seconds(arguments: list[str]) -> float:
    """Wall time of one process."""
    since = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - since


def main() -> None:
    """Interleave the arms, print medians and ratios."""
    arms = {
        "import typer": ["-c", "import typer"],
        "penny --help": ["-m", "reproducer", "--help"],
        "penny --version": ["-m", "reproducer", "--version"],
        "penny namespace": ["-m", "reproducer", "namespace", "--lock", str(LOCK)],
        "penny diff": ["-m", "reproducer", "diff", str(LOCK), str(LOCK)],
    }
    times: dict[str, list[float]] = {name: [] for name in arms}
    for _ in range(REPEATS):
        for name, arguments in arms.items():
            times[name].append(seconds(arguments))
    unit = statistics.median(times["import typer"])
    print(f"{'':<18}{'median ms':>10}{'ratio':>8}{'min ms':>9}{'max ms':>9}")
    for name, values in times.items():
        median = statistics.median(values)
        print(f"{name:<18}{median * 1e3:>10.0f}{median / unit:>8.2f}{min(values) * 1e3:>9.0f}{max(values) * 1e3:>9.0f}")


if __name__ == "__main__":
    main()

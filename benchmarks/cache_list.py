"""How near `penny cache list` comes to the machine: its time over that of `du -s` and `find` on the same tree.

Run it on an idle machine: `python -m benchmarks.cache_list FOLDER [FILES] [NAMESPACES]`. It fills FOLDER once, if it is
not there, with 1,000,000 files in 200 namespaces (two a page, each of one block, no hard links, none empty), which
takes minutes, and leaves it there for the next time. Each contestant runs in a process of its own, one after the
other, three rounds after one that does not count. It prints medians and the peak memory of penny, and exits 1 where the
list takes more than 10 seconds a million files, or more than 200 MB.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 3
FILES, NAMESPACES = 1_000_000, 200
MOST_SECONDS, MOST_BYTES = 10.0, 200e6


def main() -> int:
    """Make the tree, measure and judge."""
    folder = Path(sys.argv[1])
    files = int(sys.argv[2]) if len(sys.argv) > 2 else FILES  # noqa: PLR2004  the place of an argument
    namespaces = int(sys.argv[3]) if len(sys.argv) > 3 else NAMESPACES  # noqa: PLR2004  the place of an argument
    if not folder.exists():
        make_tree(folder, files, namespaces)
    penny = [sys.executable, "-m", "reproducer", "cache", "list", "--json", "--quiet", "--kv", str(folder)]
    contestants = {
        "penny cache list": penny,
        "du -s": ["du", "-s", str(folder)],
        "find -size +0": ["find", str(folder), "-type", "f", "-size", "+0", "-printf", "."],
    }
    times: dict[str, list[float]] = {name: [] for name in contestants}
    peak = 0
    for turn in range(ROUNDS + 1):
        for name, command in contestants.items():
            seconds, memory, output = timed(command)
            if turn:
                times[name].append(seconds)
            if command is penny:
                peak = max(peak, memory)
                found = json.loads(output)["namespaces"]
    counted = sum(entry["files"] for entry in found)
    print(f"{counted} files in {len(found)} namespaces, {len(os.sched_getaffinity(0))} processors")
    medians = {name: statistics.median(each) for name, each in times.items()}
    for name, median in medians.items():
        ratio = medians["penny cache list"] / median
        print(f"{name}: {median:.2f} s ({min(times[name]):.2f} to {max(times[name]):.2f}), ratio {ratio:.2f}")
    print(f"peak memory of penny: {peak / 1e6:.0f} MB")
    share = counted / 1e6
    return int(not found or medians["penny cache list"] > MOST_SECONDS * share or peak > MOST_BYTES)


def timed(command: list[str]) -> tuple[float, int, bytes]:
    """Seconds, peak memory of this process's largest child so far in bytes, and what it said."""
    begun = time.perf_counter()
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    seconds = time.perf_counter() - begun
    return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, ended.stdout


def make_tree(folder: Path, files: int, namespaces: int) -> None:
    """Fill a folder with namespaces whose pages are of one block."""
    for number in range(namespaces):
        digest = f"{number:012x}".ljust(64, "0")
        name = f"model-sglang-{digest[:12]}"
        pages = folder / name / "pages"
        pages.mkdir(parents=True)
        document = {"digest": digest, "factors": {}, "format": "penny-namespace/1", "namespace": name}
        (folder / name / "factors.json").write_text(json.dumps(document), encoding="utf-8")
        for page in range(files // namespaces):
            half = "kv"[page % 2]
            (pages / f"{page // 2:064x}_model_0_1_{half}").write_bytes(b"page")


if __name__ == "__main__":
    sys.exit(main())

"""How near `hash_tree` comes to the machine: its time over that of `sha256sum` and `openssl dgst` run in parallel.

Run it on an idle machine: `python -m benchmarks.hashing [FOLDER]`. Without a folder it makes a tree shaped like an
environment (one file of 400 MB, 40 of 10 MB, 20,000 of 2 to 40 kB). Everything is read once before, so that the disk
does not count. It prints the medians of five interleaved runs and exits 1 where `hash_tree` takes more than twice the
time of the faster tool.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from reproducer.store.hashing import hash_tree, tree_digest

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 5
MOST = 2.0
LARGE, MIDDLE, SMALL = 400 << 20, 10 << 20, 20_000


def main() -> int:
    """Measure and judge."""
    if len(sys.argv) > 1:
        return judge(Path(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        make_tree(Path(folder))
        return judge(Path(folder))


def make_tree(root: Path) -> None:
    """Fill a folder with files of the sizes that an environment has."""
    block = os.urandom(1 << 20)
    (root / "large").write_bytes(block * (LARGE >> 20))
    for number in range(40):
        (root / f"middle-{number}").write_bytes(block * (MIDDLE >> 20))
    for number in range(SMALL):
        folder = root / f"package-{number // 200}"
        folder.mkdir(exist_ok=True)
        (folder / f"module-{number}.py").write_bytes(block[number : number + 2048 + number * 7919 % 38000])


def judge(folder: Path) -> int:
    """Time all of them on one folder."""
    processors = str(len(os.sched_getaffinity(0)))
    contestants: dict[str, Callable[[], object]] = {"hash_tree": lambda: hash_tree(folder)}
    for name, command in (("sha256sum", ["sha256sum"]), ("openssl", ["openssl", "dgst", "-sha256"])):
        if shutil.which(name):
            contestants[name] = lambda command=command: in_parallel(folder, command, processors)  # type: ignore[misc]
    digest = tree_digest(hash_tree(folder))
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, run in contestants.items():
            begun = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - begun)
    print(f"{digest.files} files, {digest.bytes / 1e9:.2f} GB, {processors} processors")
    medians = {name: statistics.median(each) for name, each in times.items()}
    for name, seconds in medians.items():
        spread = f"{min(times[name]):.2f} to {max(times[name]):.2f}"
        print(f"{name}: {seconds:.2f} s ({spread}), {digest.bytes / seconds / 1e9:.2f} GB/s")
    others = [seconds for name, seconds in medians.items() if name != "hash_tree"]
    if not others:
        print("neither sha256sum nor openssl is here: nothing to compare with")
        return 1
    ratio = medians["hash_tree"] / min(others)
    print(f"ratio to the faster tool: {ratio:.2f}, at most {MOST}")
    return int(ratio > MOST)


def in_parallel(folder: Path, command: list[str], processors: str) -> None:
    """Hash every file of a folder with a command-line tool, one process a processor."""
    with subprocess.Popen(["find", str(folder), "-type", "f", "-print0"], stdout=subprocess.PIPE) as found:  # noqa: S607
        subprocess.run(
            ["xargs", "-0", "-P", processors, "-n", "512", *command],  # noqa: S607  the tools of the reader's path
            stdin=found.stdout,
            stdout=subprocess.DEVNULL,
            check=True,
        )


if __name__ == "__main__":
    sys.exit(main())

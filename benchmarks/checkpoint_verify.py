"""How fast a checkpoint folder is verified, beside the same number of `openssl dgst` processes and model_signing.

`python -m benchmarks.checkpoint_verify [--gb N] [--workers N] [--rounds N] [--folder DIR] [--from memory|disk]`.
It makes N GB (20, or as much as half of the free disk holds, and says so) in the shape of a checkpoint with its draft:
shards of 5/20 of the folder, a last one and a draft that are smaller, and sixty small files. Then it times in turn, in
every round and each round in another order: penny's verification, `openssl dgst -sha256` with as many processes at once
as penny has threads, and model_signing's hashing with as many workers. Each contestant is a process of its own; the
time that Python takes to import either library is left out, for it does not grow with the folder.

`--from memory` reads everything once before; `--from disk` drops the folder from the page cache before each run, which
is what a folder larger than half of the free memory gets by itself. Other load on the machine is common to all of one
round, so a bar is held against the median of the ratios within the rounds. Exits 1 where a bar is missed: 0.9 of the
rate of openssl, faster than model_signing, 200 MB.
"""

import argparse
import importlib.util
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

SHARDS = {
    "model-00001-of-00004.safetensors": 5.0,
    "model-00002-of-00004.safetensors": 5.0,
    "model-00003-of-00004.safetensors": 4.9,
    "model-00004-of-00004.safetensors": 2.3,
    "draft/model.safetensors": 2.8,
}
SMALL_FILES, SMALL_BYTES = 60, 40_000
WANTED_GB = 20.0
LEAST_OF_OPENSSL, MOST_MB = 0.9, 200
_BLOCK = 8 << 20
_PENNY = """
import json, resource, sys, time
from pathlib import Path
from reproducer.hub.checking import Place, verified
from reproducer.hub.listing import HubFile
from reproducer.progress import Silent

known = json.loads(sys.stdin.read())
places = [Place(HubFile(path, size, None, sha256), Path(path)) for path, (sha256, size) in known.items()]
begun, used = time.perf_counter(), time.process_time()
faults = verified(places, reporter=Silent(), workers=int(sys.argv[1]))
seconds, used = time.perf_counter() - begun, time.process_time() - used
assert not faults, faults
print(seconds, used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
_SIGNING = """
import sys, time
from model_signing import hashing

begun, used = time.perf_counter(), time.process_time()
hashing.Config().use_file_serialization(max_workers=int(sys.argv[1])).hash(sys.argv[2])
print(time.perf_counter() - begun, time.process_time() - used)
"""


class Run(NamedTuple):
    """One contestant, once."""

    seconds: float
    processor: float
    memory: int


def main() -> int:
    """Measure and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, help="size of the folder in 10**9 bytes")
    parser.add_argument("--workers", type=int, help="threads and processes; default: as many as penny takes")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="where to make the shards; default: the folder for temporary files")
    parser.add_argument("--from", dest="source", choices=("memory", "disk"), help="default: what the size allows")
    asked = parser.parse_args()
    import psutil

    from reproducer.store.hashing import workers_here

    with tempfile.TemporaryDirectory(prefix="penny-checkpoint-", dir=asked.folder) as made:
        folder = Path(made)
        size = _size(asked.gb, folder)
        source = asked.source or ("disk" if size > psutil.virtual_memory().available / 2 else "memory")
        known = make_checkpoint(folder, size)
        runs = timed(folder, known, asked.workers or workers_here(), asked.rounds, cold=source == "disk")
        total = sum(each for _, each in known.values())
        processors = len(os.sched_getaffinity(0))
        print(f"{len(known)} files, {total / 1e9:.2f} GB from {source}, {processors} processors, {asked.rounds} rounds")
        return judge(runs, total)


def _size(asked: float | None, folder: Path) -> int:
    """Bytes to make: what was asked for, or what the disk here allows."""
    if asked is not None:
        return int(asked * 1e9)
    allowed = shutil.disk_usage(folder).free / 2 / 1e9
    if allowed < WANTED_GB:
        print(f"the disk holds {allowed:.1f} GB instead of {WANTED_GB:.0f} GB: the bar is for {WANTED_GB:.0f}")
    return int(min(WANTED_GB, allowed) * 1e9)


def make_checkpoint(folder: Path, size: int) -> dict[str, tuple[str, int]]:
    """Fill a folder; sha256 and size by path, as sha256sum has them."""
    (folder / "draft").mkdir()
    for name, share in SHARDS.items():
        block, left = os.urandom(_BLOCK), int(size * share / sum(SHARDS.values()))
        with (folder / name).open("wb") as file:
            while left > 0:
                file.write(block[: min(left, _BLOCK)])
                left -= _BLOCK
            os.fsync(file.fileno())
    for number in range(SMALL_FILES):
        (folder / f"small-{number:02}.json").write_bytes(os.urandom(SMALL_BYTES))
    paths = sorted(str(path) for path in folder.rglob("*") if path.is_file())
    sums = subprocess.run(["sha256sum", *paths], capture_output=True, text=True, check=True).stdout  # noqa: S607
    return {line[66:]: (line[:64], Path(line[66:]).stat().st_size) for line in sums.splitlines()}


def timed(
    folder: Path, known: dict[str, tuple[str, int]], workers: int, rounds: int, *, cold: bool
) -> dict[str, list[Run]]:
    """Every contestant's runs, round by round."""
    contestants = {
        "penny": [sys.executable, "-c", _PENNY, str(workers)],
        "openssl": ["xargs", "-0", "-n", "1", "-P", str(workers), "openssl", "dgst", "-sha256"],
    }
    if importlib.util.find_spec("model_signing"):
        contestants["model_signing"] = [sys.executable, "-c", _SIGNING, str(workers), str(folder)]
    given = {"penny": json.dumps(known), "openssl": "\0".join(known)}
    runs: dict[str, list[Run]] = {name: [] for name in contestants}
    names = list(contestants)
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            if cold:
                _forget(list(known))
            before, begun = _processor_seconds(), time.perf_counter()
            done = subprocess.run(
                contestants[name], input=given.get(name, ""), capture_output=True, text=True, check=True
            )
            seconds, processor = time.perf_counter() - begun, _processor_seconds() - before
            if name != "openssl":
                seconds, processor, *_ = (float(word) for word in done.stdout.split())
            runs[name].append(Run(seconds, processor, int(done.stdout.split()[2]) if name == "penny" else 0))
    return runs


def _forget(paths: list[str]) -> None:
    """Drop the files from the page cache."""
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)


def _processor_seconds() -> float:
    """What all ended processes of this one took so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def judge(runs: dict[str, list[Run]], total: int) -> int:
    """Print what was measured; 1 where a bar is missed."""
    for name, each in runs.items():
        seconds = [run.seconds for run in each]
        middle = statistics.median(seconds)
        processor = statistics.median(run.processor for run in each)
        spread = f"{min(seconds):.2f} to {max(seconds):.2f}"
        print(f"{name}: {middle:.2f} s ({spread}), {total / middle / 1e9:.2f} GB/s, {processor:.2f} processor seconds")
    missed = []
    to_openssl = _ratio(runs, "openssl", f"at least {LEAST_OF_OPENSSL}")
    if to_openssl < LEAST_OF_OPENSSL:
        missed.append("openssl")
    if "model_signing" not in runs:
        print("model_signing is not installed: nothing to compare with")
        missed.append("model_signing")
    elif _ratio(runs, "model_signing", "more than 1") <= 1:
        missed.append("model_signing")
    megabytes = max(run.memory for run in runs["penny"]) >> 10
    print(f"penny's peak memory: {megabytes} MB, at most {MOST_MB}")
    if megabytes > MOST_MB:
        missed.append("memory")
    print(f"missed: {', '.join(missed)}" if missed else "all bars hold")
    return int(bool(missed))


def _ratio(runs: dict[str, list[Run]], other: str, bar: str) -> float:
    """Penny's rate over another's: the median of the rounds."""
    ratios = [theirs.seconds / ours.seconds for ours, theirs in zip(runs["penny"], runs[other], strict=True)]
    middle = statistics.median(ratios)
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"penny's rate over {other}'s: {middle:.2f} ({spread}), {bar}")
    return middle


if __name__ == "__main__":
    raise SystemExit(main())

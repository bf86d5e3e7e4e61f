"""How fast a checkpoint folder is verified, beside the same number of `openssl dgst` processes and model_signing.

Run it on an idle machine: `python -m benchmarks.checkpoint_verify [--gb N] [--workers N] [--rounds N] [--folder DIR]`.
It makes N GB of shards (20, or as much as half of the free disk holds, and says so), reads them once, and then times in
turn, in every round: penny's verification, `openssl dgst -sha256` with as many processes at once as penny has threads,
and model_signing's hashing with as many workers. Each contestant is a process of its own; the time that Python takes to
import either library is left out, for it does not grow with the folder. It prints the medians, the processor seconds,
the ratios and penny's peak memory, and exits 1 where a bar is missed: 0.9 of the rate of openssl, faster than
model_signing, 200 MB.
"""

import argparse
import importlib.util
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SHARDS = 8
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
places = [Place(HubFile(Path(path).name, size, None, sha256), Path(path)) for path, (sha256, size) in known.items()]
begun = time.perf_counter()
faults = verified(places, reporter=Silent(), workers=int(sys.argv[1]))
seconds = time.perf_counter() - begun
assert not faults, faults
print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
_SIGNING = """
import sys, time
from model_signing import hashing

begun = time.perf_counter()
hashing.Config().use_file_serialization(max_workers=int(sys.argv[1])).hash(sys.argv[2])
print(time.perf_counter() - begun)
"""


def main() -> int:
    """Measure and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, help="size of the folder in 10**9 bytes")
    parser.add_argument("--workers", type=int, help="threads and processes; default: as many as penny takes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where to make the shards; default: the folder for temporary files")
    asked = parser.parse_args()
    from reproducer.store.hashing import workers_here

    workers = asked.workers or workers_here()
    with tempfile.TemporaryDirectory(prefix="penny-checkpoint-", dir=asked.folder) as made:
        folder = Path(made)
        size = _size(asked.gb, folder)
        make_shards(folder, size)
        return judge(folder, workers, asked.rounds)


def _size(asked: float | None, folder: Path) -> int:
    """Bytes to make: what was asked for, or what the disk here allows."""
    if asked is not None:
        return int(asked * 1e9)
    allowed = shutil.disk_usage(folder).free / 2 / 1e9
    if allowed < WANTED_GB:
        print(f"the disk holds {allowed:.1f} GB instead of {WANTED_GB:.0f} GB: the bar is for {WANTED_GB:.0f}")
    return int(min(WANTED_GB, allowed) * 1e9)


def make_shards(folder: Path, size: int) -> None:
    """Fill a folder with shards of different bytes."""
    for number in range(SHARDS):
        block, left = os.urandom(_BLOCK), size // SHARDS
        with (folder / f"model-{number:05}.safetensors").open("wb") as file:
            while left > 0:
                file.write(block[: min(left, _BLOCK)])
                left -= _BLOCK


def judge(folder: Path, workers: int, rounds: int) -> int:
    """Time all of them in turn."""
    import json

    paths = sorted(str(path) for path in folder.iterdir())
    sums = subprocess.run(["sha256sum", *paths], capture_output=True, text=True, check=True).stdout  # noqa: S607
    known = {line[66:]: (line[:64], Path(line[66:]).stat().st_size) for line in sums.splitlines()}
    total = sum(size for _, size in known.values())
    contestants = {
        "penny": [sys.executable, "-c", _PENNY, str(workers)],
        "openssl": ["xargs", "-0", "-n", "1", "-P", str(workers), "openssl", "dgst", "-sha256"],
    }
    if importlib.util.find_spec("model_signing"):
        contestants["model_signing"] = [sys.executable, "-c", _SIGNING, str(workers), str(folder)]
    given = {"penny": json.dumps(known), "openssl": "\0".join(paths)}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    spent: dict[str, list[float]] = {name: [] for name in contestants}
    memory = 0
    for _ in range(rounds):
        for name, command in contestants.items():
            before, begun = _processor_seconds(), time.perf_counter()
            done = subprocess.run(command, input=given.get(name, ""), capture_output=True, text=True, check=True)
            seconds = time.perf_counter() - begun
            spent[name].append(_processor_seconds() - before)
            words = [] if name == "openssl" else done.stdout.split()
            times[name].append(float(words[0]) if words else seconds)
            memory = max(memory, int(words[1])) if name == "penny" else memory
    processors = len(os.sched_getaffinity(0))
    print(f"{len(known)} shards, {total / 1e9:.2f} GB, {processors} processors, {workers} workers, {rounds} rounds")
    medians = {name: statistics.median(each) for name, each in times.items()}
    for name, seconds in medians.items():
        spread = f"{min(times[name]):.2f} to {max(times[name]):.2f}"
        processor = f"{statistics.median(spent[name]):.2f} processor seconds"
        print(f"{name}: {seconds:.2f} s ({spread}), {total / seconds / 1e9:.2f} GB/s, {processor}")
    return _verdict(medians, memory >> 10)


def _processor_seconds() -> float:
    """What all ended processes of this one took so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _verdict(medians: dict[str, float], megabytes: int) -> int:
    missed = []
    to_openssl = medians["openssl"] / medians["penny"]
    print(f"penny's rate over openssl's: {to_openssl:.2f}, at least {LEAST_OF_OPENSSL}")
    if to_openssl < LEAST_OF_OPENSSL:
        missed.append("openssl")
    if "model_signing" in medians:
        to_signing = medians["model_signing"] / medians["penny"]
        print(f"penny's rate over model_signing's: {to_signing:.2f}, more than 1")
        if to_signing <= 1:
            missed.append("model_signing")
    else:
        print("model_signing is not installed: nothing to compare with")
        missed.append("model_signing")
    print(f"penny's peak memory: {megabytes} MB, at most {MOST_MB}")
    if megabytes > MOST_MB:
        missed.append("memory")
    print(f"missed: {', '.join(missed)}" if missed else "all bars hold")
    return int(bool(missed))


if __name__ == "__main__":
    raise SystemExit(main())

"""How long a lock of SGLang 0.5.23's full environment takes, beside `uv pip compile --generate-hashes` of the same.

`python -m benchmarks.full_lock [--rounds N]`. It needs a package index and loads SGLang's wheel (39 MB) once; of the
other packages only metadata is read. A first lock fills uv's cache and a store of its own; then, in every round: a lock
from nothing, uv's list with hashes, `penny lock --check` of the lock that is there. The hub is not asked, for the
checkpoint is a revision without digests. It prints the medians with their ratio and exits 1 where a bar is missed: 60
seconds for the lock, 1 second for the check.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

MANIFEST = Path(__file__).parent / "data" / "sglang-0.5.23.toml"
MOST_LOCK, MOST_CHECK = 60.0, 1.0
CHECKS = 5


def main() -> int:
    """Measure and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="penny-full-lock-") as made:
        work = Path(made)
        environment = os.environ | {"PENNY_STORE": str(work / "store"), "HF_HUB_OFFLINE": "1"}
        lock_from_nothing(work / "first", environment)
        locks, peers, checks = [], [], []
        for number in range(rounds):
            folder = work / f"lock-{number}"
            locks.append(lock_from_nothing(folder, environment))
            peers.append(uv_of_the_same(work))
            checks += [penny(["lock", "--check"], folder, environment) for _ in range(CHECKS)]
        packages = len(tomllib.loads((work / "first" / "pylock.toml").read_text("utf-8"))["packages"])
        same = {(work / name / "pylock.toml").read_bytes() for name in ("first", "lock-0")}
    print(f"{packages} packages, {rounds} rounds, {len(os.sched_getaffinity(0))} processors")
    for name, seconds in (("penny lock", locks), ("uv pip compile", peers), ("penny lock --check", checks)):
        print(f"{name}: {statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})")
    print(f"penny lock over uv pip compile: {statistics.median(locks) / statistics.median(peers):.2f}")
    missed = [] if statistics.median(locks) < MOST_LOCK else [f"{MOST_LOCK:.0f} s for the lock"]
    missed += [] if statistics.median(checks) < MOST_CHECK else [f"{MOST_CHECK:.0f} s for the check"]
    missed += [] if len(same) == 1 else ["the same bytes twice"]
    print(f"missed: {', '.join(missed)}" if missed else "all bars hold")
    return int(bool(missed))


def lock_from_nothing(folder: Path, environment: dict[str, str]) -> float:
    """A lock in a folder of its own; seconds."""
    (folder / "manifests").mkdir(parents=True)
    shutil.copy(MANIFEST, folder / "manifests")
    return penny(["lock", f"manifests/{MANIFEST.name}", "--yes"], folder, environment)


def penny(arguments: list[str], folder: Path, environment: dict[str, str]) -> float:
    """One command; seconds."""
    return _seconds([sys.executable, "-m", "reproducer", *arguments, "--quiet"], folder, environment)


def uv_of_the_same(work: Path) -> float:
    """Uv's own list of the same requirements with hashes; seconds."""
    from uv import find_uv_bin

    manifest = tomllib.loads(MANIFEST.read_text("utf-8"))
    (requirements,) = (each["requirements"] for each in manifest["environments"])
    (work / "requirements.in").write_text("\n".join(requirements), "utf-8")
    baseline = f"x86_64-manylinux_{manifest['glibc'].replace('.', '_')}"
    command = [find_uv_bin(), "pip", "compile", "--quiet", "--no-config", "--generate-hashes", "--only-binary", ":all:"]
    command += ["--python-version", manifest["python"], "--python-platform", baseline]
    command += ["--index-strategy", "unsafe-best-match", "requirements.in"]
    return _seconds(command, work, dict(os.environ))


def _seconds(command: list[str], folder: Path, environment: dict[str, str]) -> float:
    begun = time.perf_counter()
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begun
    if ran.returncode:
        raise SystemExit(f"{' '.join(command[1:4])} ended with {ran.returncode}: {ran.stderr[-2000:]}")
    return seconds


if __name__ == "__main__":
    raise SystemExit(main())

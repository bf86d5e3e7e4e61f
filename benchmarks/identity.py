"""How long `penny namespace` and `penny diff` take as whole processes, beside a bare start of the interpreter.

The two locks of `penny diff` have 2,000 packages and 500 checkpoint files each, of which one in ten differs.

Run: python benchmarks/identity.py
"""

import hashlib
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "penny.lock.toml"
REPEATS = 15
PACKAGES = 2000
FILES = 500
# Bars in seconds, for a quiet machine.
BARS = {"penny namespace": 0.3, "penny diff": 1.0}


def sha256(text: str) -> str:
    """A digest that stands for something."""
    return hashlib.sha256(text.encode()).hexdigest()


def write(folder: Path, which: str) -> Path:
    """A large lock with the packages of its runtime environment beside it."""
    sys.path.insert(0, str(ROOT))
    from reproducer.documents.lock import Lock
    from reproducer.documents.opened import open_lock
    from reproducer.locking.render import render_lock

    folder.mkdir()
    data: dict[str, Any] = open_lock(LOCK).lock.content()
    packages = ['lock-version = "1.0"\ncreated-by = "penny"\n']
    for number in range(PACKAGES):
        version = f"1.{number}.{which if number % 10 == 0 else 0}"
        wheel = f'{{ name = "p{number}-{version}-py3-none-any.whl", hashes = {{ sha256 = "{sha256(version)}" }} }}'
        packages.append(f'[[packages]]\nname = "p{number}"\nversion = "{version}"\nwheels = [{wheel}]\n')
    text = "\n".join(packages)
    environment = next(each for each in data["environments"] if each["name"] == "runtime")
    environment["pylock"] = {"path": "pylock.toml", "sha256": sha256(text), "size": len(text)}
    environment["packages"] = PACKAGES
    (folder / "pylock.toml").write_text(text)
    files = data["checkpoints"][0]["files"]
    files += [
        {
            "path": f"model-{number:05}-of-{FILES:05}.safetensors",
            "sha256": sha256(f"{number} {which if number % 10 == 0 else 0}"),
            "size": 4_000_000_000,
        }
        for number in range(FILES - len(files))
    ]
    path = folder / "penny.lock.toml"
    path.write_bytes(render_lock(Lock.from_data(data, where=str(path))))
    return path


def seconds(arguments: list[str], codes: tuple[int, ...]) -> float:
    """Wall time of one process that ends with one of the codes."""
    since = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
    taken = time.perf_counter() - since
    if done.returncode not in codes:
        raise SystemExit(f"{arguments} ended with {done.returncode}")
    return taken


def main() -> None:
    """Interleave the arms, print them in milliseconds and in starts of the interpreter."""
    with tempfile.TemporaryDirectory() as name:
        one, two = (str(write(Path(name) / which, which)) for which in ("1", "2"))
        penny = ["-m", "reproducer"]
        arms = {
            "python -c pass": (["-c", "pass"], (0,)),
            "import typer": (["-c", "import typer"], (0,)),
            "penny namespace": ([*penny, "namespace", "--lock", str(LOCK)], (0,)),
            "penny namespace, large": ([*penny, "namespace", "--lock", one], (0,)),
            "penny diff": ([*penny, "diff", one, two], (65,)),
            "penny diff --json": ([*penny, "diff", one, two, "--json"], (65,)),
        }
        times: dict[str, list[float]] = {arm: [] for arm in arms}
        for _ in range(REPEATS):
            for arm, (arguments, codes) in arms.items():
                times[arm].append(seconds(arguments, codes))
    unit = statistics.median(times["python -c pass"])
    print(f"{'':<24}{'median ms':>10}{'starts':>8}{'min ms':>8}{'max ms':>8}  bar")
    for arm, values in times.items():
        median, bar = statistics.median(values), BARS.get(arm)
        said = "" if bar is None else f"  {bar * 1e3:.0f} ms: {'held' if median < bar else 'not held'}"
        print(
            f"{arm:<24}{median * 1e3:>10.0f}{median / unit:>8.1f}"
            f"{min(values) * 1e3:>8.0f}{max(values) * 1e3:>8.0f}{said}"
        )


if __name__ == "__main__":
    main()
